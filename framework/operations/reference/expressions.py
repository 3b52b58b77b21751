"""The page on expressions: every operator and function with its arguments and result, and the refused ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from framework.operations.reference.options import table
from framework.operations.reference.samples import COLUMNS, FUNCTIONS, OPERATORS, REFUSED, ROW, samples
from framework.operations.reference.signatures import all_forms
from framework.sql import functions, reserved
from framework.sql.expressions import ExpressionError, check

INTRODUCTION = """\
# Expressions

A condition or a computed value in a spec is one SQL expression, as Spark has them, over the columns of one row. Besides the row's own
columns there are `_kafka_partition`, `_kafka_offset`, `_kafka_timestamp` and `_event_time`.

- Names and types are checked before anything runs; `sluice plan` shows the type of every column.
- Where an expression cannot be computed for a row (a division by zero, a number that is too large, a text that is no date) the message
  becomes a bad row. A function with `try_` gives null instead.
- An operation on null gives null, except those made for null, such as `coalesce` and `is null`. In a condition null is not true.
- Text stands in single quotes. A column whose name is a word of SQL stands in backquotes. Times are in UTC.
- Where a text starts with a quote, or has `: ` or ` #` in it, YAML wants quotes around the whole: `"symbol = 'ZVZZT'"`.

The examples below use this row:"""
SPARK_FUNCTIONS = """\
Any function of Spark can be called that gives the same value for the same row and reads nothing but the row. The type is that of the
example."""
FORMS = """\
What each function takes and gives: `text` is any value of one part, `number` a number or a text with one, `time` a date, a timestamp or a
text with one, `bytes` binary or a text, `T`, `K`, `V` any type, `T->U` a lambda. `?` marks an optional argument, `...` a repeated one, `!`
a literal, `$1` the type of the first argument. Three dots stand for what depends on the arguments together."""
LEFT_OUT = "Functions of Spark that no expression calls:"
PATTERNS = """\
Patterns of dates: `yyyy` `yy` year, `MM` `MMM` `MMMM` month, `dd` day, `HH` hour to 23, `hh` hour to 12 with `a`, `mm` minute, `ss` second,
`SSS` milliseconds, `EEE` weekday, `X` `XXX` zone; other letters in single quotes, which are doubled inside a text.

Regular expressions have characters, sets, `\\d` `\\w` `\\s`, groups, `|`, and `?` `*` `+` `{n,m}`; a repeated group cannot contain a
choice or a repetition, since such patterns can run for ever."""


def page() -> str:
    columns = ((f"`{name}`", f"`{type}`", f"`{value}`") for name, (type, value) in ROW.items())
    refusal_table = table(("what", "why", "instead"), map(_refusal, REFUSED))
    left_out_table = table(("functions", "why", "instead"), map(_left_out, reserved.REFUSALS))
    return "\n\n".join(
        [
            INTRODUCTION,
            table(("column", "type", "value"), columns),
            *["## Operators", *_examples(OPERATORS)],
            *[f"## Functions\n\n{SPARK_FUNCTIONS}", *_examples(FUNCTIONS)],
            f"### Names of other dialects\n\n{table(('write', 'the same as'), _aliases())}",
            f"### All forms\n\n{FORMS}\n\n```text\n{chr(10).join(all_forms())}\n```",
            f"## Patterns\n\n{PATTERNS}",
            f"## Refused\n\n{refusal_table}",
            f"{LEFT_OUT}\n\n{left_out_table}\n",
        ]
    )


def _examples(file: Path) -> Iterator[str]:
    for title, lines in samples(file).items():
        rows = [(f"`{expression}`", f"`{value}`", f"`{check(expression, COLUMNS).type}`") for expression, value in lines]
        yield f"### {title}\n\n{table(('write', 'gives', 'type'), rows)}"


def _aliases() -> Iterator[tuple[str, str]]:
    return ((f"`{name}`", f"`{target}`") for name, target in sorted(functions.ALIASES.items()))


def _left_out(refusal: reserved.Refusal) -> Sequence[str]:
    return " ".join(f"`{name}`" for name in sorted(refusal.names)), f"each {refusal.why}", refusal.hint


def _refusal(expression: str) -> tuple[str, ...]:
    try:
        check(expression, COLUMNS)
    except ExpressionError as error:
        return f"`{expression}`", error.message, error.hint
    raise AssertionError(f"{expression} is not refused")
