"""Explain YAML syntax errors in plain words, with a hint that shows the text to type instead."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from framework.base.errors import Problem, Where
from framework.language import missing_dash

SECRET_NAME = re.compile(r"passw(or)?d|secret|token|credential|private.?key|access.?key|api.?key|sasl.?jaas", re.IGNORECASE)
SECRET_TEXT = re.compile(
    r"://[^/\s:@]*:[^/\s:@]+@|\bAKIA[0-9A-Z]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY|\bpassword\s*=\s*\S", re.IGNORECASE
)
_OPEN = {"(": ")", "[": "]", "{": "}", "<": ">"}
_TYPES = ("array", "map", "struct")
_LONGEST_TYPE = max(map(len, _TYPES))
_LONGEST = 10_000  # characters within which a text must end
_LONGEST_HINT = 200
_VALUE = re.compile(r"^(?P<head>\s*(?:- +)*(?:[^\s:#'\"\[{][^:#]*|'[^']*'|\"[^\"]*\"):[ ]+|\s*(?:- +)+)(?P<value>\S.*?)\s*$")


@dataclass(frozen=True)
class Explained:
    """A problem, or the span of the text whose quotes are missing."""

    problem: Problem
    span: tuple[int, int] | None = None


@dataclass(frozen=True)
class _Place:
    line: int
    column: int


class Problems(Protocol):
    def __call__(self, place: Any, message: str, hint: str) -> Explained: ...


def short(text: str, length: int = 60) -> str:
    """The text, cut to the length for a message."""
    return text if len(text) <= length else text[: length - 3] + "…"


def quote(text: str) -> str:
    """The text as a quoted YAML scalar."""
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'


def _opens(text: str, index: int) -> bool:
    return text[index] != "<" or text[max(0, index - _LONGEST_TYPE) : index].lower().endswith(_TYPES)


def _nested(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each index of the text and its end, with the characters that close the brackets and SQL strings that are open there."""
    ends: list[str] = []
    for index, character in enumerate(text):
        yield index, ends
        if ends and character == ends[-1]:
            ends.pop()
        elif ends and ends[-1] in "'\"":
            continue
        elif character in "'\"" and not text[index - 1 : index].isalnum():
            ends.append(character)
        elif character in _OPEN and _opens(text, index):
            ends.append(_OPEN[character])
    yield len(text), ends


def unbalanced(text: str) -> bool:
    """Whether the text opens a bracket or an SQL string and does not close it, which means that a comma has cut the text."""
    _, ends = deque(_nested(text), maxlen=1).pop()
    return bool(ends)


def span_from(text: str, start: int) -> int | None:
    """The index where a text from `start` ends, with its brackets and SQL strings closed; None if they do not close."""
    line = text[start : start + _LONGEST].split("\n", 1)[0]
    for index, ends in islice(_nested(line), len(line)):
        if not ends and line[index] in ",]}":
            return start + len(line[:index].rstrip())
        if ends and ends[-1] not in "'\"" and line[index] in ")]}" and line[index] != ends[-1]:
            return None
    return None


@dataclass(frozen=True)
class FlowStyle:
    """The parser's position inside [] and {}: the open brackets, and the latest scalar."""

    opened: tuple[int, ...]
    scalar: tuple[int, int] | None


def explain(error: Any, text: str, file: str, first_line: int, flow: FlowStyle) -> Explained:
    """The problem behind a parser's or scanner's error."""
    mark = error.problem_mark or error.context_mark
    opened = error.context_mark

    def where_at(place: Any) -> Where:
        return Where(file, first_line + place.line + 1, place.column + 1)

    def problem(place: Any, message: str, hint: str) -> Explained:
        return Explained(Problem(where_at(place), "yaml-syntax", message, hint))

    lines = text.split("\n")
    line = lines[mark.line] if mark.line < len(lines) else ""
    problem_text = error.problem or ""
    context = error.context or ""
    if flow.opened and ("flow" in context or "cannot start" in problem_text or "block" in context):
        return _explain_flow(error, text, file, first_line, flow)
    if "quoted scalar" in context and "escape" in problem_text:
        return problem(
            mark, r"a backslash in double quotes starts an escape, and this is not one", r"use single quotes, as in '\d+'"
        )
    if "quoted scalar" in context:
        return problem(opened, "the quote that opens here is not closed", "close it at the end of the text")
    if "tag" in context:
        where = where_at(opened)
        return Explained(Problem(where, "yaml-tag", "YAML tags are not used here", "text that starts with ! needs quotes"))
    if "anchor" in context or "alias" in context:
        end = span_from(text, opened.index) if flow.opened else None
        hint = f"write {quote(text[opened.index : end])}" if end else _quote_line(lines[opened.line])
        return problem(opened, "text cannot start with & or *", hint)
    if "block scalar" in context and not _goes_on(lines[opened.line], opened.column):
        return problem(opened, "text cannot start with > or |", _quote_line(lines[opened.line]))
    if "cannot start any token" in problem_text:
        return problem(mark, f"text cannot start with {line[mark.column : mark.column + 1]}", _quote_line(line))
    if "mapping values" in problem_text:
        return _explain_colon(problem, mark, lines)
    if "block sequence entries" in problem_text:
        return problem(mark, "a list cannot start on the line of its key", "put `- ` on the next line, indented")
    if "expected ':'" in problem_text and opened is not None:
        return problem(opened, "this line is not `key: value`", "add the colon, or quotes around text of several lines")
    if "document start" in problem_text:
        directive = next((number for number, line in enumerate(lines) if line.startswith("%")), None)
        if directive is not None:
            where = Where(file, first_line + directive + 1, 1)
            hint = f"remove `{short(lines[directive].strip())}`"
            return Explained(Problem(where, "yaml-syntax", "YAML directives are not used here", hint))
        return problem(mark, "this does not belong to the document above", "put it under a key, or begin a new document with ---")
    return _explain_indent(problem, error, lines, first_line)


