"""Functions whose arguments do not stand between commas, or whose first argument is a word: `extract(year from at)`, `dateadd(day, 1, at)`.

Each becomes a plain call, so that the rest of the code does not need to know it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from framework.sql.faults import refused
from framework.sql.quote import literal
from framework.sql.tokens import Token
from framework.sql.tree import Call, Column, Literal, Member, Node

if TYPE_CHECKING:
    from framework.sql.grammar import Parser

UNITS = ("year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond", "microsecond")
"""Units of `dateadd` and `datediff`."""


def extract(parser: Parser, name: Token, depth: int) -> Node:
    """Reads `extract(year from at)`."""
    field = parser.take()
    if field.kind not in ("name", "string"):
        raise refused(field.offset, "sql-syntax", "extract takes a part of a time here", "write extract(year from at)")
    parser.expect("from")
    source = parser.either(depth)
    parser.expect(")")
    return Call(name.offset, "date_part", (_text(field.offset, field.value), source))


def trim(parser: Parser, name: Token, depth: int) -> Node:
    """Reads `trim(both '-' from s)`; the words can be left out."""
    side = parser.take().word if parser.next.word in _SIDES and parser.after.text not in (",", ")") else ""
    if side and parser.skip("from"):
        return _closed(parser, Call(name.offset, _SIDES[side], (parser.either(depth),)))
    value = parser.either(depth)
    if parser.skip("from"):
        return _closed(parser, Call(name.offset, f"{side or 'both'} trim", (value, parser.either(depth))))
    if side:
        raise parser.unexpected("FROM is missing")
    return Call(name.offset, name.word, (value, *parser.rest_of_list(depth)))


def substring(parser: Parser, name: Token, depth: int) -> Node:
    """Reads `substring(s from 2 for 3)`."""
    arguments = [parser.either(depth)]
    if not parser.skip("from"):
        return Call(name.offset, name.word, (*arguments, *parser.rest_of_list(depth)))
    arguments.append(parser.either(depth))
    if parser.skip("for"):
        arguments.append(parser.either(depth))
    return _closed(parser, Call(name.offset, name.word, tuple(arguments)))


def position(parser: Parser, name: Token, depth: int) -> Node:
    """Reads `position('a' in s)`."""
    part = parser.binary(0, depth)
    if not parser.skip("in"):
        return Call(name.offset, name.word, (part, *parser.rest_of_list(depth)))
    return _closed(parser, Call(name.offset, name.word, (part, parser.binary(0, depth))))


def overlay(parser: Parser, name: Token, depth: int) -> Node:
    """Reads `overlay(s placing 'x' from 2 for 3)`."""
    arguments = [parser.either(depth)]
    if not parser.skip("placing"):
        return Call(name.offset, name.word, (*arguments, *parser.rest_of_list(depth)))
    arguments.append(parser.either(depth))
    parser.expect("from")
    arguments.append(parser.either(depth))
    if parser.skip("for"):
        arguments.append(parser.either(depth))
    return _closed(parser, Call(name.offset, name.word, tuple(arguments)))


def moved(parser: Parser, name: Token, depth: int) -> Node:
    """Reads `dateadd(day, 1, at)` and `datediff(day, a, b)` as `timestampadd` and `timestampdiff`. Without a unit they are functions of
    dates."""
    arguments = parser.list(depth)
    unit = arguments[0]
    word = unit.name if isinstance(unit, Column) else unit.value if isinstance(unit, Literal) else ""
    if len(arguments) != 3 or word.lower().removesuffix("s") not in UNITS:
        return Call(name.offset, name.word, arguments)
    function = "timestampadd" if "add" in name.word else "timestampdiff"
    return Call(name.offset, function, (_text(unit.offset, word.lower().removesuffix("s")), *arguments[1:]))


def struct(parser: Parser, name: Token, depth: int) -> Node:
    """Reads `struct(a, b * 2 as twice)` or `arrays_zip(a, b)`. A field has the name behind AS, or the name of its column."""
    parts: list[Node] = []
    while True:
        value = parser.either(depth)
        parts += [_field(parser, value, len(parts) // 2 + 1), value]
        if not parser.skip(","):
            return _closed(parser, Call(name.offset, "named_struct" if name.word == "struct" else name.word, tuple(parts)))


def _field(parser: Parser, value: Node, number: int) -> Literal:
    if parser.skip("as"):
        token = parser.take()
        if token.kind not in ("name", "quoted"):
            raise refused(token.offset, "sql-syntax", "a field's name is missing after AS", "write struct(a, b as c)")
        return _text(token.offset, token.value)
    column_name = value.name if isinstance(value, Column | Member) else f"col{number}"  # as Spark names it
    return _text(value.offset, column_name)


def _text(offset: int, text: str) -> Literal:
    return Literal(offset, "string", literal(text), text)


def _closed(parser: Parser, call: Call) -> Call:
    parser.expect(")")
    return call


_SIDES = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}
SYNTAX: Mapping[str, Callable[[Parser, Token, int], Node]] = {
    "extract": extract,
    "trim": trim,
    "substring": substring,
    "substr": substring,
    "position": position,
    "overlay": overlay,
    "struct": struct,
    "arrays_zip": struct,
    **dict.fromkeys(("dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff"), moved),
}
