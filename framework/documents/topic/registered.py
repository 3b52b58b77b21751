"""A topic's keys or values whose schemas are in a registry: their columns, and how a message of any version is read.

With `columns` in the spec, these are the columns, and every schema has to have them; without, all fields of all versions are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from framework.base.errors import NoRegistry, Problem, SluiceError, Where
from framework.base.spelling import did_you_mean
from framework.base.types import Field, folded
from framework.messages.encoding import confluent_frame, decoder, fields
from framework.messages.encoding.confluent_frame import Read
from framework.messages.formats import BySchema, find, schema_of
from framework.messages.schemas.versions import Merged, Shape, Unsupported, merge
from framework.plan import Cluster, Column, Decoding, Of, Registered, SecretStore
from framework.plan.schema import Schema, Subject, Version
from framework.sql.reshaping import reshaped, unlike

if TYPE_CHECKING:
    from framework.messages.registry.client import Registry


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
    _reported: set[tuple[Cluster, str]] = field(default_factory=set, init=False)

    def subject(self, cluster: Cluster, name: str) -> Subject:
        from framework.messages.registry.client import Registry

        if cluster not in self._registries:
            self._registries[cluster] = Registry(cluster, self.secrets)
        registry = self._registries[cluster]
        return registry.subject(name) if self.logins or not cluster.registry_auth else registry.remembered(name)

    def report(self, cluster: Cluster, error: SluiceError) -> bool:
        """Whether this is the first topic of the cluster to meet the error: a registry that is away is one problem."""
        key = (cluster, error.message)
        is_first = key not in self._reported
        self._reported.add(key)
        return is_first


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of a topic's keys or values. `single` is the name of the column that a schema without fields makes."""

    topic: str
    of: Of
    format: str
    subject: str
    where: Where
    contract: Sequence[fields.Field]
    contract_places: Mapping[str, Where]
    single: str | None

    @property
    def by(self) -> BySchema:
        format_ = find(self.of, self.format)
        assert isinstance(format_, BySchema)
        return format_


@dataclass(frozen=True)
class ResolvedSchema:
    """`columns` are unknown where `registered.columns_known` is not."""

    columns: tuple[Column, ...]
    decoding: Decoding
    registered: Registered


def resolve(asked: Asked, cluster: Cluster, schemas: Schemas, problems: list[Problem]) -> ResolvedSchema:
    try:
        subject = schemas.subject(cluster, asked.subject)
    except SluiceError as error:
        if isinstance(error, NoRegistry):  # no run could read a message
            # Where there is no cluster at all, that is said.
            problems += [Problem(asked.where, error.code, error.message, error.hint)] if cluster.name else []
        elif not asked.contract and schemas.report(cluster, error):
            hint = f"{error.hint}; or write `columns:`, which need no registry before a run"
            problems.append(Problem(asked.where, error.code, error.message, hint))
        return _unread(asked, error)
    return _resolved(asked, subject, schemas.also.get(asked.topic, {}), problems)


def _resolved(asked: Asked, subject: Subject, also: Mapping[int, Schema | None], problems: list[Problem]) -> ResolvedSchema:
    readings = [(version, _shapes(asked, version)) for version in subject.versions]
    if isinstance(readings[-1][1], str):
        message = f"{readings[-1][0]} of `{asked.subject}` {readings[-1][1]}"
        problems.append(Problem(asked.where, "unsupported-schema", message, "register one that can, or write `value: bytes`"))
        return _unread(asked, SluiceError("unsupported-schema", readings[-1][1]))
    readings += [(each, _shapes(asked, each)) for id_, schema in also.items() if schema and (each := Version(id_, schema))]
    merged = merge((version, shapes) for version, shapes in readings if not isinstance(shapes, str))
    unreadable = tuple((version, reason) for version, reason in readings if isinstance(reason, str))
    merged = Merged(merged.shapes, merged.fits, (*merged.unfit, *unreadable), merged.differences)
    try:
        _refuse_alike(merged.shapes)
        read = asked.by.read(asked.of, merged)
    except Unsupported as error:
        problems.append(Problem(asked.where, "unsupported-schema", f"`{asked.subject}`: {error.message}", error.hint))
        return _unread(asked, SluiceError("unsupported-schema", error.message, error.hint))
    columns, required = _columns(asked, merged, read, problems)
    if asked.contract:  # other fields of the schemas may have names that columns cannot have
        kept = {column.name for column, _ in columns}
        read = replace(read, columns=tuple(each for each in read.columns if each["name"] in kept))
    absent = (id_ for id_, schema in also.items() if schema is None)
    sql = ((column.name, sql) for column, sql in columns)
    decoding = confluent_frame.decoding(asked.of, merged, read, sql, required, absent)
    refused = tuple((each.version.id, each.kind, str(each)) for each in merged.differences)
    numbers = tuple(version.number for version in subject.versions if version.number)
    newest_version = subject.versions[-1]
    names = next((tuple(fit.names.items()) for fit in merged.fits if fit.version == newest_version), ())
    registered = Registered(
        of=asked.of,
        subject=asked.subject,
        numbers=numbers,
        refused=refused,
        columns_known=True,
        trouble=subject.trouble,
        write_version=newest_version,
        names=names,
    )
    return ResolvedSchema(tuple(column for column, _ in columns), decoding, registered)


