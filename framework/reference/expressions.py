"""The page on expressions: every operator and function with what it takes and gives, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from framework.reference.samples import COLUMNS, FUNCTIONS, OPERATORS, REFUSED, ROW
from framework.reference.signatures import signature
from framework.sql.expressions import ExpressionError, check

INTRODUCTION = """\
# Expressions

A condition or a computed value in a spec is one SQL expression, as Spark has them, over the columns of one row. Besides the row's own
columns there are `_kafka_partition`, `_kafka_offset`, `_kafka_timestamp` and `_event_time`.

- Names and types are checked before anything runs; `sluice plan` shows the type of every column.
- Where an expression cannot be computed for a row (a division by zero, a number that is too large, a text that is no date) the message
  becomes a bad row. A function with `try_` gives null instead.
- Null in, null out, but for what is made for nulls, such as `coalesce` and `is null`. In a condition null is not true.
- Text stands in single quotes. A column whose name is a word of SQL stands in backquotes. Times are in UTC.
- Where a text starts with a quote, or has `: ` or ` #` in it, YAML wants quotes around the whole: `"symbol = 'ZVZZT'"`.

The examples below are computed for this row:"""
TAKEN = """\
`int`, `bigint` and `double` also take narrower numbers, `number` takes any. `date` also takes a timestamp, `timestamp` a date.
`?` marks what can be left out, `…` what can be repeated; `literal` is a value that is written in the spec and comes from no column."""
PATTERNS = """\
Patterns of dates: `yyyy` `yy` year, `MM` `MMM` `MMMM` month, `dd` day, `HH` hour to 23, `hh` hour to 12 with `a`, `mm` minute, `ss` second,
`SSS` milliseconds, `EEE` weekday, `X` `XXX` zone; other letters in single quotes, which are doubled inside a text.

Regular expressions have characters, sets, `\\d` `\\w` `\\s`, groups, `|`, and `?` `*` `+` `{n,m}`; a repeated group holds no choice and no
repetition, since such patterns can take for ever."""


def page() -> str:
    parts = [
        INTRODUCTION,
        _table(("column", "type", "value"), ([f"`{name}`", f"`{type}`", f"`{said}`"] for name, (type, said) in ROW.items())),
    ]
    for heading, text, head, row in (
        ("## Operators", OPERATORS, ("write", "type", "gives"), _example),
        (f"## Functions\n\n{TAKEN}", FUNCTIONS, ("function", "type", "example", "gives"), _function),
    ):
        parts.append(heading)
        for title, lines in groups(text).items():
            parts.append(f"### {title}\n\n{_table(head, map(row, lines))}")
    return (
        "\n\n".join([*parts, "## Patterns", PATTERNS, "## Refused", _table(("what", "why", "instead"), map(_refusal, REFUSED))])
        + "\n"
    )


def groups(text: str) -> dict[str, list[tuple[str, str]]]:
    """Of each title its expressions, each with its value."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in text.strip().splitlines():
        expression, arrow, value = line.partition(" -> ")
        if arrow:
            found[list(found)[-1]].append((expression, value))
        else:
            found[line] = []
    return found


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _example(line: tuple[str, str]) -> list[str]:
    expression, value = line
    return [f"`{expression}`", f"`{check(expression, COLUMNS).type}`", f"`{value}`"]


def _function(line: tuple[str, str]) -> list[str]:
    expression, value = line
    arguments, result = signature(expression)
    return [f"`{expression.partition('(')[0]}({arguments})`", result, f"`{expression}`", f"`{value}`"]


def _refusal(expression: str) -> list[str]:
    try:
        check(expression, COLUMNS)
    except ExpressionError as error:
        return [f"`{expression}`", error.message, error.hint]
    raise AssertionError(f"{expression} is not refused")
