"""Messages become Arrow arrays, a column at a time. Loaded in Python workers only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, compress, repeat
from operator import attrgetter
from typing import Any

import pyarrow as pa

from framework import types
from framework.formats.protobuf.columns import BOOL_FIELD, ENUM, MESSAGE, STRING_FIELD
from framework.formats.protobuf.compiler import Descriptor, messages
from framework.formats.protobuf.well_known_types import KNOWN
from framework.model.schemas import Schema
from framework.schemas.versions import Path
from framework.types import Array, Decimal, Map, Struct, Type

PIECE = 1_000  # messages that are objects at one time; more are slower, since they do not stay in the processor's caches
_ATOMS: dict[Type, pa.DataType] = {
    types.BOOLEAN: pa.bool_(), types.INT: pa.int32(), types.BIGINT: pa.int64(), types.FLOAT: pa.float32(),
    types.DOUBLE: pa.float64(), types.STRING: pa.string(), types.BINARY: pa.binary(), types.DATE: pa.date32(),
    types.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}  # fmt: skip

Names = tuple[tuple[Path, str], ...]
Wrong = set[int]
# Takes values of one field, which rows they belong to, and a set for the rows in which one of them is wrong.
Column = Callable[[list[Any], Sequence[int], Wrong], pa.Array]


def arrow(type_: Type) -> pa.DataType:
    match type_:
        case Array():
            return pa.list_(arrow(type_.element))
        case Map():
            return pa.map_(arrow(type_.key), arrow(type_.value))
        case Struct():
            return pa.struct(_fields(type_))
        case Decimal():
            return pa.decimal128(type_.precision, type_.scale)
    return _ATOMS[type_]


def _fields(type_: Struct) -> list[pa.Field]:
    return [pa.field(field.name, arrow(field.type)) for field in type_.fields]


def structs(array: pa.Array, versions: Sequence[tuple[int, Schema, Names]], type_: Struct) -> pa.StructArray:
    """`type_` ends with the field that says what is wrong."""
    known = {b"\0" + (id & 0xFFFFFFFF).to_bytes(4, "big"): _version(schema, names, type_) for id, schema, names in versions}
    made = [_piece(array.slice(at, PIECE).to_pylist(), known, type_) for at in range(0, max(len(array), 1), PIECE)]
    return made[0] if len(made) == 1 else pa.concat_arrays(made)


def _piece(written: list[bytes | None], known: Mapping[bytes, Callable[..., pa.Array]], type_: Struct) -> pa.StructArray:
    prefixes = [b"" if message is None else message[:5] for message in written]
    different = set(prefixes)
    if len(different) == 1 and prefixes[0] in known:
        return known[prefixes[0]](_bodies(written))
    parts: list[pa.Array] = []
    places: dict[int, int] = {}
    for prefix in sorted(different & known.keys()):
        rows = [row for row, each in enumerate(prefixes) if each == prefix]
        parts.append(known[prefix](_bodies([written[row] for row in rows])))
        places |= {row: place for place, row in enumerate(rows, len(places))}
    together = pa.concat_arrays([*parts, pa.nulls(1, arrow(type_))])
    return together.take(pa.array([places.get(row) for row in range(len(written))], pa.int64()))


def _bodies(written: Sequence[Any]) -> list[bytes | None]:
    """What stands behind the place of the message type in the schema: how many numbers, then these, of which a lone 0 is short
    for one that is 0. None for any but the first type."""
    return [message[6:] if message[5:6] == b"\0" else message[7:] if message[5:7] == b"\2\0" else None for message in written]


@lru_cache(maxsize=64)
def _version(schema: Schema, names: Names, type_: Struct) -> Callable[[list[bytes | None]], pa.StructArray]:
    """Reads messages that are written by this schema."""
    from google.protobuf.message import DecodeError
    from google.protobuf.message_factory import GetMessageClass

    found = messages(schema)
    message_class = GetMessageClass(found.first)
    parse = message_class.FromString
    columns = _Columns(dict(names)).of(found.first, Struct(type_.fields[:-1]), ())
    fields = _fields(type_)
    required = _requires(found.first, set())

    def one(body: bytes | None) -> Any:
        try:
            return None if body is None else parse(body)
        except DecodeError:
            return None

    def read(bodies: list[bytes | None]) -> pa.StructArray:
        wrong: Wrong = set()
        try:
            made = list(map(parse, bodies))
        except (DecodeError, TypeError):  # at least one cannot be read, or is of another type
            made = [one(body) for body in bodies]
            wrong.update(row for row, message in enumerate(made) if message is None)
            made = [message_class() if message is None else message for message in made]
        if required:
            wrong.update(row for row, message in enumerate(made) if not message.IsInitialized())
        arrays = columns(made, range(len(made)), wrong)
        if wrong:
            right = pa.array([None if row in wrong else row for row in range(len(made))], pa.int64())
            arrays = [array.take(right) for array in arrays]
        flags = pa.array([row in wrong for row in range(len(made))]) if wrong else pa.repeat(pa.scalar(False), len(made))
        return pa.StructArray.from_arrays([*arrays, flags], fields=fields)

    return read


def _requires(message: Descriptor, seen: set[str]) -> bool:
    """Whether a field is required, at any depth. The parser does not look."""
    if message.full_name in seen:
        return False
    seen.add(message.full_name)
    return any(field.is_required or (field.message_type and _requires(field.message_type, seen)) for field in message.fields)


class _Columns:
    """Makes what makes columns of one version's messages."""

    def __init__(self, names: Mapping[Path, str]) -> None:
        from google.protobuf.unknown_fields import UnknownFieldSet

        self.names = names
        self.unknown = UnknownFieldSet

    def strange(self, found: list[Any], rows: Sequence[int], wrong: Wrong) -> None:
        """Rows with messages that have fields which the schema does not have."""
        unknown = self.unknown
        many = [message is not None and len(unknown(message)) for message in found]
        if any(many):
            wrong.update(compress(rows, many))

    def of(self, message: Descriptor, type_: Struct, path: Path) -> Callable[..., list[pa.Array]]:
        """A message's fields as the arrays of the struct."""
        by_name = {self.names.get((*path, field.name), field.name): field for field in message.fields}
        columns = {field.name for field in type_.fields}
        hidden = [self.hidden(field, path) for name, field in by_name.items() if name not in columns and field.message_type]
        makers: list[tuple[Column | None, pa.DataType]] = [
            (self.column(by_name[field.name], field.type, (*path, by_name[field.name].name)), arrow(field.type))
            if field.name in by_name
            else (None, arrow(field.type))
            for field in type_.fields
        ]

        def make(found: list[Any], rows: Sequence[int], wrong: Wrong) -> list[pa.Array]:
            self.strange(found, rows, wrong)
            for look in hidden:
                look(found, rows, wrong)
            return [each(found, rows, wrong) if each else pa.nulls(len(found), type_) for each, type_ in makers]

        return make

    def hidden(self, field: Descriptor, path: Path) -> Callable[..., Any]:
        """A message without fields has no column, and yet there may be in it what the schema does not have."""
        inside, name, get = self.of(field.message_type, Struct(()), path), field.name, attrgetter(field.name)
        if field.is_repeated:
            return lambda found, rows, wrong: inside(*_flat(list(map(get, found)), rows), wrong)
        return lambda found, rows, wrong: inside(
            *_flat([(get(message),) if message.HasField(name) else () for message in found], rows), wrong
        )

    def column(self, field: Descriptor, type_: Type, path: Path) -> Column:
        """Of messages, one field of them."""
        get = attrgetter(field.name)
        if isinstance(type_, Map):
            return self.map(field, type_, path)
        if isinstance(type_, Array):
            items = self.values(field, type_.element, path)

            def lists(found: list[Any], rows: Sequence[int], wrong: Wrong) -> pa.Array:
                parts = list(map(get, found))
                return pa.ListArray.from_arrays(_offsets(parts), items(*_flat(parts, rows), wrong))

            return lists
        values = self.values(field, type_, path)
        if not field.has_presence or field.has_default_value:
            return lambda found, rows, wrong: values(list(map(get, found)), rows, wrong)
        name = field.name
        return lambda found, rows, wrong: values([get(m) if m.HasField(name) else None for m in found], rows, wrong)

    def map(self, field: Descriptor, type_: Map, path: Path) -> Column:
        """The last of equal keys counts. A key or a value that an entry does not have is the default, as protobuf has it."""
        get = attrgetter(field.name)
        entry = field.message_type.fields_by_name
        keys = self.values(entry["key"], types.STRING, path)
        values = self.values(entry["value"], type_.value, path)
        text = _text_of_key(entry["key"])

        def make(found: list[Any], rows: Sequence[int], wrong: Wrong) -> pa.Array:
            parts = list(map(get, found))
            self.strange(*_flat(parts, rows), wrong)
            last = [{each.key: each.value for each in entries} for entries in parts]
            texts, owners = _flat(last, rows)
            named = keys([text(key) for key in texts], owners, wrong).fill_null("")  # null: it is not UTF-8
            items = values(list(chain.from_iterable(map(dict.values, last))), owners, wrong)
            return pa.MapArray.from_arrays(_offsets(last), named, items)

        return make

    def values(self, field: Descriptor, type_: Type, path: Path) -> Column:
        """Of single values, None where there is none."""
        if field.type == ENUM:
            return _enums(field)
        if field.type != MESSAGE:
            return _plain(type_)
        if isinstance(type_, Struct):
            return self.struct(field, type_, path)
        value, plain = KNOWN[field.message_type.full_name].value, _plain(type_)

        def make(found: list[Any], rows: Sequence[int], wrong: Wrong) -> pa.Array:
            self.strange(found, rows, wrong)
            try:
                made = [None if message is None else value(message, type_) for message in found]
            except ValueError:
                made = [one(message, row, wrong) for row, message in zip(rows, found, strict=True)]
            return plain(made, rows, wrong)

        def one(message: Any, row: int, wrong: Wrong) -> Any:
            try:
                return None if message is None else value(message, type_)
            except ValueError:
                wrong.add(row)
                return None

        return make

    def struct(self, field: Descriptor, type_: Struct, path: Path) -> Column:
        from google.protobuf.message_factory import GetMessageClass

        children, fields = self.of(field.message_type, type_, path), _fields(type_)
        empty = GetMessageClass(field.message_type)()

        def make(found: list[Any], rows: Sequence[int], wrong: Wrong) -> pa.Array:
            absent = [message is None for message in found]
            there = [empty if message is None else message for message in found]
            return pa.StructArray.from_arrays(children(there, rows, wrong), fields=fields, mask=pa.array(absent, pa.bool_()))

        return make