def _explain_flow(error: Any, text: str, file: str, first_line: int, flow: FlowStyle) -> Explained:
    index = error.problem_mark.index
    start = index
    if flow.scalar and ("cannot start" not in error.problem or not text[flow.scalar[1] : index].strip()):
        start = flow.scalar[0]
    opened = flow.opened[-1]
    end = span_from(text, start) if start > opened and text[index : index + 1] not in ("]", "}") else None

    def problem(place: int, message: str, hint: str) -> Problem:
        line = first_line + text.count("\n", 0, place) + 1
        return Problem(Where(file, line, place - text.rfind("\n", 0, place)), "yaml-syntax", message, hint)

    if end is None or end <= max(start, index):
        bracket = text[opened]
        unclosed = problem(opened, f"the {bracket} that opens here is not closed", f"add {_OPEN[bracket]} where it ends")
        return Explained(unclosed)
    flow_text = text[start:end]
    if re.search(r"[,\[\]{}]", flow_text) and flow_text[0] not in "'\"":
        return Explained(problem(start, "", ""), (start, end))
    whole = text[min(opened, text.rfind("\n", 0, start) + 1) : end]
    is_hidden = SECRET_NAME.search(whole) or len(flow_text) > _LONGEST_HINT
    instruction = "put the whole text in quotes" if is_hidden else f"write {quote(flow_text)}"
    return Explained(problem(start, "this text needs quotes inside [] and {}", f"{instruction}; or is a comma missing?"))


def _explain_colon(problem: Problems, mark: Any, lines: list[str]) -> Explained:
    line = lines[mark.line]
    above = next((lines[number] for number in range(mark.line - 1, -1, -1) if lines[number].strip()), "")
    if line.lstrip().startswith("- ") and not above.lstrip().startswith("- "):
        column = len(above) - len(above.lstrip(" "))
        if (item := missing_dash.first_item(lines, mark.line, column)) is not None:
            return _without_dash(problem, lines, item)
    if ":" in line[: mark.column] and _value_of(line):
        if (braced := _in_braces(line)) is not None:
            return problem(mark, "a second colon: a map on the same line as its key needs {}", braced)
        return problem(mark, "a second colon: text with `: ` in it needs quotes", _quote_line(line))
    key = re.match(r"[\s-]*", line)
    return problem(
        _Place(mark.line, key.end() if key else 0),
        "a key is not allowed here: the line above is not finished, or this one is indented too far",
        "add the colon to the line above, or give this line the same indent as the other keys",
    )  # fmt: skip


def _explain_indent(problem: Problems, error: Any, lines: list[str], first_line: int) -> Explained:
    mark = error.problem_mark or error.context_mark
    line = lines[mark.line] if mark.line < len(lines) else ""
    if re.match(r"[\]}]+\s*$", line[mark.column :]):
        return problem(mark, f"there is no open bracket that {line[mark.column]} could close", "remove it")
    if "block scalar" in (error.context or "") or _goes_on(line, mark.column):
        return problem(mark, "there is more text after the closing quote or bracket", _quote_line(line))
    if line.lstrip().startswith("- "):
        if (item := missing_dash.first_item(lines, mark.line, mark.column)) is not None:
            return _without_dash(problem, lines, item)
        return problem(mark, "this `- ` does not line up with the list above", "give all `- ` of a list the same indent")
    start_text = f" that begins on line {first_line + error.context_mark.line + 1}" if error.context_mark else ""
    in_list = "block collection" in (error.context or "")
    if in_list and error.context_mark.column == mark.column and missing_dash.is_of_steps(lines, mark.line):
        return _without_dash(problem, lines, mark.line)
    noun = "list" if "'-'" in (error.problem or "") else "map"
    return problem(mark, f"this line does not line up with the {noun}{start_text}", "give all keys of a map the same indent")


def _without_dash(problem: Problems, lines: list[str], item: int) -> Explained:
    line = lines[item]
    hint = None if SECRET_NAME.search("\n".join(lines[item : item + 20])) else missing_dash.corrected(lines, item)
    place = _Place(item, len(line) - len(line.lstrip(" ")))
    return problem(place, "this item of a list has no `- `", hint or "put `- ` before it")


def _goes_on(line: str, column: int) -> bool:
    """Whether there is more text after a value that ended with a quote or a bracket."""
    match = _value_of(line)
    return match is not None and match["value"][0] in "'\"[{" and column > match.start("value")


def _value_of(line: str) -> re.Match[str] | None:
    """The key and the value of a line; None for a very long line, for which the search could take very long."""
    return _VALUE.match(line) if len(line) <= _LONGEST_HINT else None


def _in_braces(line: str) -> str | None:
    """A corrected line for an item of a list with two colons, such as the step `- derive: total: price * 2`."""
    match = re.fullmatch(r"\s*(- \w+:)\s+([A-Za-z_]\w*):\s+(.*?)\s*", line) if len(line) <= _LONGEST_HINT else None
    if match is None or SECRET_NAME.search(line):
        return None
    head, key, value = match.groups()
    plain = value[:1] in ("'", '"') or not re.search(r"[,\[\]{}#:]", value)
    return f"write {head} {{{key}: {value if plain else quote(value)}}}"


def _quote_line(line: str) -> str:
    match = _value_of(line)
    if match is None or SECRET_NAME.search(line):
        return "put the whole text in quotes"
    value = match["value"]
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":  # it was in quotes, and has the same inside
        value = value[1:-1]
    return f"write {match['head'].strip()} {quote(value)}"
