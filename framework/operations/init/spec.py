"""A topic and its pipeline as a spec, from the newest messages of the real topic. No value of a message gets into it.

*Limit* Only the sample is read. A comment describes the sample; other messages may differ.
"""

from __future__ import annotations

import re
import tempfile
import typing
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from framework.base.errors import SluiceError
from framework.base.types import TIMESTAMP, folded
from framework.core.kafka.newest_messages import MessageSample
from framework.documents.make import draft
from framework.language import scalars
from framework.messages.encoding.json_text import one_object, utf8
from framework.messages.formats import RegisteredSchema, every
from framework.operations.init import guess, infer, project, registered
from framework.operations.init.guess import Guessed
from framework.operations.init.infer import GuessedColumn
from framework.operations.init.lines import Line, comment_name, in_braces, key, of_column, scalar, text
from framework.operations.init.registered import Schemaed, Subjects

NAMESPACE = "raw"
_MOST_COLUMNS = 500
_MOST_PARTITIONS = 10_000  # that a spec can ask for
_LONGEST_ID = 100  # characters
_UNKNOWN = Subjects(value=None)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_NAME, _COLUMN = (re.compile(typing.get_args(annotation)[1].pattern) for annotation in (scalars.Name, scalars.ColumnName))


@dataclass(frozen=True)
class Spec:
    text: str
    value: str  # the format
    columns: int
    left_out: tuple[str, ...]  # fields that cannot be columns


def name_of(kafka_name: str) -> str:
    """The name of a topic in specs: its name in Kafka if that is allowed, otherwise one close to it."""
    if _NAME.search(kafka_name):
        return kafka_name
    close_name = scalars.meant_name(kafka_name) or "topic"
    return (close_name if close_name[0].isalpha() else f"topic_{close_name}")[:63].rstrip("_")


def write(kafka_name: str, sample: MessageSample, catalog: str | None = None, registry_schemas: Subjects = _UNKNOWN) -> Spec:
    """The spec of a topic. Columns that the language refuses are left out, with the reason. Columns from the registry are not repeated."""
    if registry_schemas.value:
        row_keys = registry_schemas.row_keys if registry_schemas.value.changes else None
        pipeline = _pipeline(name_of(kafka_name), catalog, row_keys)
        lines = (*_head(kafka_name, sample), *_registered_lines(registry_schemas.value, registry_schemas, sample), *pipeline)
        return Spec(
            text(lines),
            registry_schemas.value.format,
            len(registry_schemas.value.columns) + len(registry_schemas.key.columns if registry_schemas.key else ()),
            (),
        )
    values = [message.value for message in sample.messages if message.value is not None]
    if not values:
        reason = "none of its newest messages has a value" if sample.messages else "it has no messages"
        raise SluiceError("no-messages", f"{kafka_name} has no columns that can be inferred: {reason}", "write its spec by hand")
    guessed_format = guess.of_values(values)
    columns = infer.columns(guessed_format.rows) if guessed_format else ()
    excluded_columns = {column.name: "there are too many" for column in columns[_MOST_COLUMNS:]}
    excluded_columns |= {column.name: "no column can have such a name" for column in columns if not _can_be_a_column(column.name)}
    name = name_of(kafka_name)
    while True:
        kept_columns = [column for column in columns if column.name not in excluded_columns]
        head = list(_head(kafka_name, sample))
        head += (
            _inferred_lines(guessed_format, kept_columns, excluded_columns, sample)
            if kept_columns and guessed_format
            else _other_lines(sample, values, registry_schemas)
        )
        refused_columns = _refused([*head, *_pipeline(name, None)])
        if not refused_columns:
            row_keys = guess.row_keys(guessed_format, sample, kept_columns) if guessed_format and guessed_format.changes else None
            format_ = guessed_format.name if kept_columns and guessed_format else _other_format(values)
            return Spec(
                text([*head, *_pipeline(name, catalog, row_keys)]), format_, max(1, len(kept_columns)), tuple(excluded_columns)
            )
        excluded_columns |= refused_columns


