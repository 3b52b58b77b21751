"""A registry's schemas of a topic that is to have a spec: those of its newest messages, and their columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from framework.base.errors import NoSubject, Problem, Where, visible
from framework.base.patience import REGISTRY_NEEDED
from framework.base.types import TIMESTAMP, folded
from framework.core.kafka.newest_messages import Sample
from framework.documents.rows import name_problems
from framework.documents.topic.registered import Asked, ResolvedSchema, Schemas, resolve
from framework.messages.encoding.confluent_frame import id_of
from framework.messages.formats import of_kind
from framework.messages.registry.client import Registry
from framework.operations.init.lines import Line, comment_name, key, scalar
from framework.plan import Cluster, Column, Of, Registered, SecretStore

_MOSTLY = 0.9  # of the messages begin with the id of a schema where a topic is taken for one of a registry
_MOST = 20  # ids that are asked for
_NOWHERE = Where("", 0, 0)


@dataclass(frozen=True, kw_only=True)
class Schemaed:
    """Keys or values whose schemas are in the registry."""

    of: Of
    format: str
    subject: str | None  # where it is not the one that is taken if none is named
    single: str | None  # the column that a key without fields makes
    columns: tuple[Column, ...]
    registered: Registered
    changes: bool  # they are changes of the rows that the columns are


@dataclass(frozen=True, kw_only=True)
class Subjects:
    """The registry's schemas; `why` is the reason why it has none of the values."""

    value: Schemaed | None
    key: Schemaed | None = None
    why: str = ""
    key_why: str = ""
    row_keys: tuple[str, ...] = ()  # the columns by which the keys of Debezium's messages name a row


def looks_so(messages: Iterable[bytes | None]) -> bool:
    """Whether they begin as those of a registry do."""
    there = [each for each in messages if each is not None]
    return bool(there) and sum(id_of(each) is not None for each in there) >= _MOSTLY * len(there)


def find(kafka_name: str, sample: Sample, cluster: Cluster, secrets: SecretStore) -> Subjects:
    """Asks for what the messages name; of a topic without values for the subject of its name."""
    values = [message.value for message in sample.messages if message.value is not None]
    if cluster.registry is None or (values and not looks_so(values)):
        return Subjects(value=None)
    value = _schemaed("value", kafka_name, values, cluster, secrets, set())
    if isinstance(value, str):
        return Subjects(value=None, why=value)
    keys = [message.key for message in sample.messages if message.key is not None]
    if not looks_so(keys):
        return Subjects(value=value)
    if value.changes:
        return Subjects(value=value, row_keys=_row_keys(value, _schemaed("key", kafka_name, keys, cluster, secrets, set())))
    key = _schemaed("key", kafka_name, keys, cluster, secrets, {folded(column.name) for column in value.columns})
    return Subjects(value=value, key_why=key) if isinstance(key, str) else Subjects(value=value, key=key)


def _schemaed(
    of: Of, kafka_name: str, messages: Sequence[bytes], cluster: Cluster, secrets: SecretStore, taken: set[str]
) -> Schemaed | str:
    """Their schema, or the reason why it is unknown."""
    own = f"{kafka_name}-{of}"
    registry = Registry(cluster, secrets, REGISTRY_NEEDED)
    counted = Counter(id_ for each in messages if (id_ := id_of(each)) is not None)
    ids = [id_ for id_, _ in counted.most_common(_MOST)]
    schemas = {id_: schema for id_ in ids if (schema := registry.schema(id_))}
    if ids and sum(counted[id_] for id_ in schemas) < _MOSTLY * sum(counted[id_] for id_ in ids):
        return "the registry does not have the schemas that they name"
    subject = _subject(registry, own, ids)
    if subject is None:
        return f"the registry has no subject `{own}` and none for schema {ids[0]}" if ids else ""
    versions = registry.subject(subject).versions
    format_, *others = of_kind(versions[-1].schema.kind)
    single = next(each for each in ("key", "message_key", "kafka_key", "kafka_message_key") if each not in taken)
    asked = Asked(
        topic=kafka_name,
        of=of,
        format=format_,
        subject=subject,
        where=_NOWHERE,
        contract=(),
        contract_places={},
        single=single if of == "key" else None,
    )
    rows_, problems = _resolved(asked, cluster, secrets, taken)
    changes = False
    for other in others if of == "value" else ():  # of changes
        rows, refused = _resolved(replace(asked, format=other), cluster, secrets, taken)
        if not refused:
            format_, rows_, problems, changes = other, rows, refused, True
    if problems:
        return f"{subject}: {problems[0].message}"
    alone = len(rows_.columns) == 1 and rows_.columns[0].name == single
    elsewhere = None if subject == own else subject
    return Schemaed(
        of=of,
        format=format_,
        subject=elsewhere,
        single=single if alone else None,
        columns=rows_.columns,
        registered=rows_.registered,
        changes=changes,
    )


