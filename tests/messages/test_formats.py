"""Tests that every format passes, as values and as keys, by its `sample`: Sluice's own formats, and a toy."""

from __future__ import annotations

import ast
import json
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.errors import SluiceError, Where
from framework.base.types import BIGINT, STRING, Field, Struct
from framework.documents.draft import Draft
from framework.documents.topic.registered import RegistrySchemas
from framework.documents.topic.written import KEYS, VALUES
from framework.host.cli import send
from framework.host.plans import load, plan_documents
from framework.messages.encoding.confluent_frame import prefix_bytes
from framework.messages.encoding.schema_writer import Writer
from framework.messages.formats import (
    FORMATS,
    DeclaredColumns,
    Format,
    OneColumn,
    RegisteredSchema,
    every,
    find,
    schema_of,
    writer,
)
from framework.messages.schemas.versions import Unsupported
from framework.operations.send import generate
from framework.operations.trials.trial import Trials
from framework.plan import Cluster, Message, MessagePart, Plan, SpecTest, Topic, compare, digest
from framework.plan.schema import Schema, Subject, Version
from tests import toys
from tests.support.project import BASE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRAMEWORK = Path(__file__).parents[2] / "framework"
TIME = datetime(2026, 1, 2, 10, tzinfo=timezone.utc)
NOWHERE = Where("", 0, 0)
PIPELINE = """
---
pipeline: orders
from: {{topic: orders}}
into: {{table: {namespace}.orders}}
tests:
  - name: the sample
    given: [{given}]
    expect: [{expect}]
"""


@pytest.fixture(autouse=True, scope="module")
def with_toys() -> Iterator[None]:
    with toys.installed():
        yield


def names(part: MessagePart) -> list[tuple[MessagePart, str]]:
    with toys.installed():
        return [(part, name) for name in every(part)]


USES = [*names("value"), *names("key")]


def of_name(part: MessagePart, name: str) -> Format:
    format_ = find(part, name)
    assert format_
    return format_


def written_columns(format_: Format) -> str:
    """The columns of the sample, as a spec declares them."""
    return json.dumps({column.name: str(column.type) for column in format_.sample.columns})


def values(format_: Format) -> Mapping[str, Any]:
    """The fields of a message of the sample; for a format of changes, of the change that creates the row."""
    return format_.changes.created(format_.sample.values, TIME) if format_.changes else format_.sample.values


def schema(format_: RegisteredSchema) -> Schema:
    """A schema of the sample's columns or, where a format makes none, of the change that creates its row."""
    columns = format_.sample.columns
    try:
        return schema_of(format_, "orders", columns)
    except Unsupported:
        plain = next(
            candidate
            for candidate in every("value").values()
            if isinstance(candidate, RegisteredSchema) and candidate.kind == format_.kind and not candidate.changes
        )
        image, source = Struct(columns), Struct((Field("ts_ms", BIGINT),))
        parts = (Field("before", image), Field("after", image), Field("op", STRING), Field("source", source))
        return schema_of(plain, "orders", parts)


class Registry(RegistrySchemas):
    """A registry in which each subject has the schema of the sample."""

    format: RegisteredSchema | None = None

    def subject(self, cluster: Cluster, name: str) -> Subject:
        assert self.format
        return Subject(name, (Version(5, schema(self.format), 1),))


def spec(part: MessagePart, name: str, namespace: str = "n") -> str:
    """A topic of this format with the columns of its sample, and a pipeline with a test: the sample comes back as it is."""
    format_ = of_name(part, name)
    columns = f"columns: {written_columns(format_)}" if isinstance(format_, DeclaredColumns) else ""
    sample = dict(format_.sample.values)
    given_values: Mapping[str, Any] = values(format_) if part == "value" else {**sample, "beside": "x"}
    expected_values: Mapping[str, Any] = sample if part == "value" else {**sample, "beside": "x"}
    if format_.changes:
        expected_values = {**sample, format_.changes.op.name: "c", format_.changes.at.name: TIME.isoformat()}
    if part == "value":
        topic = f"topic: orders\nvalue: {name}\n{columns}"
    else:
        key_columns = f"as: {format_.sample.columns[0].name}" if isinstance(format_, OneColumn) else columns
        topic = f"topic: orders\nvalue: json\ncolumns: {{beside: string}}\nkey: {{format: {name}{', ' * bool(key_columns)}{key_columns}}}"
    return topic + PIPELINE.format(namespace=namespace, given=json.dumps(given_values), expect=json.dumps(expected_values))


