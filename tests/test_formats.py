"""What every format does, as values and as keys: Sluice's own, and a toy. By its `sample`, which each format has."""

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
from framework.documents.topic.registered import Schemas
from framework.documents.topic.written import KEYS, VALUES
from framework.host.cli import send
from framework.host.plans import load, resolve
from framework.messages.encoding.confluent_frame import prefix_bytes
from framework.messages.encoding.schema_writer import Writer
from framework.messages.formats import FORMATS, BySchema, Format, Given, Single, every, find, schema_of, writer
from framework.messages.schemas.versions import Unsupported
from framework.operations.send import generate
from framework.operations.trials.trial import Trials
from framework.plan import Cluster, Example, Message, Of, Plan, Topic, compare, digest
from framework.plan.schema import Schema, Subject, Version
from tests import toys
from tests.project import BASE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRAMEWORK = Path(__file__).parent.parent / "framework"
AT = datetime(2026, 1, 2, 10, tzinfo=timezone.utc)
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


def names(of: Of) -> list[tuple[Of, str]]:
    with toys.installed():
        return [(of, name) for name in every(of)]


USES = [*names("value"), *names("key")]


def of_name(of: Of, name: str) -> Format:
    found = find(of, name)
    assert found
    return found


def written_columns(format_: Format) -> str:
    """As a spec gives the columns of the sample."""
    return json.dumps({column.name: str(column.type) for column in format_.sample.columns})


def values(format_: Format) -> Mapping[str, Any]:
    """What a message of the sample holds: of changes, that the row was made."""
    return format_.changes.created(format_.sample.values, AT) if format_.changes else format_.sample.values


def schema(format_: BySchema) -> Schema:
    """One of the sample's columns or, where a format makes none, of the change that its row was made."""
    columns = format_.sample.columns
    try:
        return schema_of(format_, "orders", columns)
    except Unsupported:
        plain = next(
            each
            for each in every("value").values()
            if isinstance(each, BySchema) and each.kind == format_.kind and not each.changes
        )
        image, source = Struct(columns), Struct((Field("ts_ms", BIGINT),))
        parts = (Field("before", image), Field("after", image), Field("op", STRING), Field("source", source))
        return schema_of(plain, "orders", parts)


class Registry(Schemas):
    """One in which each subject has the schema of the sample."""

    format: BySchema | None = None

    def subject(self, cluster: Cluster, name: str) -> Subject:
        assert self.format
        return Subject(name, (Version(5, schema(self.format), 1),))


def spec(of: Of, name: str, namespace: str = "n") -> str:
    """A topic of this format with the columns of its sample, and a pipeline with a test: the sample comes back as it is."""
    format_ = of_name(of, name)
    columns = f"columns: {written_columns(format_)}" if isinstance(format_, Given) else ""
    sample = dict(format_.sample.values)
    given: Mapping[str, Any] = values(format_) if of == "value" else {**sample, "beside": "x"}
    expect: Mapping[str, Any] = sample if of == "value" else {**sample, "beside": "x"}
    if format_.changes:
        expect = {**sample, format_.changes.op.name: "c", format_.changes.at.name: AT.isoformat()}
    if of == "value":
        topic = f"topic: orders\nvalue: {name}\n{columns}"
    else:
        as_ = f"as: {format_.sample.columns[0].name}" if isinstance(format_, Single) else columns
        topic = f"topic: orders\nvalue: json\ncolumns: {{beside: string}}\nkey: {{format: {name}{', ' * bool(as_)}{as_}}}"
    return topic + PIPELINE.format(namespace=namespace, given=json.dumps(given), expect=json.dumps(expect))


