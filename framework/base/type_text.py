"""Types read from DDL text such as `struct<building string, floor int>`, in any case and spacing that Spark accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from framework.base.spelling import closest
from framework.base.types import DECIMALS, DEEPEST, NAMES, NESTED, Array, Decimal, Field, Map, Struct, Type, folded, holds_map

LONGEST = 10_000
"""The most characters of a type."""

# Names in other systems.
ELSEWHERE = {
    **dict.fromkeys(("text", "str", "uuid", "json", "enum", "clob", "nvarchar"), "string"),
    **dict.fromkeys(("datetime", "timestamptz", "timestamp_tz", "instant"), "timestamp"),
    **dict.fromkeys(("number", "money", "bignumeric"), "decimal(18,2)"),
    **dict.fromkeys(("int64", "bigserial", "uint32", "signed", "unsigned"), "bigint"),
    **dict.fromkeys(("int32", "serial"), "int"),
    **dict.fromkeys(("float64", "float8"), "double"),
    **dict.fromkeys(("bytes", "bytea", "blob", "varbinary"), "binary"),
    **dict.fromkeys(("list", "set", "repeated"), "array<string>"),
    **dict.fromkeys(("record", "object", "row", "tuple"), "struct<a int, b string>"),
    "int16": "smallint",
    "float32": "float",
    "bool": "boolean",
    "dict": "map<string, string>",
}
REFUSED = {
    "char": "write `string`: an Iceberg table does not keep the length",
    "character": "write `string`: an Iceberg table does not keep the length",
    "varchar": "write `string`: an Iceberg table does not keep the length",
    "interval": "keep a number of seconds or days, or two timestamps",
    "time": "keep a string, or a timestamp",
    "variant": "write string for the JSON text, or struct<...> with the fields",
    "void": "write the type that the column will have, such as `string`",
    "null": "write the type that the column will have, such as `string`",
}


class TypeTextError(ValueError):
    """The error for a text that is not a type of a table, with the place in the text."""

    def __init__(self, message: str, offset: int, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint


def parse(text: str) -> Type:
    """The type in a DDL text, in any case and spacing that Spark accepts."""
    if len(text) > LONGEST:
        raise TypeTextError(f"a type has at most {LONGEST:,} characters, this one {len(text):,}", LONGEST, "use fewer fields")
    reader = _Reader(text)
    type = reader.type(0)
    reader.end()
    return type


_TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<number>\d+)|(?P<quoted>`(?:[^`]|``)+`)|(?P<mark>[<>(),:]))", re.ASCII)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    offset: int


def _tokens(text: str) -> Iterator[_Token]:
    offset = 0
    end = len(text.rstrip())
    while offset < end:
        match = _TOKEN.match(text, offset)
        if match is None:
            offset += len(text[offset:]) - len(text[offset:].lstrip())
            raise TypeTextError(
                f"{text[offset]!r} does not belong in a type", offset, "put a name with other characters in backquotes"
            )
        kind = match.lastgroup or ""
        yield _Token(kind, match.group(kind), match.start(kind))
        offset = match.end()
    yield _Token("end", "", end)


class _Reader:
    """A parser that passes once over the tokens of a type."""

    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text))
        self.position = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def take(self) -> _Token:
        token = self.next
        self.position += token.kind != "end"
        return token

    def mark(self, text: str) -> None:
        token = self.take()
        if token.text != text:
            ending = f"found {token.text!r}" if token.kind != "end" else "the text ends"
            raise TypeTextError(
                f"expected {text!r}, {ending}", token.offset, "write for example `array<string>` or `struct<a int, b string>`"
            )

    def end(self) -> None:
        if self.next.kind != "end":
            raise TypeTextError(
                f"{self.next.text!r} after the end of the type",
                self.next.offset,
                "a type is one word, or one word with <...> or (...)",
            )

    def type(self, depth: int) -> Type:
        token = self.take()
        name = token.text.lower()
        if depth > DEEPEST:
            raise TypeTextError(f"nested deeper than {DEEPEST} levels", token.offset, "flatten the structure")
        if token.kind != "name":
            message = f"{token.text!r} is not a type" if token.kind != "end" else "a type is missing"
            raise TypeTextError(message, token.offset, "write for example `bigint`, `string` or `decimal(18,2)`")
        if name in NAMES:
            return NAMES[name]
        if name in DECIMALS:
            return self.decimal()
        if name == "array":
            self.mark("<")
            element = self.type(depth + 1)
            self.mark(">")
            return Array(element)
        if name == "map":
            return self.map(depth)
        if name == "struct":
            return self.struct(depth)
        if name in REFUSED:
            raise TypeTextError(f"a column of a table cannot have the type {name}", token.offset, REFUSED[name])
        suggestion = ELSEWHERE.get(name) or closest(name, [*NAMES, *DECIMALS, *NESTED])
        hint = (
            f"did you mean {suggestion}?"
            if suggestion
            else f"types are {', '.join(map(str, dict.fromkeys(NAMES.values())))}, decimal, array, map, struct"
        )
        raise TypeTextError(f"there is no type {token.text}", token.offset, hint)

    def decimal(self) -> Type:
        if self.next.text != "(":
            return Decimal(10, 0)
        self.take()
        precision = self.number(1, 38, "precision")
        scale = 0
        if self.next.text == ",":
            self.take()
            scale = self.number(0, precision, "scale")
        self.mark(")")
        return Decimal(precision, scale)

    def number(self, low: int, high: int, noun: str) -> int:
        token = self.take()
        if token.kind != "number" or len(token.text) > 4 or not low <= int(token.text) <= high:
            raise TypeTextError(
                f"a decimal's {noun} is a number from {low} to {high} here", token.offset, "write for example `decimal(18,2)`"
            )
        return int(token.text)

    def map(self, depth: int) -> Type:
        self.mark("<")
        offset = self.next.offset
        key = self.type(depth + 1)
        if holds_map(key):
            raise TypeTextError("the key of a map cannot hold a map", offset, "use a string key")
        self.mark(",")
        value = self.type(depth + 1)
        self.mark(">")
        return Map(key, value)

    def struct(self, depth: int) -> Type:
        self.mark("<")
        fields: list[Field] = []
        field_names: set[str] = set()
        while True:
            token = self.take()
            if token.kind not in ("name", "quoted"):
                raise TypeTextError(
                    "a struct needs fields, each a name and a type", token.offset, "write for example `struct<a int, b string>`"
                )
            name = token.text if token.kind == "name" else token.text[1:-1].replace("``", "`")
            if folded(name) in field_names:
                raise TypeTextError(
                    f"the struct has two fields {name}; case does not tell them apart", token.offset, "rename one"
                )
            field_names.add(folded(name))
            if self.next.text == ":":
                self.take()
            fields.append(Field(name, self.type(depth + 1)))
            self.no_clause()
            if self.next.text != ",":
                break
            self.take()
        self.mark(">")
        return Struct(tuple(fields))

    def no_clause(self) -> None:
        if self.next.kind == "name" and self.next.text.lower() in ("not", "comment", "collate", "default"):
            clause = self.next.text.upper()
            raise TypeTextError(
                f"{clause} has no effect inside a type", self.next.offset, "leave it out; say `required` and `doc` at the column"
            )
