"""The formats of messages, one file or package each: what columns messages become, what makes one unreadable, and how one is written.

A file says as `VALUE` how its format is used for values, as `KEY` how for keys: `DeclaredColumns`, `OneColumn` or
`RegisteredSchema`, and may say as `CONNECT` which converter of Kafka Connect reads it. A plan loads the file, so a format's own libraries
are imported inside functions only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

from framework.base.components import components_in
from framework.base.types import BIGINT, DATE, DOUBLE, STRING, TIMESTAMP, Array, Decimal, Field as Typed, Struct, Type
from framework.messages.encoding.confluent_frame import DecoderDescription
from framework.messages.encoding.fields import MessageField
from framework.messages.encoding.json_text import Decoded
from framework.messages.encoding.schema_writer import Way, Writer
from framework.messages.schemas.versions import ColumnShape, Merged, Path, Unsupported
from framework.plan import ChangeFormat, Column, Decoding, Fault, MessagePart, part_sql
from framework.plan.schema import Schema

FORMATS = components_in(__name__)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A message for the behaviour suite: its columns, their values as JSON has them, and bytes that are no such message, or None."""

    columns: tuple[Typed, ...]
    values: Mapping[str, Any]
    wrong: bytes | None


OBJECT = Sample(
    columns=(
        *(Typed("id", BIGINT), Typed("name", STRING), Typed("price", Decimal(10, 2)), Typed("ratio", DOUBLE), Typed("day", DATE)),
        *(Typed("at", TIMESTAMP), Typed("tags", Array(STRING)), Typed("place", Struct((Typed("floor", BIGINT),)))),
    ),
    values={
        "id": 7, "name": "grün", "price": 1.25, "ratio": 0.5, "day": "2026-01-02", "at": "2026-01-02T03:04:05Z", "tags": ["a", "b"],
        "place": {"floor": 3},
    },
    wrong=b'{"id": ',
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Guess:
    """The way `sluice init` reads a message: its rows, from which columns are inferred, and the fields of a key. Both return None
    for a message of another format."""

    rows: Callable[[bytes], Sequence[Mapping[str, Any]] | None]
    key: Callable[[bytes], Mapping[str, Any] | None]
    are_not: str  # completes "3 of 4 messages are …" for messages of another format
    are: str = ""  # completes it for messages of this format, where most are of another


@dataclass(frozen=True, kw_only=True)
class DeclaredColumns:
    """A message has the columns that the spec gives.

    `decoding`: returns Spark's SQL of these columns. Its second argument says whether a field that is no column makes a bad row.
    `encode`: returns the message of values as JSON has them, by their columns. A ValueError says why there is none.
    `wrong`: returns why bytes are plainly no message, to follow "the value …". Other faults are found by a batch only.
    """

    columns_from: ClassVar[str] = "spec"

    noun: str  # completes "the topic takes …"
    decoding: Callable[[Sequence[MessageField], bool], Decoding]
    encode: Callable[[Sequence[Column], Mapping[str, Any]], bytes]
    wrong: Callable[[bytes], str | None]
    decoded: Callable[[bytes], Decoded]  # for people
    sample: Sample
    refuses: Callable[[Type], tuple[str, str] | None] = lambda _: None  # a message and a hint for a column's type that it refuses
    written_as: bool = True  # whether a column's `format` means something
    takes_unknown_fields: bool = False
    changes: ChangeFormat | None = None
    guess: Guess | None = None  # None: `sluice init` does not guess the format


@dataclass(frozen=True, kw_only=True)
class OneColumn:
    """A message is one column, whose name is given.

    `decoding`: returns the SQL of a key or a value as a column of this name.
    `encode`: returns the message of a text or a number. A ValueError completes "the key …".
    `wrong`: like `wrong` of `DeclaredColumns`. None: all bytes are of the format.
    """

    columns_from: ClassVar[str] = "format"
    takes_unknown_fields: ClassVar[bool] = False
    changes: ClassVar[ChangeFormat | None] = None

    noun: str
    type: Type
    decoding: Callable[[MessagePart, str], Decoding]
    encode: Callable[[Any], bytes]
    wrong: Callable[[bytes], str | None] | None
    decoded: Callable[[bytes], Decoded]
    sample: Sample
    typed: Type = STRING  # the type of what people write for the column
    asks: tuple[str, str] = ("a text", "write a text")  # what a spec has to write for the column, and the hint
    guessed: str = ""  # completes "a column of the key, which …", where `sluice init` guesses it


@dataclass(frozen=True, kw_only=True)
class RegisteredSchema:
    """A message begins with the id of a schema in the registry, which says the columns.

    `read`: returns the decoder's description of the columns and of the schemas of all versions.
    `encoder`: returns a function that writes the bytes behind the id. A ValueError says which field does not fit.
    `decoder`: returns a function that reads the bytes behind the id as one line of JSON. A ValueError says what is wrong with them.
    `schema_text`: returns a schema with these columns, none of them required, or raises Unsupported. None: columns make no schema.
    """

    columns_from: ClassVar[str] = "registry"
    takes_unknown_fields: ClassVar[bool] = False

    kind: str  # of schemas, as a registry calls it
    shapes: Callable[[Schema], tuple[ColumnShape, ...]]
    read: Callable[[MessagePart, Merged], DecoderDescription]
    encoder: Callable[[Schema], Callable[[Any], bytes]]
    decoder: Callable[[Schema], Callable[[bytes], str]]
    schema_text: Callable[[str, Sequence[Typed]], str] | None
    sample: Sample
    way: Callable[[Schema], Way] = lambda _: Way()
    changes: ChangeFormat | None = None
    cannot_generate: str = ""  # why `sluice generate` makes no such messages


Format: TypeAlias = DeclaredColumns | OneColumn | RegisteredSchema


def every(of: MessagePart) -> Mapping[str, Format]:
    """The formats of keys or of values, by their names."""
    name = "VALUE" if of == "value" else "KEY"
    return having(name)


def having(attribute: str) -> Mapping[str, Any]:
    """The values of this attribute by the names of the formats whose files have it."""
    return {name: getattr(file, attribute) for name, file in FORMATS.load_all().items() if hasattr(file, attribute)}


def find(of: MessagePart, name: str) -> Format | None:
    """Returns the format of this name for keys or values; None if there is none, as for `key: none`."""
    try:
        file = FORMATS.load(name)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        return None
    format_: Format | None = getattr(file, "VALUE" if of == "value" else "KEY", None)
    return format_


def of_kind(kind: str) -> Mapping[str, RegisteredSchema]:
    """The formats of values whose schemas are of this kind: the plain one first, then those of changes."""
    formats = {
        name: format_
        for name, format_ in every("value").items()
        if isinstance(format_, RegisteredSchema) and format_.kind == kind
    }
    return dict(sorted(formats.items(), key=lambda entry: entry[1].changes is not None))


def kinds() -> frozenset[str]:
    """Returns the kinds of schemas that can be read, as a registry calls them."""
    return frozenset(format_.kind for format_ in every("value").values() if isinstance(format_, RegisteredSchema))


def by_schema(schema: Schema) -> RegisteredSchema:
    return next(iter(of_kind(schema.kind).values()))


@lru_cache(maxsize=256)
def writer(id_: int, schema: Schema, names: tuple[tuple[Path, str], ...] = ()) -> Writer:
    """Returns a writer of messages by this schema. `names` are paths of fields whose columns have another name. Raises Unsupported if
    the schema cannot be read."""
    format_ = by_schema(schema)
    own_names = {(path[:-1], column): path[-1] for path, column in names}
    return Writer(id=id_, schema=schema, way=format_.way(schema), encode=format_.encoder(schema), own_names=own_names)


def schema_of(format_: RegisteredSchema, name: str, columns: Sequence[Typed]) -> Schema:
    """Returns a schema whose messages have these columns. Raises Unsupported if the format has no such column, or makes no schemas."""
    if format_.schema_text is None:
        raise Unsupported("no schema of its messages can be made of columns")
    return Schema(format_.kind, format_.schema_text(name, columns))


def one_column(part: MessagePart, name: str, sql: str, *, wrong: str = "", why: str = "") -> Decoding:
    """Returns the decoding of a single column by SQL. `wrong` is SQL that is true for bytes that are not of the format."""
    faults = (
        [Fault("value", "null_value", "the message has no value", when=f"{part_sql(part)} IS NULL")] if part == "value" else []
    )
    if wrong:
        code = "undecodable" if part == "value" else "undecodable_key"
        faults.append(Fault(part, code, f"the {part} {why}", when=wrong))
    return Decoding(((name, sql),), tuple(faults))
