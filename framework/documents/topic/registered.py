"""Keys or values of a topic with schemas in a registry: their columns, and the decoding of messages of every version.

If the spec has `columns`, every schema must have them. Otherwise the fields of all versions become columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from framework.base.errors import NoRegistry, Problem, SluiceError, Where
from framework.base.spelling import did_you_mean
from framework.base.types import Field, folded
from framework.messages.encoding import confluent_frame, decoder, fields
from framework.messages.encoding.confluent_frame import DecoderDescription
from framework.messages.formats import RegisteredSchema, find, schema_of
from framework.messages.schemas.versions import ColumnShape, Merged, Unsupported, merge
from framework.plan import Cluster, Column, Decoding, MessagePart, PlannedSubject, SecretStore
from framework.plan.schema import Schema, Subject, Version
from framework.sql.reshaping import reshaped, unlike

if TYPE_CHECKING:
    from framework.messages.registry.client import Registry


OtherSubjects = Mapping[str, Mapping[int, Schema | None]]
"""By topic and id, the schemas that messages name and the subject lacks; None if the registry lacks the schema, too."""


@dataclass
class RegistrySchemas:
    """The source of a plan's schemas: the registry of each cluster, asked for each subject as long as it answers. Without
    `logins`, a registry that needs a login is not asked, and its last answer counts."""

    secrets: SecretStore = field(default_factory=SecretStore)
    also: OtherSubjects = field(default_factory=dict)
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
        """Whether this is the first topic of the cluster with the error: a registry that does not answer is one problem."""
        key = (cluster, error.message)
        is_first = key not in self._reported
        self._reported.add(key)
        return is_first


@dataclass(frozen=True, kw_only=True)
class SubjectRequest:
    """The options of a topic's keys or values. `single` names the column for a schema without fields."""

    topic: str
    of: MessagePart
    format: str
    subject: str
    where: Where
    contract: Sequence[fields.MessageField]
    contract_places: Mapping[str, Where]
    single: str | None

    @property
    def by(self) -> RegisteredSchema:
        format_ = find(self.of, self.format)
        assert isinstance(format_, RegisteredSchema)
        return format_


@dataclass(frozen=True)
class ResolvedSchema:
    """The resolved keys or values. The `columns` are unknown if `registered.columns_known` is false."""

    columns: tuple[Column, ...]
    decoding: Decoding
    registered: PlannedSubject


def plan_subject(request: SubjectRequest, cluster: Cluster, schemas: RegistrySchemas, problems: list[Problem]) -> ResolvedSchema:
    try:
        subject = schemas.subject(cluster, request.subject)
    except SluiceError as error:
        if isinstance(error, NoRegistry):  # no run could read a message
            # A missing cluster was reported.
            problems += [Problem(request.where, error.code, error.message, error.hint)] if cluster.name else []
        elif not request.contract and schemas.report(cluster, error):
            hint = f"{error.hint}; or write `columns:`, which need no registry before a run"
            problems.append(Problem(request.where, error.code, error.message, hint))
        return _unread(request, error)
    return _resolved(request, subject, schemas.also.get(request.topic, {}), problems)


def _resolved(
    request: SubjectRequest, subject: Subject, extra_schemas: Mapping[int, Schema | None], problems: list[Problem]
) -> ResolvedSchema:
    readings = [(version, _shapes(request, version)) for version in subject.versions]
    if isinstance(readings[-1][1], str):
        message = f"{readings[-1][0]} of `{request.subject}` {readings[-1][1]}"
        problems.append(Problem(request.where, "unsupported-schema", message, "register one that can, or write `value: bytes`"))
        return _unread(request, SluiceError("unsupported-schema", readings[-1][1]))
    readings += [
        (extra_version, _shapes(request, extra_version))
        for id_, schema in extra_schemas.items()
        if schema and (extra_version := Version(id_, schema))
    ]
    merged = merge((version, shapes) for version, shapes in readings if not isinstance(shapes, str))
    unreadable = tuple((version, reason) for version, reason in readings if isinstance(reason, str))
    merged = Merged(merged.shapes, merged.fits, (*merged.unfit, *unreadable), merged.differences)
    try:
        _refuse_alike(merged.shapes)
        read = request.by.read(request.of, merged)
    except Unsupported as error:
        problems.append(Problem(request.where, "unsupported-schema", f"`{request.subject}`: {error.message}", error.hint))
        return _unread(request, SluiceError("unsupported-schema", error.message, error.hint))
    columns, required = _columns(request, merged, read, problems)
    if request.contract:  # other fields of the schemas may have names that columns cannot have
        kept_names = {column.name for column, _ in columns}
        read = replace(read, columns=tuple(read_column for read_column in read.columns if read_column["name"] in kept_names))
    absent_ids = (id_ for id_, schema in extra_schemas.items() if schema is None)
    columns_sql = ((column.name, sql) for column, sql in columns)
    decoding = confluent_frame.decoding(request.of, merged, read, columns_sql, required, absent_ids)
    refusals = tuple((difference.version.id, difference.kind, str(difference)) for difference in merged.differences)
    numbers = tuple(version.number for version in subject.versions if version.number)
    newest_version = subject.versions[-1]
    names = next((tuple(fit.names.items()) for fit in merged.fits if fit.version == newest_version), ())
    registered = PlannedSubject(
        of=request.of,
        subject=request.subject,
        numbers=numbers,
        refused=refusals,
        columns_known=True,
        trouble=subject.trouble,
        write_version=newest_version,
        names=names,
    )
    return ResolvedSchema(tuple(column for column, _ in columns), decoding, registered)


