"""Type texts: which are accepted, how they are shown, and the errors of the rest."""

from __future__ import annotations

import pytest

from framework.base import type_text, types
from framework.base.type_text import TypeTextError, parse

ACCEPTED = {
    "int": "int",
    "INTEGER": "int",
    "long": "bigint",
    "byte": "tinyint",
    "Short": "smallint",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "decimal": "decimal(10,0)",
    "dec(5)": "decimal(5,0)",
    "numeric( 38 , 38 )": "decimal(38,38)",
    "array<array<string>>": "array<array<string>>",
    "MAP<string, ARRAY<double>>": "map<string,array<double>>",
    "struct<building string, floor int>": "struct<building:string,floor:int>",
    "struct<building: string>": "struct<building:string>",
    " struct < `a b` : int , `c``d` binary > ": "struct<a b:int,c`d:binary>",
}
REFUSED = [
    ("strng", 0, "did you mean string?"),
    ("text", 0, "did you mean string?"),
    ("TIMESTAMPTZ", 0, "did you mean timestamp?"),
    ("map<string, number>", 12, "did you mean decimal(18,2)?"),
    ("", 0, "bigint"),
    ("int int", 4, "one word"),
    ("array<", 6, "bigint"),
    ("array<int", 9, "array<string>"),
    ("array<int>>", 10, "one word"),
    ("map<int>", 7, "array<string>"),
    ("map<map<int,int>,int>", 4, "string key"),
    ("struct<>", 7, "struct<a int, b string>"),
    ("struct<a int, A string>", 14, "rename one"),
    ("struct<a int not null>", 13, "required"),
    ("struct<a int comment 'x'>", 21, "backquotes"),
    ("decimal(39,2)", 8, "decimal(18,2)"),
    ("decimal(5,6)", 10, "decimal(18,2)"),
    ("decimal(0)", 8, "decimal(18,2)"),
    ("decimal(18,-2)", 11, "backquotes"),
    ("varchar(10)", 0, "write `string`"),
    ("interval day", 0, "seconds"),
    ("variant", 0, "string"),
    ("array<void>", 6, "the type"),
    ("int;", 3, "backquotes"),
    ("array<" * 1000 + "int" + ">" * 1000, 198, "flatten"),
]


@pytest.mark.parametrize(("text", "expected"), ACCEPTED.items())
def test_what_spark_accepts_is_accepted(text: str, expected: str) -> None:
    type = parse(text)
    assert str(type) == expected
    assert parse(type.sql) == type


@pytest.mark.parametrize(("text", "offset", "hint"), REFUSED, ids=[text[:20] for text, _, _ in REFUSED])
def test_what_no_column_can_have_is_refused_with_its_place(text: str, offset: int, hint: str) -> None:
    with pytest.raises(TypeTextError) as caught:
        parse(text)
    assert caught.value.offset == offset
    assert caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", type_text.ELSEWHERE)
def test_types_of_other_systems_are_refused_with_the_type_to_write(name: str) -> None:
    with pytest.raises(TypeTextError):
        parse(name)
    parse(type_text.ELSEWHERE[name])


def test_types_are_numeric_integral_or_fractional() -> None:
    numbers = [parse(text) for text in ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(3,1)")]
    assert all(types.is_numeric(type) for type in numbers)
    assert [types.is_integral(type) for type in numbers] == [True] * 4 + [False] * 3
    assert [types.is_fractional(type) for type in numbers] == [False] * 4 + [True, True, False]
    assert not types.is_numeric(types.STRING)
    assert types.holds_map(parse("array<struct<a map<int,int>>>"))
    assert not types.holds_map(parse("array<struct<a int>>"))


def test_fields_are_found_as_spark_finds_them() -> None:
    place = parse("struct<Building string, floor int>")
    assert isinstance(place, types.Struct)
    field = place.field("BUILDING")
    assert field is not None
    assert field.name == "Building"
    assert place.field("room") is None