def planned(folder: Path, of: Of, name: str, namespace: str = "n") -> tuple[Plan, Draft]:
    place = folder / "specs" / uuid.uuid4().hex
    place.mkdir(parents=True)
    text = f"{BASE.format(bootstrap='127.0.0.1:1')}---\n{spec(of, name, namespace)}"
    (place / "main.yaml").write_text(text.replace("cluster: main\n", "cluster: main\nregistry: http://127.0.0.1:1\n", 1))
    registry = Registry()
    format_ = of_name(of, name)
    registry.format = format_ if isinstance(format_, BySchema) else None
    draft = resolve(Draft(written=load(place), problems=[], schemas=registry))
    assert draft.problems == [], [str(problem) for problem in draft.problems]
    plan = Plan(
        environment="local", engine=draft.engine, secrets=draft.secrets, clusters=tuple(draft.clusters.values()),
        catalogs=tuple(draft.catalogs.values()), topics=tuple(draft.topics.values()), pipelines=draft.pipelines,
    )  # fmt: skip
    return plan, draft


def writers(topic: Topic) -> dict[Of, Writer]:
    return {
        each.of: writer(each.write_version.id, each.write_version.schema, each.names)
        for each in topic.registered
        if each.write_version
    }


def encoded(of: Of, topic: Topic, format_: Format) -> bytes:
    """The sample, as `sluice generate` writes values."""
    made = values(format_) if of == "value" else format_.sample.values
    return generate._encoded(of, topic, dict(made), writers(topic))


@pytest.mark.parametrize(("of", "name"), USES)
def test_a_format_says_what_it_is(of: Of, name: str) -> None:
    format_ = of_name(of, name)
    assert FORMATS.load(name).__doc__
    assert {field.name for field in format_.sample.columns} == set(format_.sample.values)
    assert name in (VALUES if of == "value" else KEYS).values()
    assert find(of, f"{name}_") is None


@pytest.mark.parametrize(("of", "name"), USES)
def test_the_columns_of_a_topic(of: Of, name: str, tmp_path: Path) -> None:
    (topic,) = planned(tmp_path, of, name)[0].topics
    format_ = of_name(of, name)
    expected = [(each.name, each.type) for each in format_.sample.columns]
    expected += [(each.name, each.type) for each in (format_.changes.columns if format_.changes else ())]
    columns = [(each.name, each.type) for each in topic.columns_of(of)]
    assert columns == expected
    assert [column for column, _ in topic.decoding.columns if column in dict(columns)] == [column for column, _ in columns]
    text = digest.text(topic.decoding)  # of which a digest is kept from process to process
    assert " at 0x" not in text


@pytest.mark.parametrize(("of", "name"), USES)
def test_the_sample_is_shown_as_json(of: Of, name: str, tmp_path: Path) -> None:
    (topic,) = planned(tmp_path, of, name)[0].topics
    format_ = of_name(of, name)
    data = encoded(of, topic, format_)
    if isinstance(format_, BySchema):
        assert data[:5] == prefix_bytes(5)
        document = json.loads(format_.decoder(schema(format_))(data[5:]))
        assert set(document) == set(values(format_))
        return
    assert format_.wrong is None or format_.wrong(data) is None
    assert json.loads(format_.decoded(data).json or "") is not None
    assert format_.decoded(b"\xff").json is None or format_.wrong is None
    if format_.sample.wrong and isinstance(format_, Single):
        assert format_.wrong is not None
        assert format_.wrong(format_.sample.wrong)


@pytest.mark.parametrize(("of", "name"), USES)
def test_the_sample_is_sent_as_it_is_and_another_message_is_refused(of: Of, name: str, tmp_path: Path) -> None:
    (topic,) = planned(tmp_path, of, name)[0].topics
    format_ = of_name(of, name)
    if isinstance(format_, BySchema):
        return  # which the newest schema in the registry writes
    data = encoded(of, topic, format_)
    writes = send._Written(topic, {}, raw=False)
    if of == "value":
        assert writes.value(data) == data
    elif isinstance(format_, Single):
        assert writes.key(str(next(iter(format_.sample.values.values())))) == data
    else:
        assert writes.key(data.decode()) == data
    if format_.wrong and format_.wrong(b"\xff"):
        with pytest.raises(SluiceError) as refused:
            writes.value(b"\xff") if of == "value" else writes.key(b"\xff".decode("utf-8", "surrogateescape"))
        assert refused.value.code == "not-its-format"


