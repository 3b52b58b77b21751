"""The columns that a Protobuf schema describes: the fields of its first message type, in their order."""

from __future__ import annotations

from dataclasses import dataclass, field

from framework.base.types import BIGINT, BINARY, BOOLEAN, DEEPEST, DOUBLE, FLOAT, INT, STRING, Array, Field, Map, Struct, Type
from framework.messages.formats.protobuf.compiler import Descriptor, MessageTypes, messages, meta
from framework.messages.formats.protobuf.well_known_types import DECIMAL, UNSIGNED, WELL_KNOWN, decimal_type
from framework.messages.schemas.versions import ColumnShape, Unsupported
from framework.plan.schema import Schema

MOST = 5_000
"""Fields of a schema, counted at each place where they become columns."""

# The types of columns, by the numbers that descriptors have for a field's type.
SCALARS: dict[int, Type] = {
    1: DOUBLE, 2: FLOAT, 8: BOOLEAN, 9: STRING, 12: BINARY,
    5: INT, 15: INT, 17: INT,  # int32, sfixed32, sint32
    13: BIGINT, 7: BIGINT,  # uint32, fixed32
    3: BIGINT, 16: BIGINT, 18: BIGINT,  # int64, sfixed64, sint64
    4: UNSIGNED, 6: UNSIGNED,  # uint64, fixed64
    14: STRING,  # an enum's names
}  # fmt: skip
STRING_FIELD, GROUP, MESSAGE, ENUM = 9, 10, 11, 14


def shapes(schema: Schema) -> tuple[ColumnShape, ...]:
    all_messages = messages(schema)
    columns = _Walk(all_messages).fields(all_messages.first, (), 0)
    if not columns:
        raise Unsupported(f"the message `{all_messages.first.full_name}` has no fields", "a table needs a column")
    return columns


@dataclass
class _Walk:
    declared: MessageTypes
    path: list[str] = field(default_factory=list)

    def fields(self, message: Descriptor, outer_names: tuple[str, ...], depth: int) -> tuple[ColumnShape, ...]:
        self.check(message, outer_names, depth)
        names_here = (*outer_names, message.full_name)
        shapes = [shape for field in message.fields if (shape := self.shape(field, names_here, depth))]
        spellings: dict[str, str] = {}
        for name in (shape.name for shape in shapes):
            if name.lower() in spellings:
                earlier_name = spellings[name.lower()]
                raise Unsupported(
                    f"`{earlier_name}` and `{name}` of `{message.full_name}` differ only in case", "columns need other names"
                )
            spellings[name.lower()] = name
        return tuple(shapes)

    def check(self, message: Descriptor, outer_names: tuple[str, ...], depth: int) -> None:
        name = message.full_name
        if name in outer_names:
            raise Unsupported(f"the message `{name}` contains itself", "columns cannot; keep the topic as `value: bytes`")
        if depth > DEEPEST:
            raise Unsupported(f"`{name}` is nested deeper than {DEEPEST} levels", "keep the topic as `value: bytes`")
        if message.file.pool.FindAllExtensions(message):
            raise Unsupported(f"the schema extends the message `{name}`", "make the extensions fields of the message")

    def shape(self, field: Descriptor, outer_names: tuple[str, ...], depth: int) -> ColumnShape | None:
        """Returns the column of a field; None if it can hold no value, as a message without fields."""
        self.path.append(field.full_name)
        if len(self.path) > MOST:
            raise Unsupported(f"it has more than {MOST:,} fields", "keep the topic as `value: bytes`")
        leaf, wrap = field, ""
        if field.message_type and field.message_type.full_name in self.declared.maps:
            leaf, wrap = field.message_type.fields_by_name["value"], "map"
        elif field.is_repeated:
            wrap = "array"
        type_, inside = self.leaf(leaf, field, outer_names, depth + bool(wrap))
        if type_ is None:
            return None
        if wrap:
            type_ = Array(type_) if wrap == "array" else Map(STRING, type_)
        doc = self.declared.docs.get(field.full_name) or meta(field)[0]
        return ColumnShape(field.name, type_, doc, number=field.number, inside=inside)

    def leaf(
        self, leaf: Descriptor, outer: Descriptor, outer_names: tuple[str, ...], depth: int
    ) -> tuple[Type | None, tuple[ColumnShape, ...]]:
        """Returns the type of one value of a field, without the list or map that it is in, and the fields inside it."""
        if leaf.type == GROUP:
            raise Unsupported(f"`{outer.full_name}` is a group", "make it a field of a message type")
        if leaf.type != MESSAGE:
            return SCALARS[leaf.type], ()
        name = leaf.message_type.full_name
        if name == DECIMAL:
            try:
                return decimal_type(meta(outer)[1]), ()
            except ValueError as error:
                raise Unsupported(f"`{outer.full_name}`: {error}", "see `params` of its `(confluent.field_meta)`") from None
        if name in WELL_KNOWN:
            return WELL_KNOWN[name].type, ()
        inside = self.fields(leaf.message_type, outer_names, depth + 1)
        return (Struct(tuple(Field(shape.name, shape.type) for shape in inside)) if inside else None), inside