def _refused(lines: Sequence[Line]) -> dict[str, str]:
    """The columns that the language refuses, each with its reason."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.yaml").write_text(project.main(), encoding="utf-8")
        Path(folder, "topic.yaml").write_text(text(lines), encoding="utf-8")
        problems = draft(Path(folder))[1]
    reasons = {}
    for problem in problems:
        column = lines[problem.where.line - 1].column
        assert column is not None, str(problem)
        reasons[column] = problem.message
    return reasons


def _head(kafka_name: str, sample: MessageSample) -> Iterator[Line]:
    count = len(sample.messages)
    times = [message.timestamp for message in sample.messages if message.timestamp is not None]
    time_range = f", from {_time(min(times))} to {_time(max(times))}" if times else ""
    yield Line(f"# Written by `sluice init` from the newest {count:,} of about {sample.offsets:,} messages{time_range}.")
    yield Line("# Comments describe these messages. Other messages may differ: correct what you know better.")
    yield Line(f"topic: {scalar(name_of(kafka_name))}")
    if name_of(kafka_name) != kafka_name:
        yield Line(f"kafka_name: {scalar(kafka_name)}")
    if sample.partitions <= _MOST_PARTITIONS:
        yield Line(f"partitions: {sample.partitions}")


def _inferred_lines(
    guessed_format: Guessed, columns: Sequence[GuessedColumn], excluded_columns: dict[str, str], sample: MessageSample
) -> Iterator[Line]:
    if guessed_format.changes:
        yield from guess.change_lines(guessed_format, columns, excluded_columns, sample)
        return
    message_count = len(sample.messages)
    empty = _without_value(sample)
    other_count = guessed_format.count_others(sample)
    yield from _key(sample, {folded(column.name) for column in columns})
    yield Line(f"value: {guessed_format.name}", [
        *([f"{empty:,} of {message_count:,} messages have no value, which makes bad rows"] if empty else []),
        *(
            [f"{other_count:,} of {message_count:,} messages are {guessed_format.guess.are_not}, which makes bad rows"]
            if other_count
            else []
        ),
    ])  # fmt: skip
    yield Line("# No column is `required: true`, which makes a bad row of a message without it: a sample cannot tell.")
    yield Line("columns:")
    yield from map(of_column, columns)
    yield from (Line(f"  # {comment_name(name)} is left out: {why}") for name, why in excluded_columns.items())
    time = next((column for column in columns if column.type == TIMESTAMP), None)
    if time:
        yield Line(f"# event_time: {key(time.name)}", ["if that is when it happened; else Kafka's own time counts"])
    yield from _headers(sample)


def _registered_lines(value: Schemaed, registry_schemas: Subjects, sample: MessageSample) -> Iterator[Line]:
    empty = _without_value(sample)
    changes = value.changes
    if registry_schemas.key:
        yield registered.key_line(registry_schemas.key)
    elif registry_schemas.key_why:
        yield Line("# key: bytes", [f"the keys begin as those of a registry do, but {registry_schemas.key_why}"])
    elif not changes:
        yield from _key(sample, {folded(column.name) for column in value.columns})
    if empty and changes:
        yield Line(f"# {empty:,} of {len(sample.messages):,} messages are tombstones, which are left out.")
    elif empty:
        yield Line(f"# {empty:,} of {len(sample.messages):,} messages have no value, which makes bad rows.")
    yield from registered.value_lines(value)
    yield from _headers(sample)


def _other_lines(sample: MessageSample, values: Sequence[bytes], registry_schemas: Subjects) -> Iterator[Line]:
    message_count = len(sample.messages)
    texts = sum(utf8(value) is not None for value in values)
    partial_counts = {
        candidate.are: sum(candidate.rows(value) is not None for value in values)
        for _, candidate in guess.guesses("value").values()
    }
    empty = _without_value(sample)
    yield from _key(sample, {"value"})
    yield Line(f"value: {_other_format(values)}", [
        *(
            f"{count:,} of {message_count:,} messages are {description}"
            for description, count in partial_counts.items()
            if description and count
        ),
        *([f"{texts:,} of {message_count:,} messages are UTF-8 text"] if texts < len(values) else []),
        *([_of_which_registry(registry_schemas)] if _of_a_registry(values) else []),
        *([f"{empty:,} of {message_count:,} messages have no value, which makes bad rows"] if empty else []),
    ])  # fmt: skip
    yield from _headers(sample)


def _other_format(values: Sequence[bytes]) -> str:
    return guess.of_no_columns(values, _of_a_registry(values))


def _of_which_registry(registry_schemas: Subjects) -> str:
    finding = "they begin as those of a schema registry do"
    if registry_schemas.why:
        return f"{finding}, but {registry_schemas.why}"
    first_name, *other_names = (
        f"`{name}`" for name, format_ in every("value").items() if isinstance(format_, RegisteredSchema) and not format_.changes
    )
    formats = " or ".join(
        filter(None, (", ".join([first_name.replace("`", "`value: ", 1), *other_names[:-1]]), *other_names[-1:]))
    )
    return f"{finding}: name it, by `registry: URL` in the cluster, and write {formats}"


def _of_a_registry(values: Sequence[bytes]) -> bool:
    return all(len(value) > 5 and value[0] == 0 for value in values)


def _key(sample: MessageSample, columns: set[str]) -> Iterator[Line]:
    """The line for the message's key: a column if the key is text that looks like an id, unless a field always has the same value."""
    keys = [message.key for message in sample.messages if message.key is not None]
    if not keys:
        yield Line("# No message has a key.")
        return
    free_name = next(name for name in ("key", "message_key", "kafka_key", "kafka_message_key") if name not in columns)
    missing_count = len(sample.messages) - len(keys)
    remarks = (
        [f"{missing_count:,} of {len(sample.messages):,} messages lack{'s' * (missing_count == 1)} it"] if missing_count else []
    )
    format_, why = guess.of_keys(keys)
    option_text, fields = f"{{format: {format_}, as: {free_name}}}", ""
    same_field = _same_field(sample)
    if why:
        pass
    elif same_field is not None and folded(same_field) in columns:
        why = f"which is always {comment_name(same_field)}"
    elif fields := _fields_of_keys(keys, columns):
        option_text, why = f"{{{fields}}}", "which is an object; those that are columns already are left out"
    elif not all(_like_an_id(utf8(key_bytes) or "") for key_bytes in keys):
        why = "which does not look like an id"
    if why:
        yield Line(f"# key: {option_text}", [f"would make {'columns' if fields else 'a column'} of the key, {why}", *remarks])
    else:
        yield Line(f"key: {option_text}", remarks)