def _resolved(asked: Asked, cluster: Cluster, secrets: SecretStore, taken: set[str]) -> tuple[ResolvedSchema, list[Problem]]:
    problems: list[Problem] = []
    resolved = resolve(asked, cluster, Schemas(secrets), problems)
    return resolved, [*problems, *_unnamed(resolved, taken)]


def _row_keys(rows: Schemaed, keys: Schemaed | str) -> tuple[str, ...]:
    """None where the keys are not known, or are no columns of the rows."""
    if isinstance(keys, str):
        return ()
    names = tuple(column.name for column in keys.columns)
    return names if {column.name for column in rows.columns}.issuperset(names) else ()


def _subject(registry: Registry, own: str, ids: Sequence[int]) -> str | None:
    """The subject of the topic's name or, where that is not there, one that has the most frequent schema: one with the topic's name
    in its own, if there is any."""
    try:
        registry.numbers(own)
        return own
    except NoSubject:
        pass
    subjects = registry.subjects(ids[0]) if ids else ()
    return min(subjects, key=lambda name: (own.rpartition("-")[0] not in name, name), default=None)


def _unnamed(resolved: ResolvedSchema, taken: set[str]) -> Iterator[Problem]:
    """Columns that no topic can have."""
    names: list[str] = []
    for column in resolved.columns:
        yield from name_problems(column.name, _NOWHERE, names)
        if folded(column.name) in taken:
            yield Problem(_NOWHERE, "duplicate-column", f"its field `{column.name}` is a column of the value already")
        names.append(column.name)


def value_lines(value: Schemaed) -> Iterator[Line]:
    yield Line(f"value: {value.format}", [f"by {value.registered.write_version} of {_named(value)}"])
    if value.subject:
        yield Line(f"subject: {scalar(value.subject)}")
    what = "the rows" if value.changes else "the schema"
    yield Line(f"# The columns are the fields of all versions of {what}. With those of today they are:")
    width = max(len(column.name) for column in value.columns)
    yield from (_column(column, width) for column in value.columns)
    time = next((column for column in value.columns if column.type == TIMESTAMP), None)
    if time:
        yield Line(f"# event_time: {key(time.name)}", ["if that is when it happened; else Kafka's own time counts"])


def key_line(key: Schemaed) -> Line:
    options = [f"format: {key.format}"]
    options += [f"as: {key.single}"] if key.single else []
    options += [f"subject: {scalar(key.subject)}"] if key.subject else []
    columns = ", ".join(f"{visible(column.name)} {visible(str(column.type))}" for column in key.columns)
    return Line(
        f"key: {{{', '.join(options)}}}", [f"by {key.registered.write_version} of {_named(key)}", f"its columns: {columns}"]
    )


def _named(part: Schemaed) -> str:
    return comment_name(part.registered.subject)


def _column(column: Column, width: int) -> Line:
    doc = f"  -- {visible(column.doc)}" if column.doc else ""
    return Line(f"#   {visible(column.name).ljust(width)}  {visible(str(column.type))}{doc}")
