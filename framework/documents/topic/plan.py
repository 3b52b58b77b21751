"""A topic's columns and how its messages are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from framework.base import type_text, types
from framework.base.errors import MOST_PROBLEMS, Problem, Where
from framework.base.spelling import did_you_mean
from framework.base.types import Type
from framework.documents.rows import name_problems
from framework.documents.topic import generated
from framework.documents.topic.registered import RegistrySchemas, SubjectRequest, plan_subject as resolve_registered
from framework.documents.topic.written import Generated as WrittenGenerated, Key as WrittenKey, Topic as WrittenTopic
from framework.messages.encoding import decoder
from framework.messages.encoding.fields import MessageField, suits
from framework.messages.formats import DeclaredColumns, Format, OneColumn, RegisteredSchema, find
from framework.plan import (
    Cluster,
    Column,
    Decoding,
    Fault,
    Generated,
    GeneratedFields,
    Generator,
    Outliers,
    PlannedSubject,
    Topic,
)
from framework.sql.quote import literal

_VALUE = "value"  # the column of a message that is a single value


def without_values(topic: Topic) -> Topic:
    """Returns the topic with a decoding whose reasons for bad rows hold no part of a message."""
    decoding = topic.decoding
    structs = tuple((name, decoder.quiet(sql)) for name, sql in decoding.structs)
    return replace(topic, decoding=replace(decoding, structs=structs))


def plan_topic(spec: WrittenTopic, cluster: Cluster, schemas: RegistrySchemas, problems: list[Problem]) -> Topic:
    problems_before = len(problems)
    value = find("value", spec.value or "")
    fields = _fields(spec, value, problems)
    registered: list[PlannedSubject] = []
    value_columns, decoding = _value(spec, value, fields, cluster, schemas, registered, problems)
    key_columns, key_fields, key = _key(spec, cluster, schemas, registered, problems)
    if isinstance(value, OneColumn):
        fields = [*fields, MessageField(_VALUE, value.typed)]
    elif isinstance(value, RegisteredSchema) and not value.changes:
        fields = [MessageField(column.name, column.type) for column in value_columns]
    all_columns = (*key_columns, *value_columns, *(Column(name, types.STRING) for name in spec.headers))
    places = dict(_places(spec))
    columns = tuple(replace(column, where=places.get(column.name) or column.where) for column in all_columns)
    problems += _column_problems(spec, columns)
    is_clear = not unclear(spec) and all(part.columns_known for part in registered)
    if spec.event_time is not None and is_clear:
        problems += _event_time_problems(spec, columns)
    generator = _generator(spec, (*fields, *key_fields), problems) if spec.generate and is_clear else None
    if len(problems) > problems_before or spec.gaps or not is_clear:  # pipelines that read the topic are checked nevertheless
        untyped = (Column(name, types.VOID, "", where=where) for name, where in dict(_places(spec)).items())
        columns = tuple(({column.name: column for column in untyped} | {column.name: column for column in columns}).values())
    return Topic(
        name=spec.name,
        where=spec.place(),
        doc=spec.doc or "",
        cluster=cluster,
        kafka_name=spec.kafka_name or spec.name,
        partitions=spec.partitions,
        value=spec.value or "",
        columns=columns,
        key_columns=tuple(column.name for column in key_columns),
        key_format=spec.key.format,
        headers=tuple(spec.headers),
        decoding=_joined(spec, decoding, key),
        event_time=spec.event_time,
        start_from=spec.start_from,
        generator=generator,
        steady=spec.steady,
        registered=tuple(registered),
        changes=value.changes if value else None,
    )


def unclear(spec: WrittenTopic) -> bool:
    """Whether an unreadable part of the topic makes columns of which not even the names are known."""
    unnamed = [option for option in ("columns", "headers") if option in spec.gaps and not any(_keys(spec, option))]
    value = find("value", spec.value or "")
    nothing = (value is None or isinstance(value, DeclaredColumns)) and not any(_keys(spec, "columns"))
    return bool(unnamed) or nothing or "key" in spec.gaps or not spec.key.gaps <= {"format"}


def differences(topics: tuple[Topic, ...], places: Mapping[str, Where]) -> Iterator[Problem]:
    """Problems of a pipeline's topics that differ: the messages of all its topics must become the same kind of rows."""
    for topic in topics[1:]:
        first_topic = topics[0]
        if any(part.trouble and not part.numbers for part in (*first_topic.registered, *topic.registered)):
            continue  # the schemas are not known yet
        comparisons = {
            "value": first_topic.value == topic.value,
            "columns": [(column.name, column.type) for column in first_topic.columns]
            == [(column.name, column.type) for column in topic.columns],
            "key": (first_topic.key_format, first_topic.key_columns) == (topic.key_format, topic.key_columns),
            "headers": first_topic.headers == topic.headers,
            "event_time": first_topic.event_time == topic.event_time,
            "schemas or required" if topic.registered else "unknown_fields or required": first_topic.decoding == topic.decoding,
        }
        difference = next((aspect for aspect, is_alike in comparisons.items() if not is_alike), None)
        if difference:
            yield Problem(
                places[topic.name], "topics-differ", f"`{topic.name}` and `{first_topic.name}` differ in their {difference}",
                f"make them alike ({first_topic.where}, {topic.where}), or write two pipelines",
            )  # fmt: skip


