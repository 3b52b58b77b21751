"""An existing table from Iceberg's JSON, as `framework.plan.change` compares it: the same for Spark's JVM and for PyIceberg."""

from __future__ import annotations

import json
from typing import Any

from framework.base import type_text, types
from framework.base.types import Type
from framework.core.rules.protocol import ACCEPTED, OWNER, WRITE
from framework.plan.change import TableNow

_ATOMS: dict[str, Type] = {
    **{str(atom): atom for atom in (types.BOOLEAN, types.INT, types.FLOAT, types.DOUBLE, types.STRING, types.BINARY, types.DATE)},
    "long": types.BIGINT,
    "timestamp": types.TIMESTAMP_NTZ,
    "timestamptz": types.TIMESTAMP,
}


def existing(schema: str, partitions: str, order: str, format_version: int, properties: Any) -> TableNow:
    """The table from the JSON of its schema, partition spec and sort order, and from its properties."""
    parsed_schema = json.loads(schema)
    names = dict(_names(parsed_schema, ""))
    fields = [
        field for field in json.loads(partitions)["fields"] if field["transform"] != "void"
    ]  # void: no longer partitioned by
    return TableNow(
        columns=_struct(parsed_schema).fields,
        partition_by=tuple(_transformed(field, names) for field in fields),
        sort_by=tuple(_ordered(field, names) for field in json.loads(order)["fields"]),
        format_version=format_version,
        owner=properties.get(OWNER),
        accepted=frozenset(json.loads(properties.get(ACCEPTED) or "[]")),
        words=properties.get(WRITE) or "",
    )


def _type(json_type: Any) -> Type:
    """The type of a field in Iceberg's JSON. A type that no spec can ask for keeps Iceberg's name, which equals no other."""
    if isinstance(json_type, str):
        return type_text.parse(json_type) if json_type.startswith("decimal") else _ATOMS.get(json_type) or types.Atom(json_type)
    if json_type["type"] == "struct":
        return _struct(json_type)
    if json_type["type"] == "list":
        return types.Array(_type(json_type["element"]))
    return types.Map(_type(json_type["key"]), _type(json_type["value"]))


def _struct(json_struct: Any) -> types.Struct:
    return types.Struct(tuple(types.Field(field["name"], _type(field["type"])) for field in json_struct["fields"]))


def _names(json_struct: Any, prefix: str) -> Any:
    """The names of fields by their ids; the name of a field inside a struct is the path to it."""
    for field in json_struct["fields"]:
        yield field["id"], prefix + field["name"]
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from _names(field["type"], f"{prefix}{field['name']}.")


def _transformed(field: Any, names: dict[int, str]) -> str:
    """A partition field as `partition_by` writes it: Iceberg has `bucket[16]` where specs have `bucket(16, c)`."""
    name = names.get(field.get("source-id"), "?")
    transform, _, width = field["transform"].rstrip("]").partition("[")
    if transform == "identity":
        return name
    return f"{transform}({width}, {name})" if width else f"{transform}({name})"


def _ordered(field: Any, names: dict[int, str]) -> str:
    """A sort field as `sort_by` writes it: ascending with nulls first; anything else follows the name."""
    is_descending = field["direction"] == "desc"
    nulls_last = field["null-order"] == "nulls-last"
    return (
        _transformed(field, names)
        + (" desc" if is_descending else "")
        + ("" if nulls_last == is_descending else f" {'nulls last' if nulls_last else 'nulls first'}")
    )