@pytest.mark.spark
@pytest.mark.parametrize(("of", "name"), USES)
def test_the_sample_comes_back_and_another_message_is_a_bad_row(of: Of, name: str, lake: Path, spark: SparkSession) -> None:
    plan, _ = planned(lake, of, name, f"n{uuid.uuid4().hex}")
    (pipeline,) = plan.pipelines
    (example,) = pipeline.examples
    (given,) = example.given
    assert isinstance(given, Message)
    format_ = of_name(of, name)
    data = given.value if of == "value" else given.key
    if not isinstance(format_, BySchema):
        assert data == encoded(of, pipeline.topic, format_)  # what a test gives and what is generated are written alike
    wrong = [each for each in wrong_messages(of, format_) if each is not None]
    parts = (_parts(of, each, given) for each in [data, *wrong])
    messages = [
        Message(batch=1, topic="orders", partition=0, offset=at, timestamp=AT, key=key, value=value)
        for at, (key, value) in enumerate(parts)
    ]
    outcome = Trials(spark, plan).run(
        pipeline, Example(name="messages", where=NOWHERE, given=tuple(messages), expect=None, expect_bad=())
    )
    assert outcome.error is None
    assert compare.differences(example, pipeline.table.columns, outcome.rows, ()) == ()
    assert sorted(row["offset"] for row in outcome.bad) == list(range(1, len(messages)))
    suffix = "" if of == "value" else "_key"
    assert {row["code"] for row in outcome.bad} <= {f"undecodable{suffix}"}
    assert all(row["stage"] == of and len(row["message"]) > 10 for row in outcome.bad)


def wrong_messages(of: Of, format_: Format) -> Iterator[bytes | None]:
    yield format_.sample.wrong
    if isinstance(format_, BySchema):
        yield prefix_bytes(5) + b"\xff\xff"


def _parts(of: Of, data: bytes | None, given: Message) -> tuple[bytes | None, bytes | None]:
    return (given.key, data) if of == "value" else (data, given.value)


# A name of a format in the code of another place would be a second file to edit for the next one.

# Words that are names of formats and mean something else as well: looked for only where they are compared with a format's name.
_COMMON = {"bytes", "json", "long", "string"}
_DEFAULTS = {
    ("messages/registry/answers.py", "AVRO"),  # by the registry's own rule, the kind where none is named
    ("core/query/database.py", "avro"),  # DuckDB's extension, which reads manifests
}


@pytest.mark.slow
def test_no_format_is_named_outside_its_own_file() -> None:
    own = {
        name: {f"messages/formats/{name}.py", f"messages/formats/{name}/"}
        for name in (*dict(every("value")), *dict(every("key")))
    }
    kinds = {each.kind for each in every("value").values() if isinstance(each, BySchema)} - {"JSON"}
    found = []
    for path in sorted(FRAMEWORK.rglob("*.py")):
        place = path.relative_to(FRAMEWORK).as_posix()
        for line, text in quoted(path.read_text(encoding="utf-8")):
            is_kind = text in kinds and not place.startswith("messages/formats/")
            is_name = text in own and not any(place.startswith(each) for each in own[text])
            is_prefix = text.endswith("_") and any(name.startswith(text) for name in own)
            if (is_kind or is_name or is_prefix) and (place, text) not in _DEFAULTS:
                found.append(f"{place}:{line}: {text}")
    assert found == []


def quoted(source: str) -> Iterator[tuple[int, str]]:
    """Texts in the code: of the common words those that are compared."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in _COMMON:
            yield node.lineno, node.value
        if isinstance(node, ast.Compare) and _names_a_format(node.left):
            for each in ast.walk(node):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield each.lineno, each.value


def _names_a_format(node: ast.expr) -> bool:
    """Whether it is a topic's `value` or `key_format`, or the `format` of a key."""
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