def _fields(spec: WrittenTopic | WrittenKey, format_: Format | None, problems: list[Problem]) -> list[MessageField]:
    fields = []
    declared_format = format_ if isinstance(format_, DeclaredColumns) else None
    for name, column in spec.columns.items():
        if len(problems) > MOST_PROBLEMS:
            break
        try:
            type_ = type_text.parse(column.type)
        except type_text.TypeTextError as error:
            problems.append(Problem(column.place("type"), "bad-type", error.message, error.hint))
            continue
        if declared_format and (refusal := declared_format.refuses(type_)):
            problems.append(Problem(column.place("type"), "bad-type", *refusal))
        by_schema = isinstance(format_, RegisteredSchema)
        written_as = declared_format.written_as if declared_format else not by_schema
        fits = column.format is None or (written_as and suits(column.format, type_))
        if not written_as and not fits:
            format_text = (
                declared_format.noun
                if declared_format
                else f"{spec.value if isinstance(spec, WrittenTopic) else spec.format}, whose schemas say it"
            )
            message = f"`format` has no effect for {format_text}"
            problems.append(Problem(column.key_place("format"), "unused-key", message, "remove it"))
        elif not fits:
            type_of_format = {"epoch_days": "date", "base64": "decimal(18,2)"}.get(column.format or "", "timestamp")
            hint = f"write `type: {type_of_format}`, or remove `format`"
            problems.append(Problem(column.key_place("format"), "unused-key", f"`format` has no effect for {type_}", hint))
        fields.append(MessageField(name, type_, column.required, column.format if fits else None))
    return fields


def _value(
    spec: WrittenTopic,
    format_: Format | None,
    fields: list[MessageField],
    cluster: Cluster,
    schemas: RegistrySchemas,
    registered: list[PlannedSubject],
    problems: list[Problem],
) -> tuple[tuple[Column, ...], Decoding]:
    docs = {name: column.doc or "" for name, column in spec.columns.items()}
    match format_:
        case DeclaredColumns():
            columns = tuple(Column(field.name, field.type, docs[field.name]) for field in fields)
            change_columns = format_.changes.columns if format_.changes else ()
            own_names = {types.folded(column.name) for column in change_columns}
            for name in (column_name for column_name in spec.columns if types.folded(column_name) in own_names):
                message = f"`{name}` is a column that Sluice makes itself, of what a message says of the change"
                problems.append(
                    Problem(spec.key_place("columns", name), "duplicate-column", message, "rename it in the connector")
                )
            return (*columns, *change_columns), format_.decoding(fields, spec.unknown_fields == "bad")
        case OneColumn():
            return (Column(_VALUE, format_.type),), format_.decoding("value", _VALUE)
        case RegisteredSchema():
            subject = spec.subject or f"{spec.kafka_name or spec.name}-value"
            places = dict(_keys(spec, "columns"))
            request = SubjectRequest(
                topic=spec.name,
                of="value",
                format=spec.value,
                subject=subject,
                where=spec.place("value"),
                contract=fields,
                contract_places=places,
                single=None,
            )
            resolved = resolve_registered(request, cluster, schemas, problems)
            registered.append(resolved.registered)
            return tuple(
                replace(column, doc=docs.get(column.name) or column.doc) for column in resolved.columns
            ), resolved.decoding
    return (), Decoding((), ())


