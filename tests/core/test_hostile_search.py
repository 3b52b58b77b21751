"""Projects whose names, keys, values and headers are hostile texts: rows, bad rows, a preview, a spec's tests and a
rebuild are all as a few lines of plain Python say.

Other examples, by hand: EXAMPLES=50 SEED=7 pytest tests/core/test_hostile_search.py -m ""
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from framework.base.errors import Where
from framework.base.types import folded
from framework.core.iceberg import table_state
from framework.core.run.run import batches
from framework.operations.trials.preview import preview
from framework.operations.trials.trial import Trials
from framework.plan import Message, Pipeline, SpecTest, SpecTestRow
from tests.support.hostile_texts import TEXTS, message, written
from tests.support.rebuilds import rebuilt
from tests.support.registry_project import Registered
from tests.support.selection import EXAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
SEED = os.environ.get("SEED")
LARGE = "x" * 200_000
ALL = "${env:HOME} `'\"\\\u2028"  # in each example, since few texts are drawn
HEADER = "h"
TOPIC_OPTIONS = "key: {{format: json, columns: {{{}: string, {}: string}}}}\nheaders: {{h: string}}"
TWIN = """
---
pipeline: twin
from: {{table: {namespace}.trades}}
into: {{table: {namespace}.twin, write: replace}}
"""


def abridged(value: object) -> str:
    """The value as text, short enough for the error of a failed test."""
    return repr(value).replace(LARGE, "[200 KB]")


Draw = Callable[[st.SearchStrategy[Any]], Any]
Row = Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class Sent:
    """A message: a row's fields, nothing, or text that is no JSON."""

    batch: int
    key: Mapping[str, str]
    value: Mapping[str, Any] | str | None
    time: int
    headers: tuple[tuple[str, bytes | None], ...]

    def __repr__(self) -> str:
        return abridged(vars(self))


@dataclass(frozen=True)
class Drawn:
    number: str  # the field that is no text
    names: tuple[str, ...]
    keys: tuple[str, str]  # names of the fields of a message's key
    sent: tuple[Sent, ...]


texts = st.lists(st.sampled_from(TEXTS) | st.text(max_size=5), max_size=3).map("".join)
values = st.integers(0, 9).flatmap(lambda number: st.just(LARGE) if number == 7 else texts)
# Names that a spec can give to a column; a schema can have any other name.
key_names = st.sampled_from(["k\\", "k\u00e9", "ke\u0301", "k%s", "k-/*", "k--", "k😀", "k#", "k\\n", "k!|&", "k_sluice_key"])
names = texts.filter(lambda text: folded(text[:1]) not in ("", "_", "k") and folded(text) != HEADER)
headers = st.tuples(texts.filter(lambda text: "\0" not in text and text != HEADER), st.none() | values.map(str.encode))


def fields(number: str, text_names: Iterable[str], wrong: bool) -> st.SearchStrategy[Mapping[str, Any]]:
    """The fields of a message's value; some are null or missing."""
    numbers = texts if wrong else st.none() | st.integers(-(2**63), 2**63 - 1)
    text = {name: st.none() | values for name in text_names}
    return st.fixed_dictionaries({number: numbers} if wrong else {}, optional=text if wrong else {number: numbers, **text})


@st.composite
def drawings(draw: Draw) -> Drawn:
    drawn, *other_names = draw(st.lists(names, min_size=2, max_size=5, unique_by=folded))
    number = f"{drawn} {ALL}".replace('"', "")
    first_key, second_key = draw(st.lists(key_names, min_size=2, max_size=2, unique=True))
    keys = [
        {first_key: ALL, second_key: ALL},
        *draw(st.lists(st.fixed_dictionaries({first_key: values, second_key: texts}), max_size=2)),
    ]
    messages = []
    for index in range(draw(st.integers(4, 8))):
        kind = draw(st.sampled_from(["row", "row", "row", "nothing", "wrong", "text"]))
        value = draw(
            texts if kind == "text" else st.none() if kind == "nothing" else fields(number, other_names, kind == "wrong")
        )
        batch = index + 1 if index < 2 else draw(st.integers(1, 2))
        messages.append(
            Sent(batch, draw(st.sampled_from(keys)), value, draw(st.integers(1, 6)), tuple(draw(st.lists(headers, max_size=3))))
        )
    marked = (replace(message, headers=((HEADER, draw(values).encode()), *message.headers)) for message in messages)
    return Drawn(number, tuple(other_names), (first_key, second_key), tuple(sorted(marked, key=lambda message: message.batch)))