def planned(folder: Path, part: MessagePart, name: str, namespace: str = "n") -> tuple[Plan, Draft]:
    place = folder / "specs" / uuid.uuid4().hex
    place.mkdir(parents=True)
    text = f"{BASE.format(bootstrap='127.0.0.1:1')}---\n{spec(part, name, namespace)}"
    (place / "main.yaml").write_text(text.replace("cluster: main\n", "cluster: main\nregistry: http://127.0.0.1:1\n", 1))
    registry = Registry()
    format_ = of_name(part, name)
    registry.format = format_ if isinstance(format_, RegisteredSchema) else None
    draft = plan_documents(Draft(written=load(place), problems=[], schemas=registry))
    assert draft.problems == [], [str(problem) for problem in draft.problems]
    plan = Plan(
        environment="local", engine=draft.engine, secrets=draft.secrets, clusters=tuple(draft.clusters.values()),
        catalogs=tuple(draft.catalogs.values()), topics=tuple(draft.topics.values()), pipelines=draft.pipelines,
    )  # fmt: skip
    return plan, draft


def writers(topic: Topic) -> dict[MessagePart, Writer]:
    return {
        registered.of: writer(registered.write_version.id, registered.write_version.schema, registered.names)
        for registered in topic.registered
        if registered.write_version
    }


def encoded(part: MessagePart, topic: Topic, format_: Format) -> bytes:
    """The sample, as `sluice generate` writes values."""
    sample_values = values(format_) if part == "value" else format_.sample.values
    return generate._encoded(part, topic, dict(sample_values), writers(topic))


@pytest.mark.parametrize(("part", "name"), USES)
def test_a_format_says_what_it_is(part: MessagePart, name: str) -> None:
    format_ = of_name(part, name)
    assert FORMATS.load(name).__doc__
    assert {field.name for field in format_.sample.columns} == set(format_.sample.values)
    assert name in (VALUES if part == "value" else KEYS).values()
    assert find(part, f"{name}_") is None


@pytest.mark.parametrize(("part", "name"), USES)
def test_the_columns_of_a_topic(part: MessagePart, name: str, tmp_path: Path) -> None:
    (topic,) = planned(tmp_path, part, name)[0].topics
    format_ = of_name(part, name)
    expected = [(column.name, column.type) for column in format_.sample.columns]
    expected += [(column.name, column.type) for column in (format_.changes.columns if format_.changes else ())]
    columns = [(column.name, column.type) for column in topic.columns_of(part)]
    assert columns == expected
    assert [column for column, _ in topic.decoding.columns if column in dict(columns)] == [column for column, _ in columns]
    text = digest.text(topic.decoding)  # its digest is compared between processes
    assert " at 0x" not in text


@pytest.mark.parametrize(("part", "name"), USES)
def test_the_sample_is_shown_as_json(part: MessagePart, name: str, tmp_path: Path) -> None:
    (topic,) = planned(tmp_path, part, name)[0].topics
    format_ = of_name(part, name)
    data = encoded(part, topic, format_)
    if isinstance(format_, RegisteredSchema):
        assert data[:5] == prefix_bytes(5)
        document = json.loads(format_.decoder(schema(format_))(data[5:]))
        assert set(document) == set(values(format_))
        return
    assert format_.wrong is None or format_.wrong(data) is None
    assert json.loads(format_.decoded(data).json or "") is not None
    assert format_.decoded(b"\xff").json is None or format_.wrong is None
    if format_.sample.wrong and isinstance(format_, OneColumn):
        assert format_.wrong is not None
        assert format_.wrong(format_.sample.wrong)


@pytest.mark.parametrize(("part", "name"), USES)
def test_the_sample_is_sent_as_it_is_and_another_message_is_refused(part: MessagePart, name: str, tmp_path: Path) -> None:
    (topic,) = planned(tmp_path, part, name)[0].topics
    format_ = of_name(part, name)
    if isinstance(format_, RegisteredSchema):
        return  # these are encoded by the newest schema of a registry
    data = encoded(part, topic, format_)
    writes = send._Written(topic, {}, raw=False)
    if part == "value":
        assert writes.value(data) == data
    elif isinstance(format_, OneColumn):
        assert writes.key(str(next(iter(format_.sample.values.values())))) == data
    else:
        assert writes.key(data.decode()) == data
    if format_.wrong and format_.wrong(b"\xff"):
        with pytest.raises(SluiceError) as refused:
            writes.value(b"\xff") if part == "value" else writes.key(b"\xff".decode("utf-8", "surrogateescape"))
        assert refused.value.code == "not-its-format"