def _key(
    spec: WrittenTopic, cluster: Cluster, schemas: RegistrySchemas, registered: list[PlannedSubject], problems: list[Problem]
) -> tuple[tuple[Column, ...], list[MessageField], Decoding]:
    """Returns the columns of the key, its fields, and its decoding."""
    key = spec.key
    format_ = find("key", key.format)
    match format_:
        case DeclaredColumns():
            fields = _fields(key, format_, problems)
            columns = tuple(Column(field.name, field.type, key.columns[field.name].doc or "") for field in fields)
            return columns, fields, format_.decoding(fields, False)
        case OneColumn() if key.as_ is not None:
            column = Column(key.as_, format_.type, "The message's key")
            return (column,), [MessageField(key.as_, format_.typed)], format_.decoding("key", key.as_)
        case RegisteredSchema():
            subject = key.subject or f"{spec.kafka_name or spec.name}-key"
            where = key.place("format") if key.node.get("format") else spec.place("key")
            fields = _fields(key, format_, problems)
            request = SubjectRequest(
                topic=spec.name,
                of="key",
                format=key.format,
                subject=subject,
                where=where,
                contract=fields,
                contract_places=dict(_keys(key, "columns")),
                single=key.as_,
            )
            resolved = resolve_registered(request, cluster, schemas, problems)
            registered.append(resolved.registered)
            return resolved.columns, [MessageField(column.name, column.type) for column in resolved.columns], resolved.decoding
    return (), [], Decoding((), ())


def _joined(spec: WrittenTopic, decoding: Decoding, key: Decoding) -> Decoding:
    """Returns the decoding of the value, with the columns of the key and of the headers added."""
    columns = [*key.columns, *decoding.columns]
    faults = [*decoding.faults, *key.faults]
    unknown = [part.unknown for part in (decoding, key) if part.unknown]
    for name in spec.headers:
        # If several headers have the same name, the last one counts, as in Kafka's own clients.
        has_name = f"h -> h.key = {literal(name)}"
        value = f"element_at(filter(_sluice_headers, {has_name}), -1).value"
        columns.append((name, f"CASE WHEN exists(_sluice_headers, {has_name}) THEN CAST({value} AS STRING) END"))
        invalid = f"NOT coalesce(is_valid_utf8({columns[-1][1]}), true)"
        faults.append(Fault("headers", "undecodable_header", f"the header `{name}` is not UTF-8 text", when=invalid))
    return replace(
        decoding, columns=tuple(columns), faults=tuple(faults), structs=(*decoding.structs, *key.structs),
        unknown=f"coalesce({', '.join(unknown)})" if unknown else None,
        schema_id=f"CASE WHEN stage = 'key' THEN {key.schema_id} ELSE {decoding.schema_id} END",
    )  # fmt: skip


def _column_problems(spec: WrittenTopic, columns: tuple[Column, ...]) -> Iterator[Problem]:
    spellings: dict[str, str] = {}
    earlier_names: set[str] = set()
    named_places = list(_places(spec))
    placed_names = {name for name, _ in named_places}
    named_places += [(column.name, column.where) for column in columns if column.name not in placed_names and column.where]
    for name, where in named_places:
        yield from name_problems(name, where, [spellings.setdefault(types.folded(name), name)])
        if name in earlier_names:
            yield Problem(where, "duplicate-column", f"there are two columns `{name}`", _one_only(spec, name))
        earlier_names.add(name)


def _one_only(spec: WrittenTopic, name: str) -> str:
    """Returns the hint for a column that two parts of a message have. A spec can choose only the name under `as`."""
    if name == spec.key.as_:
        return f"write another name under `as`, such as `key_{name}`"
    if name in spec.headers:
        return f"remove `{name}` from `headers`, whose names are those of the messages"
    value = find("value", spec.value or "")
    has_changes = bool(value and value.changes)
    if spec.key.columns.keys() <= {column for column, _ in _keys(spec, "columns")} and (has_changes or not spec.key.columns):
        return (
            f"remove `key`: {'`after`' if has_changes else 'the value'} has this column, and `keys` of the pipeline can name it"
        )
    if has_changes:
        return f"remove `{name}` from `columns` of the `key`: `after` has it, and `keys` of the pipeline can name it"
    return (
        f"remove `{name}` from `columns` of the `key` or from `columns` of the topic; `deletes: tombstones` needs that of the key"
    )


