"""The parser's values without an operator around them: literals, columns, calls, CASE, casts and types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.base import type_text, types
from framework.sql import intervals, reserved, special_syntax
from framework.sql.faults import refused
from framework.sql.tokens import Token
from framework.sql.tree import Call, Case, Cast, Column, Literal, Node, Operation

if TYPE_CHECKING:
    from framework.sql.grammar import Parser

_CASTS = frozenset(
    "boolean tinyint smallint int bigint float double decimal string binary date timestamp".split()  # noqa: SIM905
)


def primary(parser: Parser, depth: int) -> Node:
    token = parser.next
    if token.kind == "number" or token.kind == "string":
        parser.take()
        return Literal(token.offset, token.kind, token.text, token.value)
    if token.word == "(":
        parser.take()
        if parser.next.word in ("select", "with", "values", "table", "from"):
            raise reserved.subquery(parser.next)
        node = parser.either(depth)
        if parser.next.text == ",":
            raise refused(token.offset, "sql-syntax", "a list in parentheses is not a value", "compare each: s = 'a' and i = 1")
        parser.expect(")")
        return node
    if token.kind == "quoted":
        parser.take()
        return Column(token.offset, token.value)
    if token.kind == "name":
        return _named(parser, token, depth)
    raise parser.unexpected("a value is missing")


def _named(parser: Parser, token: Token, depth: int) -> Node:
    word = token.word
    if word in ("true", "false", "null"):
        parser.take()
        return Literal(token.offset, "null" if word == "null" else "boolean", word, word)
    if word == "case":
        return _case(parser, depth)
    if word in ("cast", "try_cast", "safe_cast"):
        return _cast(parser, depth)
    if word == "interval":
        return intervals.read(parser)
    if parser.after.kind == "string" and word in ("date", "timestamp", "timestamp_ntz"):
        parser.take()
        text = parser.take()
        return Literal(token.offset, word, f"{word}{text.text}", text.value)
    if parser.after.word == "(":
        return _call(parser, depth)
    error = reserved.misplaced_word(token)
    if error:
        raise error
    parser.take()
    return Column(token.offset, token.value)


def _call(parser: Parser, depth: int) -> Node:
    token = parser.take()
    of_rows = parser.of_rows(token, depth)
    if of_rows is not None:
        return of_rows
    is_subquery = token.word == "exists" and parser.after.word in ("select", "with", "values", "table", "from")
    error = reserved.subquery(token) if is_subquery else reserved.function(token)
    if error:
        raise error
    parser.expect("(")
    node: Node = Call(token.offset, token.word, ())
    if not parser.skip(")"):
        syntax = special_syntax.SYNTAX.get(token.word)
        node = syntax(parser, token, depth) if syntax else _plain_call(parser, token, parser.list(depth))
    if parser.next.word in ("over", "filter", "within"):
        raise refused(
            parser.next.offset,
            "sql-window",
            f"{parser.next.text.upper()} is not allowed: an expression sees one row",
            reserved.ONE_ROW,
        )
    return node


def _plain_call(parser: Parser, token: Token, arguments: tuple[Node, ...]) -> Node:
    """Returns a call, or a cast that is written as a call: `int(s)`."""
    if token.word in _CASTS and len(arguments) == 1:
        return Cast(token.offset, arguments[0], type_text.parse(token.word), False)
    return Call(token.offset, token.word, arguments)


def _case(parser: Parser, depth: int) -> Node:
    offset = parser.take().offset
    subject = parser.either(depth) if parser.next.word != "when" else None
    branches: list[tuple[Node, Node]] = []
    while parser.skip("when"):
        condition = parser.either(depth)
        parser.expect("then")
        value = parser.either(depth)
        branches.append((condition if subject is None else Operation(condition.offset, "=", (subject, condition)), value))
    if not branches:
        raise parser.unexpected("WHEN is missing")
    otherwise = parser.either(depth) if parser.skip("else") else None
    parser.expect("end")
    return Case(offset, tuple(branches), otherwise)


def _cast(parser: Parser, depth: int) -> Node:
    token = parser.take()
    parser.expect("(")
    operand = parser.either(depth)
    parser.expect("as")
    type = type_(parser)
    parser.expect(")")
    return Cast(token.offset, operand, type, token.word != "cast")


def type_(parser: Parser) -> types.Type:
    """Reads the words of a type, up to a word that cannot belong to it."""
    start = parser.next.offset
    first_token = parser.take()
    text, depth = first_token.text, 0
    while parser.next.word in ("<", "(") or (depth and parser.next.kind != "end"):
        word = parser.next.word
        depth += (word in ("<", "(")) - (word == ")") - (len(word) if word in (">", ">>", ">>>") else 0)
        text = text.ljust(parser.next.offset - start) + parser.take().text
    try:
        return type_text.parse(text)
    except type_text.TypeTextError as error:
        raise refused(start + error.offset, "sql-type", error.message, error.hint) from None
