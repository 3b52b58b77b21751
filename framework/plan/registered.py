"""A topic's keys or values whose schemas are in a registry: their columns, and how a message of any version is read.

With `columns` in the spec, these are the columns, and every schema has to have them; without, all fields of all versions are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from framework.errors import NoRegistry, Problem, SluiceError, Where
from framework.formats import confluent_frame, debezium, json, message_writer
from framework.formats.confluent_frame import Of, Read
from framework.formats.kinds import KINDS, Format, of_kind
from framework.formats.versions import Merged, Shape, Unsupported, merge
from framework.model import Cluster, Column, Decoding, Fault, Registered, SecretStore
from framework.model.schemas import Kind, Schema, Subject, Version
from framework.plan.schema_fit import reshaped, unlike
from framework.spelling import did_you_mean
from framework.sql.quote import literal
from framework.types import Field, folded

if TYPE_CHECKING:
    from framework.registry.client import Registry


Also = Mapping[str, Mapping[int, Schema | None]]
"""Schemas that messages of a topic name and its subject does not have; None where the registry has none either."""


@dataclass
class Schemas:
    """Where a plan has schemas from: a registry for each cluster, asked as often as it answers. Without `logins` one that wants a
    login is not asked, and what it said last counts."""

    secrets: SecretStore = field(default_factory=SecretStore)
    also: Also = field(default_factory=dict)
    logins: bool = True
    _registries: dict[Cluster, Registry] = field(default_factory=dict, init=False)

    def subject(self, cluster: Cluster, name: str) -> Subject:
        from framework.registry.client import Registry

        if cluster not in self._registries:
            self._registries[cluster] = Registry(cluster, self.secrets)
        registry = self._registries[cluster]
        return registry.subject(name) if self.logins or not cluster.registry_auth else registry.remembered(name)


@dataclass(frozen=True)
class Asked:
    """What a spec says of a topic's keys or values. `single` is what the column is called that a schema without fields makes."""

    topic: str
    of: Of
    format: str
    subject: str
    where: Where
    contract: Sequence[json.Field]
    contract_places: Mapping[str, Where]
    single: str | None


@dataclass(frozen=True)
class Found:
    """`columns` are unknown where `registered.known` is not."""

    columns: tuple[Column, ...]
    decoding: Decoding
    registered: Registered


def resolve(asked: Asked, cluster: Cluster, schemas: Schemas, problems: list[Problem]) -> Found:
    try:
        subject = schemas.subject(cluster, asked.subject)
    except SluiceError as error:
        if isinstance(error, NoRegistry):  # no run could read a message
            # Where there is no cluster at all, that is said.
            problems += [Problem(asked.where, error.code, error.message, error.hint)] if cluster.name else []
        elif not asked.contract:
            hint = f"{error.hint}; or write `columns:`, which need no registry before a run"
            problems.append(Problem(asked.where, error.code, error.message, hint))
        return _unread(asked, error)
    return _resolved(asked, subject, schemas.also.get(asked.topic, {}), problems)


def _resolved(asked: Asked, subject: Subject, also: Mapping[int, Schema | None], problems: list[Problem]) -> Found:
    kind = KINDS[asked.format]
    format_ = of_kind(kind)
    said = [(version, _shapes(asked, format_, kind, version)) for version in subject.versions]
    if isinstance(said[-1][1], str):
        message = f"{said[-1][0]} of `{asked.subject}` {said[-1][1]}"
        problems.append(Problem(asked.where, "unsupported-schema", message, "register one that can, or write `value: bytes`"))
        return _unread(asked, SluiceError("unsupported-schema", said[-1][1]))
    said += [
        (each, _shapes(asked, format_, kind, each)) for id_, schema in also.items() if schema and (each := Version(id_, schema))
    ]
    merged = merge((version, shapes) for version, shapes in said if not isinstance(shapes, str))
    unreadable = tuple((version, reason) for version, reason in said if isinstance(reason, str))
    merged = Merged(merged.shapes, merged.fits, (*merged.unfit, *unreadable), merged.differences)
    try:
        _refuse_alike(merged.shapes)
        shown = _shown(asked, merged, format_.read(asked.of, merged))
    except Unsupported as error:
        problems.append(Problem(asked.where, "unsupported-schema", f"`{asked.subject}`: {error.message}", error.hint))
        return _unread(asked, SluiceError("unsupported-schema", error.message, error.hint))
    columns, required = _columns(asked, shown, problems)
    absent = (id_ for id_, schema in also.items() if schema is None)
    read = replace(shown.read, columns=tuple((column.name, text) for column, text in columns))
    decoding = confluent_frame.decoding(
        asked.of, merged, read, absent, [(name, shown.lacks(dict(read.columns)[name])) for name in required]
    )
    if shown.keep:  # a tombstone is left out
        faults = (*(fault for fault in decoding.faults if fault.code != "null_value"), *shown.faults)
        decoding = replace(decoding, faults=faults, keep=shown.keep)
    refused = tuple((each.version.id, each.kind, str(each)) for each in merged.differences)
    numbers = tuple(version.number for version in subject.versions if version.number)
    newest = subject.versions[-1]
    names = next((tuple(fit.names.items()) for fit in merged.fits if fit.version == newest), ())
    registered = Registered(asked.of, asked.subject, numbers, refused, True, subject.trouble, newest, names)
    return Found(tuple(column for column, _ in columns), decoding, registered)


