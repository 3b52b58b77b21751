"""Compares types of a spec with types of a schema, and converts values between them, with fields matched by name."""

from __future__ import annotations

from collections.abc import Iterator

from framework.base.types import Array, Map, Struct, Type, widens
from framework.sql.quote import identifier, literal


def unlike(target: Type, source: Type, name: str) -> Iterator[str]:
    """Yields the differences that keep `target` from holding values of `source`. A struct may lack fields of the source."""
    if isinstance(target, Struct) and isinstance(source, Struct):
        fields = {field.name: field.type for field in source.fields}
        for target_field in target.fields:
            if target_field.name not in fields:
                yield f"`{name}` has no field `{target_field.name}`"
            else:
                yield from unlike(target_field.type, fields[target_field.name], f"{name}.{target_field.name}")
    elif isinstance(target, Array) and isinstance(source, Array):
        yield from unlike(target.element, source.element, name)
    elif isinstance(target, Map) and isinstance(source, Map) and target.key == source.key:
        yield from unlike(target.value, source.value, name)
    elif target != source and not widens(source, target):
        yield f"`{name}` is {source}, and the spec says {target}"


def reshaped(sql: str, source: Type, target: Type, depth: int = 0) -> str:
    """Returns SQL that converts a value to the type `target`, with fields matched by name."""
    if source == target:
        return sql
    inner = f"r{depth}"
    if isinstance(target, Struct) and isinstance(source, Struct):
        fields = {field.name: field.type for field in source.fields}
        parts = ", ".join(
            f"{literal(field.name)}, {reshaped(f'{sql}.{identifier(field.name)}', fields[field.name], field.type, depth)}"
            for field in target.fields
        )
        return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({parts}) END"
    if isinstance(target, Array) and isinstance(source, Array):
        return f"transform({sql}, {inner} -> {reshaped(inner, source.element, target.element, depth + 1)})"
    if isinstance(target, Map) and isinstance(source, Map):
        return f"transform_values({sql}, (k{depth}, {inner}) -> {reshaped(inner, source.value, target.value, depth + 1)})"
    return f"CAST({sql} AS {target.sql})"