def _refuse_alike(shapes: Iterable[Shape], path: tuple[str, ...] = ()) -> None:
    """Fields inside of columns that tables do not tell apart, also where each is in another version. Columns are looked at later."""
    there: dict[str, str] = {}
    for shape in shapes:
        other = there.setdefault(folded(shape.name), shape.name)
        if path and other != shape.name:
            both = f"`{other}` and `{shape.name}` of `{'.'.join(path)}`"
            raise Unsupported(f"{both} differ only in case", "tables do not tell them apart: rename one, or write `value: bytes`")
        _refuse_alike(shape.inside, (*path, shape.name))


def _unread(asked: Asked, error: SluiceError) -> ResolvedSchema:
    """The answer without the registry. Only tests run by it."""
    resolved = _of_columns(asked, error)
    if resolved:
        return resolved
    columns = tuple(Column(each.name, each.type, "", where=asked.contract_places.get(each.name)) for each in asked.contract)
    decoding = Decoding(tuple((each.name, f"CAST(NULL AS {each.type.sql})") for each in columns), ())
    return ResolvedSchema(
        columns,
        decoding,
        Registered(of=asked.of, subject=asked.subject, numbers=(), refused=(), columns_known=bool(asked.contract), trouble=error),
    )


def _of_columns(asked: Asked, error: SluiceError) -> ResolvedSchema | None:
    """By a schema that is made of the columns, where these can be had of one."""
    if not asked.contract:
        return None
    problems: list[Problem] = []
    try:
        schema = schema_of(asked.by, asked.topic, [Field(each.name, each.type) for each in asked.contract])
        resolved = _resolved(asked, Subject(asked.subject, (Version(0, schema, 1),)), {}, problems)
    except (Unsupported, KeyError):
        return None
    return None if problems else replace(resolved, registered=replace(resolved.registered, numbers=(), trouble=error))


def _shapes(asked: Asked, version: Version) -> tuple[Shape, ...] | str:
    """The version's fields, or why they are none."""
    if version.schema.kind != asked.by.kind:
        return f"is of the kind {version.schema.kind}, and the spec says {asked.format}"
    try:
        shapes = asked.by.shapes(version.schema)
    except Unsupported as error:
        return f"cannot become columns: {error.message}" + (f" ({error.hint})" if error.hint else "")
    return shapes or "has no field that could be a column"


def _columns(asked: Asked, merged: Merged, read: Read, problems: list[Problem]) -> tuple[list[tuple[Column, str]], list[str]]:
    """The columns with the SQL that makes them, and those that may not be null."""
    shapes = {shape.name: shape for shape in read.shapes or merged.shapes}
    sql = {name: decoder.column_sql(asked.of, name) for name in (*shapes, *(column.name for column in read.own_columns))}
    if not asked.contract:
        alone = len(shapes) == 1 and "value" in shapes and asked.single
        return [
            (
                Column(
                    asked.single or name if alone else name, shape.type, shape.doc, where=asked.where, renamed=_renamed(shape)
                ),
                sql[name],
            )
            for name, shape in shapes.items()
        ], []
    columns = []
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
        sql_of = reshaped(sql[each.name], shape.type, each.type)
        columns.append((Column(each.name, each.type, shape.doc, where=where, renamed=_renamed(shape)), sql_of))
    required = [each.name for each in asked.contract if each.required and each.name in {column.name for column, _ in columns}]
    columns += [(column, sql[column.name]) for column in read.own_columns]
    return columns, required


def _renamed(shape: Shape) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Where fields had other names before: the older name, at its place, and the name now."""

    def inside(each: Shape, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
        yield from (((*above, old), each.name) for old in each.old_names)
        for inner in each.inside:
            yield from inside(inner, (*above, each.name))

    return tuple(inside(shape, ()))
