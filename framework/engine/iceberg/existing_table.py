"""What Iceberg's own JSON says of a table, as `framework.plan.change` compares it: the same for Spark's JVM and for PyIceberg."""

from __future__ import annotations

import json
from typing import Any

from framework import types
from framework.engine.rules.protocol import ACCEPTED, OWNER, WRITE
from framework.plan.change import Existing
from framework.types import Type

_ATOMS: dict[str, Type] = {
    **{str(atom): atom for atom in (types.BOOLEAN, types.INT, types.FLOAT, types.DOUBLE, types.STRING, types.BINARY, types.DATE)},
    "long": types.BIGINT,
    "timestamp": types.TIMESTAMP_NTZ,
    "timestamptz": types.TIMESTAMP,
}


def existing(schema: str, partitions: str, order: str, format_version: int, properties: Any) -> Existing:
    """From the JSON of a schema, of a partition spec and of a sort order, and from the properties."""
    said = json.loads(schema)
    names = dict(_names(said, ""))
    fields = [
        field for field in json.loads(partitions)["fields"] if field["transform"] != "void"
    ]  # void: no longer partitioned by
    return Existing(
        columns=_struct(said).fields,
        partition_by=tuple(_transformed(field, names) for field in fields),
        sort_by=tuple(_ordered(field, names) for field in json.loads(order)["fields"]),
        format_version=format_version,
        owner=properties.get(OWNER),
        accepted=frozenset(json.loads(properties.get(ACCEPTED) or "[]")),
        words=properties.get(WRITE) or "",
    )


def _type(said: Any) -> Type:
    """A type that no spec can ask for keeps Iceberg's name, which equals none."""
    if isinstance(said, str):
        return types.parse(said) if said.startswith("decimal") else _ATOMS.get(said) or types.Atom(said)
    if said["type"] == "struct":
        return _struct(said)
    if said["type"] == "list":
        return types.Array(_type(said["element"]))
    return types.Map(_type(said["key"]), _type(said["value"]))


def _struct(said: Any) -> types.Struct:
    return types.Struct(tuple(types.Field(field["name"], _type(field["type"])) for field in said["fields"]))


def _names(said: Any, before: str) -> Any:
    """The names of fields by their ids; those inside of structs with the names before them."""
    for field in said["fields"]:
        yield field["id"], before + field["name"]
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from _names(field["type"], f"{before}{field['name']}.")


def _transformed(field: Any, names: dict[int, str]) -> str:
    """As `partition_by` writes it: Iceberg has `bucket[16]` where specs have `bucket(16, c)`."""
    name = names.get(field.get("source-id"), "?")
    transform, _, width = field["transform"].rstrip("]").partition("[")
    if transform == "identity":
        return name
    return f"{transform}({width}, {name})" if width else f"{transform}({name})"


def _ordered(field: Any, names: dict[int, str]) -> str:
    """As `sort_by` writes it, which is upwards with nulls first; anything else is said behind the name."""
    down = field["direction"] == "desc"
    last = field["null-order"] == "nulls-last"
    return (
        _transformed(field, names)
        + (" desc" if down else "")
        + ("" if last == down else f" {'nulls last' if last else 'nulls first'}")
    )