@pytest.mark.spark
@pytest.mark.parametrize(("part", "name"), USES)
def test_the_sample_comes_back_and_another_message_is_a_bad_row(
    part: MessagePart, name: str, lake: Path, spark: SparkSession
) -> None:
    plan, _ = planned(lake, part, name, f"n{uuid.uuid4().hex}")
    (pipeline,) = plan.pipelines
    (example,) = pipeline.examples
    (message,) = example.given
    assert isinstance(message, Message)
    format_ = of_name(part, name)
    data = message.value if part == "value" else message.key
    if not isinstance(format_, RegisteredSchema):
        assert data == encoded(part, pipeline.topic, format_)  # tests and `sluice generate` encode alike
    wrong = [body for body in wrong_messages(part, format_) if body is not None]
    parts = (_parts(part, body, message) for body in [data, *wrong])
    messages = [
        Message(batch=1, topic="orders", partition=0, offset=offset, timestamp=TIME, key=key, value=value)
        for offset, (key, value) in enumerate(parts)
    ]
    outcome = Trials(spark, plan).run(
        pipeline, SpecTest(name="messages", where=NOWHERE, given=tuple(messages), expect=None, expect_bad=())
    )
    assert outcome.error is None
    assert compare.differences(example, pipeline.table.columns, outcome.rows, ()) == ()
    assert sorted(row["offset"] for row in outcome.bad) == list(range(1, len(messages)))
    suffix = "" if part == "value" else "_key"
    assert {row["code"] for row in outcome.bad} <= {f"undecodable{suffix}"}
    assert all(row["stage"] == part and len(row["message"]) > 10 for row in outcome.bad)


def wrong_messages(part: MessagePart, format_: Format) -> Iterator[bytes | None]:
    yield format_.sample.wrong
    if isinstance(format_, RegisteredSchema):
        yield prefix_bytes(5) + b"\xff\xff"


def _parts(part: MessagePart, data: bytes | None, message: Message) -> tuple[bytes | None, bytes | None]:
    return (message.key, data) if part == "value" else (data, message.value)


# If other code named a format, the next format would be a change in two files.

# Names of formats that mean something else as well: problems only where the code compares them with a format's name.
_COMMON = {"bytes", "json", "long", "string"}
_DEFAULTS = {
    ("messages/registry/answers.py", "AVRO"),  # by the registry's own rule, the kind where none is named
    ("core/query/database.py", "avro"),  # DuckDB's extension, which reads manifests
}


@pytest.mark.slow
def test_no_format_is_named_outside_its_own_file() -> None:
    homes = {
        name: {f"messages/formats/{name}.py", f"messages/formats/{name}/"}
        for name in (*dict(every("value")), *dict(every("key")))
    }
    kinds = {format_.kind for format_ in every("value").values() if isinstance(format_, RegisteredSchema)} - {"JSON"}
    problems = []
    for path in sorted(FRAMEWORK.rglob("*.py")):
        place = path.relative_to(FRAMEWORK).as_posix()
        for line, text in quoted(path.read_text(encoding="utf-8")):
            is_kind = text in kinds and not place.startswith("messages/formats/")
            is_name = text in homes and not any(place.startswith(home) for home in homes[text])
            is_prefix = text.endswith("_") and any(name.startswith(text) for name in homes)
            if (is_kind or is_name or is_prefix) and (place, text) not in _DEFAULTS:
                problems.append(f"{place}:{line}: {text}")
    assert problems == []


def quoted(source: str) -> Iterator[tuple[int, str]]:
    """Texts in the code; common words only where they are compared with a format."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in _COMMON:
            yield node.lineno, node.value
        if isinstance(node, ast.Compare) and _names_a_format(node.left):
            for constant in ast.walk(node):
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                    yield constant.lineno, constant.value


def _names_a_format(node: ast.expr) -> bool:
    """Whether the node is a topic's `value` or `key_format`, or the `format` of a key."""
    text = ast.unparse(node)
    return (
        text.endswith(("topic.value", "key_format", "key.format", "said.value", "asked.format", "self.value"))
        or text == "format_"
    )


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ('topic.value == "json"', ["json"]),
        ('said.key.format in ("long", "bytes")', ["long", "bytes"]),
        ('name = "avro"', ["avro"]),
        ('kind = "json"', []),
    ],
)
def test_the_judge_of_names(source: str, texts: list[str]) -> None:
    assert [text for _, text in quoted(source)] == texts
