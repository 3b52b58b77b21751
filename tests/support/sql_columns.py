"""Columns that SQL of tests is about."""

from __future__ import annotations

from framework.base.type_text import parse

COLUMNS = {
    "s": parse("string"),
    "n": parse("double"),
    "i": parse("int"),
    "a": parse("boolean"),
    "b": parse("boolean"),
    "d": parse("date"),
    "t": parse("timestamp"),
    "list": parse("array<string>"),
    "codes": parse("map<string,int>"),
    "place": parse("struct<building: string, floor: int>"),
}
MORE_COLUMNS = {
    **COLUMNS,
    **{
        name: parse(type)
        for name, type in {
            "r": "string",
            "l": "bigint",
            "u": "timestamp_ntz",
            "p": "decimal(10,2)",
            "raw": "binary",
            "ints": "array<int>",
        }.items()
    },
}
