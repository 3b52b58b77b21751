"""Keys in a file of secrets: beside the lines of the current key's values, each key has a line `NAME@NUMBER={…}` of its own."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from framework.systems import keyring
from framework.systems.keyring import Ring, StoredKey


def keys(lines: Sequence[str], ring: Ring) -> tuple[StoredKey, ...]:
    """The keys of a ring. The current one is that whose values the secrets have, whoever wrote them."""
    present = {name: text for name, text in map(_pair, lines) if name in ring.secrets}
    numbered = []
    for number, entry in sorted(_entries(lines, ring).items()):
        is_current = entry["values"] == present
        state: keyring.State = "current" if is_current else "former" if entry["used"] else "next"
        numbered.append(StoredKey(number=number, state=state, created=entry["created"], values=entry["values"]))
    if present.keys() == set(ring.secrets) and not any(key.state == "current" for key in numbered):
        numbered.append(StoredKey(number=None, state="current", created=None, values=present))
    return tuple(numbered)


def added(lines: Sequence[str], ring: Ring, number: int, values: Mapping[str, str]) -> list[str]:
    """The lines with the next key. A current key without a number gets the one before."""
    new_lines = [line for line in lines if _pair(line)[0] != f"{ring.name}@{number}"]
    current = keyring.current(keys(lines, ring))
    if current and current.number is None:
        new_lines.append(_line(ring, number - 1, current.values, used=True))
    return [*new_lines, _line(ring, number, values, used=False)]


def used(lines: Sequence[str], ring: Ring, number: int) -> list[str]:
    """The lines in which a key is the current one."""
    entry = _entries(lines, ring)[number]
    stored = keys(lines, ring)
    current = keyring.current(stored)
    replacements = {name: f"{name}={entry['values'][name]}" for name in ring.secrets}
    replacements[f"{ring.name}@{number}"] = _line(ring, number, entry["values"], used=True, created=entry["created"])
    new_lines = [replacements.get(_pair(line)[0], line) for line in lines]
    if current and current.number is None:
        new_lines.append(_line(ring, keyring.next_number(stored) - 1, current.values, used=True))
    present = {_pair(line)[0] for line in lines}
    return [*new_lines, *(line for name, line in replacements.items() if name not in present)]


def removed(lines: Sequence[str], ring: Ring, number: int) -> list[str]:
    return [line for line in lines if _pair(line)[0] != f"{ring.name}@{number}"]


def _entries(lines: Sequence[str], ring: Ring) -> dict[int, dict[str, Any]]:
    entries = {}
    for name, text in map(_pair, lines):
        if match := re.fullmatch(rf"{re.escape(ring.name)}@([1-9]\d*)", name):
            with suppress(ValueError, KeyError, TypeError):
                document = json.loads(text)
                if document["values"].keys() == set(ring.secrets):
                    entries[int(match[1])] = {name: document[name] for name in ("created", "used", "values")}
    return entries


def _line(ring: Ring, number: int, values: Mapping[str, str], used: bool, created: float | None = None) -> str:
    document = {"created": created or round(time.time()), "used": used, "values": dict(values)}
    return f"{ring.name}@{number}={json.dumps(document)}"


def _pair(line: str) -> tuple[str, str]:
    name, _, text = line.partition("=")
    return name.strip(), text.strip()