# The model in plain Python


def is_bad(drawn: Drawn, sent: Sent, deletes: bool) -> bool:
    match sent.value:
        case None:
            return not deletes
        case str():
            return True
        case value:
            return isinstance(value.get(drawn.number), str)


def row(drawn: Drawn, sent: Sent) -> Row:
    assert isinstance(sent.value, Mapping)
    header = dict(sent.headers)[HEADER]
    assert header is not None
    return {**sent.key, **{name: sent.value.get(name) for name in (drawn.number, *drawn.names)}, HEADER: header.decode()}


def appended(drawn: Drawn) -> list[Row]:
    return [row(drawn, sent) for sent in drawn.sent if not is_bad(drawn, sent, False)]


def by_key(drawn: Drawn) -> Iterable[list[Sent]]:
    """The messages of each key, in their order; each gets a time that is not before that of the previous one."""
    histories: dict[tuple[tuple[str, str], ...], list[Sent]] = {}
    for sent in drawn.sent:
        if not is_bad(drawn, sent, True):
            history = histories.setdefault(tuple(sorted(sent.key.items())), [])
            history.append(replace(sent, time=max([sent.time, *(earlier.time for earlier in history[-1:])])))
    return histories.values()


def upserted(drawn: Drawn) -> list[Row]:
    return [row(drawn, history[-1]) for history in by_key(drawn) if history[-1].value is not None]


def versions(drawn: Drawn) -> list[Row]:
    return [
        {
            **row(drawn, sent),
            "valid_from": moment(sent.time),
            "valid_to": moment(following.time) if following else None,
            "is_current": not following,
        }
        for happened in by_key(drawn)
        for sent, following in pairwise([*happened, None])
        if sent and sent.value is not None
    ]


MODELS = {"append": appended, "replace": appended, "upsert": upserted, "history": versions}


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


# The results of Sluice


def plain(value: Any) -> Any:
    """Times in UTC, since equal zones can have different names."""
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value


def without_kafka(rows: Iterable[Row]) -> Counter[str]:
    """The rows in no order, as texts, since pytest's report of different rows would be long."""
    plain_rows = ({name: plain(value) for name, value in row.items() if not name.startswith("_kafka")} for row in rows)
    return Counter(abridged(sorted(row.items())) for row in plain_rows)


def landed(pipeline: Pipeline) -> list[Row]:
    table = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    return [] if table is None else list(table.scan().to_arrow().to_pylist())


def bad(rows: Iterable[Row]) -> Counter[str]:
    """The bad rows: exactly the message that was sent, and the reason where it depends on texts."""
    reasons = (row["message"].split(", found ")[0] if "`: wanted " in row["message"] else None for row in rows)
    return Counter(
        abridged((row["offset"], row["key"], row["value"], row["headers"], says)) for row, says in zip(rows, reasons, strict=True)
    )


class Searched(Registered):
    """A project that also makes its messages as Kafka has them."""

    def begin(self, drawn: Drawn, write: str) -> None:
        self.format = "json_schema"
        self.topic_more = TOPIC_OPTIONS.format(*(written(name)[1:-1] for name in drawn.keys))
        keyed = f", keys: {written(*drawn.keys)}, deletes: tombstones"
        self.into_more = f", write: {write}{keyed}" if write in ("upsert", "history") else ""
        self.template += TWIN if write == "replace" else ""
        self.make_topic(1, **{"max.message.bytes": "10000000"})
        types = {drawn.number: "integer", **dict.fromkeys(drawn.names, "string")}
        schema = {"type": "object", "properties": {name: {"type": type_} for name, type_ in types.items()}}
        self.schema = self.register(json.dumps(schema), kind="JSON")

    def messages_of(self, drawn: Drawn) -> list[Message]:
        return [
            Message(
                batch=sent.batch,
                topic=self.topic,
                partition=0,
                offset=offset,
                timestamp=moment(sent.time),
                key=json.dumps(sent.key).encode(),
                value=self.value(sent),
                headers=sent.headers,
            )
            for offset, sent in enumerate(drawn.sent)
        ]

    def value(self, sent: Sent) -> bytes | None:
        if sent.value is None or isinstance(sent.value, str):
            return None if sent.value is None else b"{" + sent.value.encode()
        return message(self.schema, sent.value)

    def send_all(self, messages: Iterable[Message]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "message.max.bytes": 10_000_000})
        for kafka_message in messages:
            milliseconds = int(kafka_message.timestamp.timestamp() * 1000)
            producer.produce(
                self.topic,
                kafka_message.value,
                key=kafka_message.key,
                headers=list(kafka_message.headers),
                partition=0,
                timestamp=milliseconds,
            )
        assert producer.flush(30) == 0


