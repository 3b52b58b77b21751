"""Keys in a file of secrets: beside the lines of the current key's values, each key has a line `NAME@NUMBER={…}` of its own."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from framework.base.errors import SetupError
from framework.systems import keyring
from framework.systems.keyring import Ring, StoredKey


def keys(lines: Sequence[str], ring: Ring) -> tuple[StoredKey, ...]:
    """The keys of a ring. The current one is that whose values the secrets have, whoever wrote them."""
    texts = dict(map(_pair, reversed(lines)))  # of two lines of one name the first one counts
    present = {name: texts[name] for name in ring.secrets if name in texts}
    numbered = []
    for number, entry in sorted(_entries(lines, ring).items()):
        is_current = entry["values"] == present
        state: keyring.State = "current" if is_current else "former" if entry["used"] else "next"
        numbered.append(StoredKey(number=number, state=state, **entry))
    if present.keys() == set(ring.secrets) and not any(key.state == "current" for key in numbered):
        numbered.append(StoredKey(number=None, state="current", created=None, values=present))
    return tuple(numbered)


def whole(lines: Sequence[str], ring: Ring, where: str) -> tuple[StoredKey, ...]:
    """The keys of a ring of which none may be missing. Raises a SetupError if a key's own line cannot be read."""
    names = [name for name, _ in map(_pair, lines) if re.fullmatch(rf"{re.escape(ring.name)}@\d+", name)]
    entries = _entries(lines, ring)
    if damaged := next((name for name in names if int(name.rpartition("@")[2]) not in entries), None):
        hint = "put it back as it was; `sluice keys` writes it, and what the key encrypted is read by no other"
        raise SetupError("damaged-key", f"the key `{damaged}=…` in {where} cannot be read", hint)
    return keys(lines, ring)


def added(lines: Sequence[str], ring: Ring, number: int, values: Mapping[str, str], by_hand: bool) -> list[str]:
    """The lines with the next key. A current key without a number gets the one before."""
    new_lines = [line for line in lines if _pair(line)[0] != f"{ring.name}@{number}"]
    current = keyring.current(keys(lines, ring))
    if current and current.number is None:
        new_lines.append(_line(ring, number - 1, current.values, used=time.time()))
    return [*new_lines, _line(ring, number, values, by_hand=by_hand)]


def used(lines: Sequence[str], ring: Ring, number: int) -> list[str]:
    """The lines in which a key is the current one."""
    entries, stored, moment = _entries(lines, ring), keys(lines, ring), time.time()
    if number not in entries:
        raise SetupError(
            "unknown-key-number", f"there is no key {number} of {ring.name} any more", "`sluice keys list` shows them"
        )
    current, values = keyring.current(stored), entries[number]["values"]
    replacements = {name: f"{name}={values[name]}" for name in ring.secrets}
    replacements[f"{ring.name}@{number}"] = _line(ring, number, **{**entries[number], "used": moment})
    added_lines = []
    if current and current.number is not None:
        replacements[f"{ring.name}@{current.number}"] = _line(ring, current.number, **{**entries[current.number], "used": moment})
    elif current:
        added_lines.append(_line(ring, keyring.next_number(stored) - 1, current.values, moment))
    present = {_pair(line)[0] for line in lines}
    added_lines += [line for name, line in replacements.items() if name not in present]
    return [*(replacements.get(_pair(line)[0], line) for line in lines), *added_lines]


def removed(lines: Sequence[str], ring: Ring, number: int) -> list[str]:
    return [line for line in lines if _pair(line)[0] != f"{ring.name}@{number}"]


def _entries(lines: Sequence[str], ring: Ring) -> dict[int, dict[str, Any]]:
    """The keys' own lines by their numbers. A line that is not as `_line` writes it counts as none."""
    entries = {}
    for name, text in map(_pair, lines):
        if match := re.fullmatch(rf"{re.escape(ring.name)}@([1-9]\d{{0,8}})", name):
            with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                document = json.loads(text)
                values = {name: document["values"][name] for name in ring.secrets}
                if all(isinstance(value, str) for value in values.values()):
                    times = {name: float(document[name]) for name in ("created", "used")}
                    entries[int(match[1])] = {**times, "values": values, "by_hand": bool(document.get("by_hand"))}
    return entries


def _line(
    ring: Ring, number: int, values: Mapping[str, str], used: float = 0.0, created: float | None = None, by_hand: bool = False
) -> str:
    """The line of a key. `used`: when it became the current key, or ceased to be so; 0 if it never was."""
    document = {"created": created or round(time.time()), "used": round(used, 3), "values": dict(values)}
    return f"{ring.name}@{number}={json.dumps({**document, **({'by_hand': True} if by_hand else {})})}"


def _pair(line: str) -> tuple[str, str]:
    name, _, text = line.partition("=")
    return name.strip(), text.strip()