def _plain(type_: Type) -> Column:
    target = arrow(type_)

    def make(found: list[Any], rows: Sequence[int], wrong: Wrong) -> pa.Array:
        try:
            return pa.array(found, target)
        except pa.ArrowInvalid:  # the text of a proto2 message need not be UTF-8; it comes as bytes then
            bad = [isinstance(value, bytes) and type_ == types.STRING for value in found]
            wrong.update(compress(rows, bad))
            return pa.array([None if is_bad else value for value, is_bad in zip(found, bad, strict=True)], target)

    return make


def _enums(field: Descriptor) -> Column:
    """The first name that a number has; the number where the schema has no name for it."""
    names: dict[int, str] = {}
    for value in field.enum_type.values:
        names.setdefault(value.number, value.name)
    plain = _plain(types.STRING)
    return lambda found, rows, wrong: plain(
        [None if number is None else names.get(number) or str(number) for number in found], rows, wrong
    )


def _text_of_key(field: Descriptor) -> Callable[[Any], Any]:
    if field.type == BOOL_FIELD:
        return lambda key: "true" if key else "false"
    return (lambda key: key) if field.type == STRING_FIELD else str


def _offsets(parts: Sequence[Any]) -> pa.Array:
    return pa.array(accumulate(map(len, parts), initial=0), pa.int32())


def _flat(parts: Sequence[Any], rows: Sequence[int]) -> tuple[list[Any], list[int]]:
    """All items, and the rows that they are of."""
    return list(chain.from_iterable(parts)), list(chain.from_iterable(map(repeat, rows, map(len, parts))))