def _fields_of_keys(keys: Sequence[bytes], columns: set[str]) -> str:
    """The format and the fields of keys that have some, as one line of a spec."""
    for name, (_, candidate) in guess.guesses("key").items():
        rows = [row for key in keys if (row := candidate.key(key)) is not None]
        if len(rows) < len(keys):
            continue
        taken_names, fields = set(columns), []
        for column in infer.columns(rows):
            if _PLAIN.fullmatch(column.name) and folded(column.name) not in taken_names:
                taken_names.add(folded(column.name))
                fields.append(in_braces(column))
        if fields:
            return f"format: {name}, columns: {{{', '.join(fields)}}}"
    return ""


def _same_field(sample: MessageSample) -> str | None:
    """The field that is the key in all messages."""
    names: set[str] | None = None
    for message in sample.messages:
        fields = one_object(message.value) if message.value is not None else None
        key_text = None if message.key is None else utf8(message.key)
        equal_fields = {
            name for name, value in (fields or {}).items() if isinstance(value, (str, int)) and str(value) == key_text
        }
        names = equal_fields if names is None else names & equal_fields
    return min(names) if names else None


def _headers(sample: MessageSample) -> Iterator[Line]:
    counts = Counter(name for message in sample.messages for name in {name for name, _ in message.headers})
    header_columns = ", ".join(f"{key(name)}: string" for name in sorted(counts) if _can_be_a_column(name))
    names = ", ".join(f"{comment_name(name)} in {count:,}" for name, count in counts.most_common())
    if counts:
        yield Line(f"# headers: {{{header_columns}}}", [f"would make columns: {names} of {len(sample.messages):,} messages"])


def _pipeline(name: str, catalog: str | None, row_keys: Sequence[str] | None = None) -> Iterator[Line]:
    """The pipeline. `row_keys` are the columns that identify a row, if known; None if messages are no changes of rows."""
    yield Line("---")
    yield Line(f"pipeline: {name}")
    yield Line(f"from: {{topic: {name}}}")
    write_options = guess.write_options(row_keys or ())
    yield from guess.pipeline_lines(row_keys) if row_keys is not None else ()
    yield Line(f"into: {{table: {NAMESPACE}.{name}{f', catalog: {catalog}' if catalog else ''}{write_options}}}")


def _can_be_a_column(name: str) -> bool:
    return bool(_COLUMN.search(name)) and name.isprintable()


def _like_an_id(text_: str) -> bool:
    return 0 < len(text_) <= _LONGEST_ID and text_.isprintable() and " " not in text_ and text_[0] not in "{[\"'"


def _without_value(sample: MessageSample) -> int:
    return sum(message.value is None for message in sample.messages)


def _time(millis: int) -> str:
    return f"{datetime.fromtimestamp(millis / 1000, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
