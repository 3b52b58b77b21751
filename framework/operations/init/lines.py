"""Lines of a spec, each with its remarks as a comment."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from framework.base.errors import visible
from framework.base.types import Array, Struct, Type, identifier
from framework.operations.init.infer import GuessedColumn

_PLAIN_KEY = re.compile(r"(?!(?:null|Null|NULL)\Z)[A-Za-z_][A-Za-z0-9_-]*")
_PLAIN = re.compile(r"(?!(?:null|Null|NULL)\Z)[A-Za-z_][A-Za-z0-9_ -]*")

_MOST_REMARKS = 4  # remarks on one column


@dataclass(frozen=True)
class Line:
    text: str
    remarks: Sequence[str] = ()
    column: str | None = None  # that the line is about

    def __str__(self) -> str:
        return f"{self.text}  # {'; '.join(self.remarks)}" if self.remarks else self.text


def text(lines: Sequence[Line]) -> str:
    return "".join(f"{line}\n" for line in lines)


def of_column(column: GuessedColumn) -> Line:
    options = {}
    if column.format:
        options = {"format": column.format, "doc": "milliseconds since 1970, by its name and size"}
    type_ = _type(column.type)
    option_text = "".join(f", {option}: {scalar(value)}" for option, value in options.items())
    value_text = f"{{type: {scalar(type_)}{option_text}}}" if options else type_
    remarks = column.remarks if len(column.remarks) <= _MOST_REMARKS else (*column.remarks[:_MOST_REMARKS], "and more")
    return Line(f"  {key(column.name)}: {value_text}", remarks, column.name)


def in_braces(column: GuessedColumn) -> str:
    """A column, written inside the braces of one line."""
    type_ = scalar(_type(column.type))
    return f"{key(column.name)}: {f'{{type: {type_}, format: {column.format}}}' if column.format else type_}"


def key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def scalar(value: str) -> str:
    """A text, written inside of [] and {}."""
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def comment_name(name: str) -> str:
    """A name for a comment: short, and safe to print on one line."""
    text = visible(name)
    return f"`{text[:60]}{'…' * (len(text) > 60)}`"


def _type(type_: Type) -> str:
    if isinstance(type_, Array):
        return f"array<{_type(type_.element)}>"
    if isinstance(type_, Struct):
        return f"struct<{', '.join(f'{_field(field.name)} {_type(field.type)}' for field in type_.fields)}>"
    return str(type_)


def _field(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else identifier(name)