@pytest.mark.long
@pytest.mark.parametrize("write", ["append", "replace", "upsert", "history"])
def test_hostile_texts_are_texts(write: str, tmp_path: Path, lake: Path, kafka: str, spark: SparkSession, registry: str) -> None:
    limits = settings(
        max_examples=EXAMPLES, deadline=None, derandomize=SEED is None, database=None, phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip

    def same(drawn: Drawn) -> None:
        project = Searched(tmp_path, lake, kafka, spark, registry)
        try:
            as_plain_python_says(project, drawn, write)
        finally:
            project.close()

    judged = limits(given(drawings())(same))
    (seed(int(SEED))(judged) if SEED is not None else judged)()


def as_plain_python_says(project: Searched, drawn: Drawn, write: str) -> None:
    project.begin(drawn, write)
    deletes = write in ("upsert", "history")
    messages = project.messages_of(drawn)
    pairs = list(zip(drawn.sent, messages, strict=True))
    rows = without_kafka(MODELS[write](drawn))
    bad_rows = Counter(
        abridged((message.offset, message.key, message.value, headers_of(message), says(drawn, sent)))
        for sent, message in pairs
        if is_bad(drawn, sent, deletes)
    )
    for number in (1, 2):
        project.send_all(message for message in messages if message.batch == number)
        project.run()
        run_twin(project, write)
    context = project.context()
    of_topic, last_pipeline = context.plan.pipelines[0], context.plan.pipelines[-1]
    assert without_kafka(landed(last_pipeline)) == rows
    assert bad(project.rows(bad=True)) == bad_rows

    previewed = {message.offset: message for message in preview(context, of_topic, len(messages), "earliest").messages}
    assert previewed.keys() == {message.offset for message in messages}
    for offset, sent in enumerate(drawn.sent):
        (previewed_row,) = previewed[offset].rows
        assert previewed_row.fate == ("bad" if is_bad(drawn, sent, deletes) else "deletes" if sent.value is None else "lands")
        assert previewed_row.fate != "lands" or previewed_row.after[-1] == row(drawn, sent)

    given_rows = tuple(SpecTestRow(1, row) for row in landed(of_topic)) if write == "replace" else tuple(messages)
    tried = (
        Trials(project.spark, context.plan).run(
            last_pipeline, SpecTest(name="x", where=Where("x", 1, 1), given=given_rows, expect=None, expect_bad=())
        )
        if given_rows
        else None
    )
    if tried is not None:
        assert tried.error is None
        assert without_kafka(tried.rows) == rows
        assert write == "replace" or bad(tried.bad) == bad_rows

    run_rebuild(project, of_topic)
    run_twin(project, write)
    run_rebuild(project, last_pipeline)
    assert without_kafka(landed(last_pipeline)) == rows
    assert bad(project.rows(bad=True)) == bad_rows


def says(drawn: Drawn, sent: Sent) -> str | None:
    return f"field `{drawn.number}`: wanted bigint" if isinstance(sent.value, Mapping) else None


def headers_of(message: Message) -> Sequence[Row]:
    return [{"key": name, "value": value} for name, value in message.headers]


def run_twin(project: Searched, write: str) -> None:
    if write == "replace":
        context = project.context()
        assert len(list(batches(context, context.plan.pipelines[-1]))) <= 1


def run_rebuild(project: Searched, pipeline: Pipeline) -> None:
    assert rebuilt(project.context(), pipeline) is not None
