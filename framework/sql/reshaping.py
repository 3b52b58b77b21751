"""Compare types of a spec with types of a schema, and convert values between them, with fields matched by name."""

from __future__ import annotations

from collections.abc import Iterator

from framework.base.types import Array, Map, Struct, Type, widens
from framework.sql.quote import identifier, literal


def unlike(asked: Type, there: Type, name: str) -> Iterator[str]:
    """The differences that keep the type `asked` from holding values of the type `there`. A struct may lack fields of the other."""
    if isinstance(asked, Struct) and isinstance(there, Struct):
        fields = {each.name: each.type for each in there.fields}
        for each in asked.fields:
            if each.name not in fields:
                yield f"`{name}` has no field `{each.name}`"
            else:
                yield from unlike(each.type, fields[each.name], f"{name}.{each.name}")
    elif isinstance(asked, Array) and isinstance(there, Array):
        yield from unlike(asked.element, there.element, name)
    elif isinstance(asked, Map) and isinstance(there, Map) and asked.key == there.key:
        yield from unlike(asked.value, there.value, name)
    elif asked != there and not widens(there, asked):
        yield f"`{name}` is {there}, and the spec says {asked}"


def reshaped(sql: str, there: Type, asked: Type, depth: int = 0) -> str:
    """SQL that converts a value to the type `asked`, with fields matched by name."""
    if there == asked:
        return sql
    inner = f"r{depth}"
    if isinstance(asked, Struct) and isinstance(there, Struct):
        fields = {each.name: each.type for each in there.fields}
        parts = ", ".join(
            f"{literal(each.name)}, {reshaped(f'{sql}.{identifier(each.name)}', fields[each.name], each.type, depth)}"
            for each in asked.fields
        )
        return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({parts}) END"
    if isinstance(asked, Array) and isinstance(there, Array):
        return f"transform({sql}, {inner} -> {reshaped(inner, there.element, asked.element, depth + 1)})"
    if isinstance(asked, Map) and isinstance(there, Map):
        return f"transform_values({sql}, (k{depth}, {inner}) -> {reshaped(inner, there.value, asked.value, depth + 1)})"
    return f"CAST({sql} AS {asked.sql})"
