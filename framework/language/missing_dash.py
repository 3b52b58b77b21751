"""Items of a list that lack their `- `: YAML's parser notices only the `- ` of a later item."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 200  # characters of a hint
_HEAD = re.compile(r"(?:- +)*[^\s#'\"\[{-][^:#]*:\s*(?:#.*)?$")
_PLAIN = re.compile(r"([A-Za-z_]\w*):\s+(\S.*)")


def first_item(lines: Sequence[str], dash: int, column: int) -> int | None:
    """The first item without its `- ` in the list that the `- ` on the line `dash` continues; None where no item lacks it."""
    items: list[int] = []
    deeper_lines: list[int] = []
    for number in range(dash - 1, -1, -1):
        text = lines[number].strip()
        if not text or text.startswith("#"):
            continue
        indent = _indent(lines[number])
        if indent > column:
            deeper_lines.append(number)
        elif indent == column and not _is_head_of_list(lines, number, items, deeper_lines):
            if text.startswith("-"):
                return None
            items.append(number)
            deeper_lines = []
        else:
            return _first(lines, items or deeper_lines) if _HEAD.fullmatch(text) else None
    return None


def _is_head_of_list(lines: Sequence[str], number: int, items: Sequence[int], deeper_lines: Sequence[int]) -> bool:
    """Whether a line is the key of a list whose items have the same indent as the key."""
    return bool(items) and not deeper_lines and _HEAD.fullmatch(lines[number].strip()) is not None


def _first(lines: Sequence[str], numbers: Sequence[int]) -> int | None:
    return numbers[-1] if numbers and not lines[numbers[-1]].lstrip().startswith("- ") else None


def is_of_steps(lines: Sequence[str], item: int) -> bool:
    """Whether a line is in the list `steps`, whose items have one key each."""
    lines_above = (lines[number] for number in range(item - 1, -1, -1) if lines[number].strip())
    heads = (line for line in lines_above if _indent(line) <= _indent(lines[item]) and _HEAD.fullmatch(line.strip()))
    return next((line.strip().startswith("steps:") for line in heads if _indent(line) < _indent(lines[item])), False)


def corrected(lines: Sequence[str], item: int) -> str | None:
    """A hint with the corrected item, on one line where it fits; None where it is too long."""
    text = lines[item].strip()
    one_key = _indent(lines[item]) == 0 or is_of_steps(lines, item)
    inner_lines = _below(lines, item, one_key)
    if not inner_lines:
        hint = f"write - {text}"
    elif one_key and (pairs := _pairs(lines, inner_lines)) is not None:
        hint = f"write - {text} {{{pairs}}}"
    elif not one_key and (pairs := _pairs(lines, [item, *inner_lines])) is not None:
        hint = f"write - {{{pairs}}}"
    else:
        hint = f"write - {text} and move the lines below it, which belong to it, two columns to the right"
    return hint if len(hint) <= LONGEST else None


def _below(lines: Sequence[str], item: int, one_key: bool) -> list[int]:
    """The other lines of an item."""
    if one_key and not _HEAD.fullmatch(lines[item].strip()):
        return []
    inner_lines = []
    for number in range(item + 1, len(lines)):
        indent, text = _indent(lines[number]), lines[number].strip()
        if not text:
            continue
        if indent < _indent(lines[item]) or (indent == _indent(lines[item]) and (one_key or text.startswith("-"))):
            break
        inner_lines.append(number)
    return inner_lines


def _pairs(lines: Sequence[str], inner_lines: Sequence[int]) -> str | None:
    """The lines as pairs inside of {}; None if one of them is not a key and a plain value."""
    matches = [_PLAIN.fullmatch(lines[number].strip()) for number in inner_lines]
    pairs = [match.groups() for match in matches if match and not re.search(r"[,\[\]{}#:'\"]|^[&*!|>%@`-]", match[2])]
    is_flat = len({_indent(lines[number]) for number in inner_lines}) == 1
    return ", ".join(f"{key}: {value}" for key, value in pairs) if is_flat and len(pairs) == len(inner_lines) else None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
