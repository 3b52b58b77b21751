"""A registry's schemas for a new topic's spec: those of its newest messages, and their columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from framework.base.errors import NoSubject, Problem, Where, visible
from framework.base.patience import REGISTRY_NEEDED
from framework.base.types import TIMESTAMP, folded
from framework.core.kafka.newest_messages import MessageSample
from framework.documents.rows import name_problems
from framework.documents.topic.registered import RegistrySchemas, ResolvedSchema, SubjectRequest, plan_subject
from framework.messages.encoding.confluent_frame import id_of
from framework.messages.formats import of_kind
from framework.messages.registry.client import Registry
from framework.operations.init.lines import Line, comment_name, key, scalar
from framework.plan import Cluster, Column, MessagePart, PlannedSubject, SecretStore

_MOSTLY = 0.9  # the share of messages with a schema's id in front from which on a topic is taken for one with a registry
_MOST_IDS = 20  # ids that the registry is asked for
_NOWHERE = Where("", 0, 0)


@dataclass(frozen=True, kw_only=True)
class Schemaed:
    """Keys or values whose schemas are in the registry."""

    part: MessagePart
    format: str
    subject: str | None  # if it is not the default subject
    single: str | None  # the column that a key without fields makes
    columns: tuple[Column, ...]
    registered: PlannedSubject
    changes: bool  # whether the messages are changes of rows with these columns


@dataclass(frozen=True, kw_only=True)
class Subjects:
    """The registry's schemas; `why` is the reason why it has none for the values."""

    value: Schemaed | None
    key: Schemaed | None = None
    why: str = ""
    key_why: str = ""
    row_keys: tuple[str, ...] = ()  # the columns by which the keys of Debezium's messages name a row


def looks_so(messages: Iterable[bytes | None]) -> bool:
    """Whether the messages begin with ids of schemas, as those of a registry do."""
    payloads = [payload for payload in messages if payload is not None]
    return bool(payloads) and sum(id_of(payload) is not None for payload in payloads) >= _MOSTLY * len(payloads)


def find(kafka_name: str, sample: MessageSample, cluster: Cluster, secrets: SecretStore) -> Subjects:
    """Reads the schemas that the messages name; for a topic without values, the subject of its name."""
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
    part: MessagePart, kafka_name: str, messages: Sequence[bytes], cluster: Cluster, secrets: SecretStore, taken_names: set[str]
) -> Schemaed | str:
    """The schema of these messages, or the reason why it is unknown."""
    default_subject = f"{kafka_name}-{part}"
    registry = Registry(cluster, secrets, REGISTRY_NEEDED)
    id_counts = Counter(id_ for message in messages if (id_ := id_of(message)) is not None)
    ids = [id_ for id_, _ in id_counts.most_common(_MOST_IDS)]
    schemas = {id_: schema for id_ in ids if (schema := registry.schema(id_))}
    if ids and sum(id_counts[id_] for id_ in schemas) < _MOSTLY * sum(id_counts[id_] for id_ in ids):
        return "the registry does not have the schemas that they name"
    subject = _subject(registry, default_subject, ids)
    if subject is None:
        return f"the registry has no subject `{default_subject}` and none for schema {ids[0]}" if ids else ""
    versions = registry.subject(subject).versions
    format_, *other_formats = of_kind(versions[-1].schema.kind)
    single = next(name for name in ("key", "message_key", "kafka_key", "kafka_message_key") if name not in taken_names)
    request = SubjectRequest(
        topic=kafka_name,
        of=part,
        format=format_,
        subject=subject,
        where=_NOWHERE,
        contract=(),
        contract_places={},
        single=single if part == "key" else None,
    )
    resolved_schema, problems = _resolved(request, cluster, secrets, taken_names)
    changes = False
    for other_format in other_formats if part == "value" else ():  # of changes
        change_schema, other_problems = _resolved(replace(request, format=other_format), cluster, secrets, taken_names)
        if not other_problems:
            format_, resolved_schema, problems, changes = other_format, change_schema, other_problems, True
    if problems:
        return f"{subject}: {problems[0].message}"
    is_single = len(resolved_schema.columns) == 1 and resolved_schema.columns[0].name == single
    named_subject = None if subject == default_subject else subject
    return Schemaed(
        part=part,
        format=format_,
        subject=named_subject,
        single=single if is_single else None,
        columns=resolved_schema.columns,
        registered=resolved_schema.registered,
        changes=changes,
    )


def _resolved(
    request: SubjectRequest, cluster: Cluster, secrets: SecretStore, taken_names: set[str]
) -> tuple[ResolvedSchema, list[Problem]]:
    problems: list[Problem] = []
    schema = plan_subject(request, cluster, RegistrySchemas(secrets), problems)
    return schema, [*problems, *_unnamed(schema, taken_names)]


def _row_keys(rows: Schemaed, keys: Schemaed | str) -> tuple[str, ...]:
    """The columns that the keys name; none where the keys are unknown, or are no columns of the rows."""
    if isinstance(keys, str):
        return ()
    names = tuple(column.name for column in keys.columns)
    return names if {column.name for column in rows.columns}.issuperset(names) else ()


def _subject(registry: Registry, default_subject: str, ids: Sequence[int]) -> str | None:
    """The subject of the topic's name if it exists; otherwise one that has the most frequent schema, preferably with the topic's name in
    its own."""
    try:
        registry.numbers(default_subject)
        return default_subject
    except NoSubject:
        pass
    subjects = registry.subjects(ids[0]) if ids else ()
    return min(subjects, key=lambda name: (default_subject.rpartition("-")[0] not in name, name), default=None)


def _unnamed(schema: ResolvedSchema, taken_names: set[str]) -> Iterator[Problem]:
    """The problems of columns that no topic can have."""
    names: list[str] = []
    for column in schema.columns:
        yield from name_problems(column.name, _NOWHERE, names)
        if folded(column.name) in taken_names:
            yield Problem(_NOWHERE, "duplicate-column", f"its field `{column.name}` is a column of the value already")
        names.append(column.name)


def value_lines(value: Schemaed) -> Iterator[Line]:
    yield Line(f"value: {value.format}", [f"by {value.registered.write_version} of {_named(value)}"])
    if value.subject:
        yield Line(f"subject: {scalar(value.subject)}")
    origin = "the rows" if value.changes else "the schema"
    yield Line(f"# The columns are the fields of all versions of {origin}. With those of today they are:")
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