def _refuse_alike(shapes: Iterable[ColumnShape], path: tuple[str, ...] = ()) -> None:
    """Raises Unsupported if fields within a column differ only in case, even in different versions. Columns are checked later."""
    spellings: dict[str, str] = {}
    for shape in shapes:
        first_name = spellings.setdefault(folded(shape.name), shape.name)
        if path and first_name != shape.name:
            both_names = f"`{first_name}` and `{shape.name}` of `{'.'.join(path)}`"
            raise Unsupported(
                f"{both_names} differ only in case", "tables do not tell them apart: rename one, or write `value: bytes`"
            )
        _refuse_alike(shape.inside, (*path, shape.name))


def _unread(request: SubjectRequest, error: SluiceError) -> ResolvedSchema:
    """Returns the result without the registry's answer. Only tests run with it."""
    resolved = _of_columns(request, error)
    if resolved:
        return resolved
    columns = tuple(
        Column(contract_field.name, contract_field.type, "", where=request.contract_places.get(contract_field.name))
        for contract_field in request.contract
    )
    decoding = Decoding(tuple((column.name, f"CAST(NULL AS {column.type.sql})") for column in columns), ())
    return ResolvedSchema(
        columns,
        decoding,
        PlannedSubject(
            of=request.of, subject=request.subject, numbers=(), refused=(), columns_known=bool(request.contract), trouble=error
        ),
    )


def _of_columns(request: SubjectRequest, error: SluiceError) -> ResolvedSchema | None:
    """Resolves by a schema made of the declared columns; None if no schema can have them."""
    if not request.contract:
        return None
    problems: list[Problem] = []
    try:
        schema = schema_of(
            request.by, request.topic, [Field(contract_field.name, contract_field.type) for contract_field in request.contract]
        )
        resolved = _resolved(request, Subject(request.subject, (Version(0, schema, 1),)), {}, problems)
    except (Unsupported, KeyError):
        return None
    return None if problems else replace(resolved, registered=replace(resolved.registered, numbers=(), trouble=error))


def _shapes(request: SubjectRequest, version: Version) -> tuple[ColumnShape, ...] | str:
    """Returns the version's fields, or the reason why it has none that can be columns."""
    if version.schema.kind != request.by.kind:
        return f"is of the kind {version.schema.kind}, and the spec says {request.format}"
    try:
        shapes = request.by.shapes(version.schema)
    except Unsupported as error:
        return f"cannot become columns: {error.message}" + (f" ({error.hint})" if error.hint else "")
    return shapes or "has no field that could be a column"


def _columns(
    request: SubjectRequest, merged: Merged, read: DecoderDescription, problems: list[Problem]
) -> tuple[list[tuple[Column, str]], list[str]]:
    """Returns the columns with their SQL, and the names of those that must not be null."""
    shapes = {shape.name: shape for shape in read.shapes or merged.shapes}
    sql_by_name = {
        name: decoder.column_sql(request.of, name) for name in (*shapes, *(column.name for column in read.own_columns))
    }
    if not request.contract:
        is_single = len(shapes) == 1 and "value" in shapes and request.single
        return [
            (
                Column(
                    request.single or name if is_single else name,
                    shape.type,
                    shape.doc,
                    where=request.where,
                    renamed=_renamed(shape),
                ),
                sql_by_name[name],
            )
            for name, shape in shapes.items()
        ], []
    columns = []
    for contract_field in request.contract:
        where = request.contract_places[contract_field.name]
        shape = shapes.get(contract_field.name)
        if shape is None:
            hint = did_you_mean(contract_field.name, shapes, f"its fields are {', '.join(f'`{name}`' for name in shapes)}")
            problems.append(
                Problem(where, "not-in-schema", f"no schema of `{request.subject}` has a field `{contract_field.name}`", hint)
            )
            continue
        mismatch = next(unlike(contract_field.type, shape.type, contract_field.name), None)
        if mismatch:
            problems.append(
                Problem(
                    where, "not-in-schema", f"in the schemas of `{request.subject}` {mismatch}", "write the type that they have"
                )
            )
            continue
        column_sql = reshaped(sql_by_name[contract_field.name], shape.type, contract_field.type)
        columns.append(
            (Column(contract_field.name, contract_field.type, shape.doc, where=where, renamed=_renamed(shape)), column_sql)
        )
    required = [
        contract_field.name
        for contract_field in request.contract
        if contract_field.required and contract_field.name in {column.name for column, _ in columns}
    ]
    columns += [(column, sql_by_name[column.name]) for column in read.own_columns]
    return columns, required


def _renamed(shape: ColumnShape) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Returns each older name of a field, with its path, and the current name."""

    def inside(parent: ColumnShape, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
        yield from (((*path, old_name), parent.name) for old_name in parent.old_names)
        for child in parent.inside:
            yield from inside(child, (*path, parent.name))

    return tuple(inside(shape, ()))