def _refuse_alike(shapes: Iterable[Shape], path: tuple[str, ...] = ()) -> None:
    """Fields inside of columns that tables do not tell apart, also where each is in another version. Columns are looked at later."""
    there: dict[str, str] = {}
    for shape in shapes:
        other = there.setdefault(folded(shape.name), shape.name)
        if path and other != shape.name:
            both = f"`{other}` and `{shape.name}` of `{'.'.join(path)}`"
            raise Unsupported(f"{both} differ only in case", "tables do not tell them apart: rename one, or write `value: bytes`")
        _refuse_alike(shape.inside, (*path, shape.name))


@dataclass(frozen=True)
class _Shown:
    """The fields that can be columns, and how they are read. `own` are columns that are there whatever `columns` says."""

    shapes: tuple[Shape, ...]
    read: Read
    own: tuple[Column, ...] = ()
    keep: str | None = None
    faults: tuple[Fault, ...] = ()

    def lacks(self, sql: str) -> str:
        """SQL that is true where a message lacks a column that has to be there."""
        return debezium.lacks_value(dict(self.read.columns)["_op"], sql) if self.keep else f"{sql} IS NULL"


def _shown(asked: Asked, merged: Merged, read: Read) -> _Shown:
    """Of Debezium's envelopes, what they say of a row."""
    if asked.format != "debezium_avro":
        return _Shown(merged.shapes, read)
    shapes = debezium.unwrap(merged.shapes)
    own = tuple(column.name for column in debezium.COLUMNS)
    parts = ", ".join(f"{literal(name)}, {sql}" for name, sql in read.columns)
    envelope = ("_sluice_envelope", f"CASE WHEN {read.apart[0][0]} IS NOT NULL THEN named_struct({parts}) END")
    columns, faults, keep = debezium.of_envelope([each.name for each in shapes if each.name not in own], envelope[0])
    read = replace(read, columns=tuple(columns), apart=(*read.apart, envelope))
    return _Shown(shapes, read, debezium.COLUMNS, keep, tuple(faults))


def _unread(asked: Asked, error: SluiceError) -> Found:
    """What is known without the registry. Only tests run by it."""
    found = _of_columns(asked, error)
    if found:
        return found
    columns = tuple(Column(each.name, each.type, "", asked.contract_places.get(each.name)) for each in asked.contract)
    decoding = Decoding(None, tuple((each.name, f"CAST(NULL AS {each.type.sql})") for each in columns), ())
    return Found(columns, decoding, Registered(asked.of, asked.subject, (), (), bool(asked.contract), error))


def _of_columns(asked: Asked, error: SluiceError) -> Found | None:
    """By a schema that is made of the columns, where these can be had of one."""
    if not asked.contract or asked.format == "debezium_avro":
        return None
    problems: list[Problem] = []
    try:
        schema = message_writer.schema_of(asked.format, asked.topic, [Field(each.name, each.type) for each in asked.contract])
        found = _resolved(asked, Subject(asked.subject, (Version(0, schema, 1),)), {}, problems)
    except (Unsupported, KeyError):
        return None
    return None if problems else replace(found, registered=replace(found.registered, numbers=(), trouble=error))


def _shapes(asked: Asked, format_: Format, kind: Kind, version: Version) -> tuple[Shape, ...] | str:
    """The version's fields, or why they are none."""
    if version.schema.kind != kind:
        return f"is of the kind {version.schema.kind}, and the spec says {asked.format}"
    try:
        shapes = format_.shapes(version.schema)
    except Unsupported as error:
        return f"cannot become columns: {error.message}" + (f" ({error.hint})" if error.hint else "")
    return shapes or "has no field that could be a column"


def _columns(asked: Asked, shown: _Shown, problems: list[Problem]) -> tuple[list[tuple[Column, str]], list[str]]:
    """The columns with the SQL that makes them, and those that may not be null."""
    sql = dict(shown.read.columns)
    shapes = {shape.name: shape for shape in shown.shapes}
    if not asked.contract:
        alone = len(shapes) == 1 and "value" in shapes and asked.single
        return [
            (Column(asked.single or name if alone else name, shape.type, shape.doc, asked.where, _renamed(shape)), sql[name])
            for name, shape in shapes.items()
        ], []
    found = []
    for each in asked.contract:
        where = asked.contract_places[each.name]
        shape = shapes.get(each.name)
        if shape is None:
            hint = did_you_mean(each.name, shapes, f"its fields are {', '.join(f'`{name}`' for name in shapes)}")
            problems.append(Problem(where, "not-in-schema", f"no schema of `{asked.subject}` has a field `{each.name}`", hint))
            continue
        wrong = next(unlike(each.type, shape.type, each.name), None)
        if wrong:
            problems.append(
                Problem(where, "not-in-schema", f"in the schemas of `{asked.subject}` {wrong}", "write the type that they have")
            )
            continue
        made = reshaped(sql[each.name], shape.type, each.type)
        found.append((Column(each.name, each.type, shape.doc, where, _renamed(shape)), made))
    required = [each.name for each in asked.contract if each.required and each.name in {column.name for column, _ in found}]
    found += [(column, sql[column.name]) for column in shown.own]
    return found, required


def _renamed(shape: Shape) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Where fields had other names before: the older name, at its place, and the name now."""

    def inside(each: Shape, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
        yield from (((*above, old), each.name) for old in each.was)
        for inner in each.inside:
            yield from inside(inner, (*above, each.name))

    return tuple(inside(shape, ()))
