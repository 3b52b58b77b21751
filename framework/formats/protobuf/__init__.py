"""Protobuf: messages as Confluent's clients write them. Behind the schema's id stands which message type it is, then the message.

Guarantee: bytes that are cut off, that have fields which the schema does not have, that lack a required field or hold a value that
its column cannot take make a bad row, never another value and never an error.
Limit: only the first message type of a schema; one that contains itself, a group and an extension have no columns. Of times only
whole microseconds are kept.
Cost: a Python worker, and a few microseconds per message there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from framework.encoding.confluent_frame import Read, decoded
from framework.formats import OBJECT, BySchema
from framework.formats.protobuf.columns import shapes
from framework.formats.protobuf.encode import encoder, schema_text
from framework.model import Native, Of
from framework.model.schemas import Schema
from framework.schemas.versions import Merged, Path
from framework.sql.quote import identifier
from framework.types import BOOLEAN, Field, Struct

__all__ = ["KEY", "VALUE", "Using", "Written", "decoder", "encoder", "read", "schema_text", "shapes"]

WRONG = "_sluice_wrong"


@dataclass(frozen=True)
class Written:
    """By what messages with this id are written; `names` are its fields that have another name in the columns."""

    id: int
    schema: Schema
    names: tuple[tuple[Path, str], ...]


@dataclass(frozen=True)
class Using:
    """Messages become structs: the columns, and last whether the message is not what its schema says. Null for a message that has
    none of these ids. Holds plain data only, since it travels to Python workers; each of them compiles a schema once."""

    versions: tuple[Written, ...]
    type: Struct

    def __call__(self, array: Any) -> Any:
        from framework.formats.protobuf.decode import structs

        return structs(array, tuple((each.id, each.schema, each.names) for each in self.versions), self.type)


def decoder(schema: Schema) -> Callable[[bytes], str]:
    from framework.formats.protobuf import shown

    return shown.decoder(schema)


def read(of: Of, merged: Merged) -> Read:
    columns = tuple(Field(shape.name, shape.type) for shape in merged.shapes)
    type_ = Struct((*columns, Field(WRONG, BOOLEAN)))
    versions = tuple(Written(fit.version.id, fit.version.schema, tuple(sorted(fit.names.items()))) for fit in merged.fits)
    return Read(
        columns=tuple((column.name, f"{decoded(of)}.{identifier(column.name)}") for column in columns),
        wrong=f"coalesce({decoded(of)}.{WRONG}, false)",
        natively=(Native(of, decoded(of), type_, Using(versions, type_)),),
    )


VALUE = KEY = BySchema(
    kind="PROTOBUF",
    shapes=shapes,
    read=read,
    encoder=encoder,
    decoder=decoder,
    schema_text=schema_text,
    sample=OBJECT,
)