def _places(spec: WrittenTopic) -> Iterator[tuple[str, Where]]:
    """Returns the name and the place of every column, even if its type is wrong."""
    if isinstance(find("value", spec.value or ""), OneColumn):
        yield _VALUE, spec.place("value")
    yield from _keys(spec, "columns")
    if spec.key.as_ is not None:
        yield spec.key.as_, spec.place("key", "as")
    yield from _keys(spec.key, "columns")
    yield from _keys(spec, "headers")


def _keys(spec: WrittenTopic | WrittenKey, option: str) -> Iterator[tuple[str, Where]]:
    node = spec.node.get(option)
    return ((key.text, key.where) for key, _ in (node.entries if node else ()))


def _event_time_problems(spec: WrittenTopic, columns: tuple[Column, ...]) -> Iterable[Problem]:
    where = spec.place("event_time")
    event_time = next((column for column in columns if column.name == spec.event_time), None)
    if event_time is None and spec.event_time in dict(_places(spec)):
        return  # its type is wrong, which was reported
    if event_time is None:
        hint = did_you_mean(spec.event_time or "", [column.name for column in columns], "name one of the topic's columns")
        yield Problem(where, "unknown-column", f"there is no column `{spec.event_time}`", hint)
    elif event_time.type not in (types.TIMESTAMP, types.VOID):
        yield Problem(
            where, "not-a-time", f"`{event_time.name}` is {event_time.type}, not timestamp", "an event time is a timestamp column"
        )


def _generator(spec: WrittenTopic, fields: Iterable[MessageField], problems: list[Problem]) -> Generator | None:
    generate = spec.generate
    assert generate is not None
    fields = tuple(fields)
    generated_fields = _generated_fields(spec, generate.columns, ("generate", "columns"), fields, problems)
    outliers = tuple(
        Outliers(
            outlier.share, _generated_fields(spec, outlier.columns, ("generate", "outliers", index, "columns"), fields, problems)
        )
        for index, outlier in enumerate(generate.outliers)
        if not outlier.gaps
    )
    return Generator(generate.rate, generated_fields, generate.repeats, outliers)


def _generated_fields(
    spec: WrittenTopic,
    columns: Mapping[str, WrittenGenerated],
    path: tuple[str | int, ...],
    fields: tuple[MessageField, ...],
    problems: list[Problem],
) -> GeneratedFields:
    """Returns the generated fields of these `columns`, which are written at `path`."""
    column_types = dict(_column_types(spec, fields))
    special_formats = {field.name: field.format for field in fields if field.format not in (None, "epoch_millis")}
    generators = []
    for name, way in columns.items():
        if len(problems) > MOST_PROBLEMS or (
            name not in column_types and name.partition(".")[0] in dict(_places(spec)).keys() - column_types.keys()
        ):
            continue  # the column's type is wrong, which was reported
        if name in special_formats:
            where, message = spec.key_place(*path, name), f"`generate` makes no columns with `format: {special_formats[name]}`"
            problems.append(Problem(where, "not-in-this-version", message, "leave it out: then the messages have no such field"))
            continue
        if name not in column_types:
            hint = did_you_mean(name, column_types, "name one of the topic's columns")
            problems.append(Problem(spec.key_place(*path, name), "unknown-column", f"there is no column `{name}`", hint))
            continue
        generators.append((name, column_types[name], Generated(way.one_of, way.between, way.pattern, way.last)))
        try:
            generated.check(*generators[-1])
        except generated.Unsuited as error:
            problems.append(Problem(way.place(*(key.text for key, _ in way.node.entries)), error.code, error.message, error.hint))
    return tuple(generators)


def _column_types(spec: WrittenTopic, fields: Iterable[MessageField]) -> Iterator[tuple[str, Type]]:
    """The fields that `generate` can name, with their types in the messages."""
    for field in fields:
        yield from _paths(field.name, types.BIGINT if (field.format or "").startswith("epoch_") else field.type)
    for name in spec.headers:
        yield name, types.STRING


def _paths(name: str, type_: Type) -> Iterator[tuple[str, Type]]:
    yield name, type_
    if isinstance(type_, types.Struct):
        for field in type_.fields:
            yield from _paths(f"{name}.{field.name}", field.type)
