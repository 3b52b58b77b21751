"""Types of a spec held against those of a schema, and values brought from one to the other, their fields by name."""

from __future__ import annotations

from collections.abc import Iterator

from framework.sql.quote import identifier, literal
from framework.types import Array, Map, Struct, Type, widens


def unlike(asked: Type, there: Type, name: str) -> Iterator[str]:
    """Where a type does not hold what another one does; of a struct it may have some of the fields."""
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
    """A value as the type that is asked for, its fields by their names."""
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
