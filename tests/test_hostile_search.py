"""Projects whose names, keys, values and headers are hostile texts: what lands, what is bad, what a preview shows, what the tests of a
spec see and what a rebuild makes are all what a few lines of plain Python say.

By hand with others: EXAMPLES=50 SEED=7 pytest tests/test_hostile_search.py -m ""
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
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from framework.base.errors import Where
from framework.base.types import folded
from framework.core.iceberg import table_state
from framework.core.run.run import batches
from framework.operations.rebuild import rebuild
from framework.operations.trials.preview import preview
from framework.operations.trials.trial import Trials
from framework.plan import Example, GivenRow, Message, Pipeline
from tests.registered import Registered
from tests.test_hostile import TEXTS, message, written
from tests.wide import EXAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
SEED = os.environ.get("SEED")
LARGE = "x" * 200_000
ALL = "${env:HOME} `'\"\\\u2028"  # in each example, where few are drawn
HEADER = "h"
SAID = "key: {{format: json, columns: {{{}: string, {}: string}}}}\nheaders: {{h: string}}"
TWIN = """
---
pipeline: twin
from: {{table: {namespace}.trades}}
into: {{table: {namespace}.twin, write: replace}}
"""


def shown(value: object) -> str:
    """What may stand in the error of a failed test."""
    return repr(value).replace(LARGE, "[200 KB]")


Draw = Callable[[st.SearchStrategy[Any]], Any]
Row = Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class Sent:
    """A message: a row's fields, nothing, or text that is no JSON."""

    batch: int
    key: Mapping[str, str]
    value: Mapping[str, Any] | str | None
    at: int
    headers: tuple[tuple[str, bytes | None], ...]

    def __repr__(self) -> str:
        return shown(vars(self))


@dataclass(frozen=True)
class Drawn:
    number: str  # the field that is no text
    names: tuple[str, ...]
    keys: tuple[str, str]  # how the fields of a message's key are called
    sent: tuple[Sent, ...]


texts = st.lists(st.sampled_from(TEXTS) | st.text(max_size=5), max_size=3).map("".join)
values = st.integers(0, 9).flatmap(lambda number: st.just(LARGE) if number == 7 else texts)
# What a spec can call a column; a schema can have any other name.
key_names = st.sampled_from(["k\\", "k\u00e9", "ke\u0301", "k%s", "k-/*", "k--", "k😀", "k#", "k\\n", "k!|&", "k_sluice_key"])
names = texts.filter(lambda text: folded(text[:1]) not in ("", "_", "k") and folded(text) != HEADER)
headers = st.tuples(texts.filter(lambda text: "\0" not in text and text != HEADER), st.none() | values.map(str.encode))


def fields(number: str, others: Iterable[str], wrong: bool) -> st.SearchStrategy[Mapping[str, Any]]:
    """Of a message's value; some are null or not there."""
    numbers = texts if wrong else st.none() | st.integers(-(2**63), 2**63 - 1)
    text = {name: st.none() | values for name in others}
    return st.fixed_dictionaries({number: numbers} if wrong else {}, optional=text if wrong else {number: numbers, **text})


@st.composite
def drawings(draw: Draw) -> Drawn:
    drawn, *others = draw(st.lists(names, min_size=2, max_size=5, unique_by=folded))
    number = f"{drawn} {ALL}".replace('"', "")
    first, second = draw(st.lists(key_names, min_size=2, max_size=2, unique=True))
    keys = [{first: ALL, second: ALL}, *draw(st.lists(st.fixed_dictionaries({first: values, second: texts}), max_size=2))]
    found = []
    for at in range(draw(st.integers(4, 8))):
        of = draw(st.sampled_from(["row", "row", "row", "nothing", "wrong", "text"]))
        value = draw(texts if of == "text" else st.none() if of == "nothing" else fields(number, others, of == "wrong"))
        batch = at + 1 if at < 2 else draw(st.integers(1, 2))
        found.append(
            Sent(batch, draw(st.sampled_from(keys)), value, draw(st.integers(1, 6)), tuple(draw(st.lists(headers, max_size=3))))
        )
    marked = (replace(each, headers=((HEADER, draw(values).encode()), *each.headers)) for each in found)
    return Drawn(number, tuple(others), (first, second), tuple(sorted(marked, key=lambda each: each.batch)))


# What plain Python says


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
    return [row(drawn, each) for each in drawn.sent if not is_bad(drawn, each, False)]


def by_key(drawn: Drawn) -> Iterable[list[Sent]]:
    """What happened to each key, in its order: that of the messages, whose times rise."""
    histories: dict[tuple[tuple[str, str], ...], list[Sent]] = {}
    for sent in drawn.sent:
        if not is_bad(drawn, sent, True):
            history = histories.setdefault(tuple(sorted(sent.key.items())), [])
            history.append(replace(sent, at=max([sent.at, *(earlier.at for earlier in history[-1:])])))
    return histories.values()


def upserted(drawn: Drawn) -> list[Row]:
    return [row(drawn, each[-1]) for each in by_key(drawn) if each[-1].value is not None]


def versions(drawn: Drawn) -> list[Row]:
    return [
        {
            **row(drawn, each),
            "valid_from": moment(each.at),
            "valid_to": moment(next_.at) if next_ else None,
            "is_current": not next_,
        }
        for happened in by_key(drawn)
        for each, next_ in pairwise([*happened, None])
        if each and each.value is not None
    ]


MODELS = {"append": appended, "replace": appended, "upsert": upserted, "history": versions}


def moment(at: int) -> datetime:
    return datetime.fromtimestamp(at, timezone.utc)


# What Sluice makes of it


def plain(value: Any) -> Any:
    """Of a time the zone has several names."""
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value


def without_kafka(rows: Iterable[Row]) -> Counter[str]:
    """Rows in no order; texts of them, since pytest is long about what differs."""
    kept = ({name: plain(value) for name, value in each.items() if not name.startswith("_kafka")} for each in rows)
    return Counter(shown(sorted(each.items())) for each in kept)


def landed(pipeline: Pipeline) -> list[Row]:
    table = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    return [] if table is None else list(table.scan().to_arrow().to_pylist())


def bad(rows: Iterable[Row]) -> Counter[str]:
    """Exactly what was sent, and what is said of it where that depends on texts."""
    said = (each["message"].split(", found ")[0] if "`: wanted " in each["message"] else None for each in rows)
    return Counter(
        shown((each["offset"], each["key"], each["value"], each["headers"], says)) for each, says in zip(rows, said, strict=True)
    )


class Searched(Registered):
    """Its messages, as Kafka has them."""

    def begin(self, drawn: Drawn, write: str) -> None:
        self.format = "json_schema"
        self.topic_more = SAID.format(*(written(name)[1:-1] for name in drawn.keys))
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
                batch=each.batch,
                topic=self.topic,
                partition=0,
                offset=at,
                timestamp=moment(each.at),
                key=json.dumps(each.key).encode(),
                value=self.value(each),
                headers=each.headers,
            )
            for at, each in enumerate(drawn.sent)
        ]

    def value(self, sent: Sent) -> bytes | None:
        if sent.value is None or isinstance(sent.value, str):
            return None if sent.value is None else b"{" + sent.value.encode()
        return message(self.schema, sent.value)

    def send_all(self, found: Iterable[Message]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "message.max.bytes": 10_000_000})
        for each in found:
            at = int(each.timestamp.timestamp() * 1000)
            producer.produce(self.topic, each.value, key=each.key, headers=list(each.headers), partition=0, timestamp=at)
        assert producer.flush(30) == 0


@pytest.mark.long
@pytest.mark.parametrize("write", ["append", "replace", "upsert", "history"])
def test_hostile_texts_are_texts(write: str, tmp_path: Path, lake: Path, kafka: str, spark: SparkSession, registry: str) -> None:
    limits = settings(
        max_examples=EXAMPLES, deadline=None, derandomize=SEED is None, database=None, phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip

    def same(found: Drawn) -> None:
        project = Searched(tmp_path, lake, kafka, spark, registry)
        try:
            as_plain_python_says(project, found, write)
        finally:
            project.close()

    judged = limits(given(drawings())(same))
    (seed(int(SEED))(judged) if SEED is not None else judged)()


def as_plain_python_says(project: Searched, drawn: Drawn, write: str) -> None:
    project.begin(drawn, write)
    deletes = write in ("upsert", "history")
    sent = project.messages_of(drawn)
    pairs = list(zip(drawn.sent, sent, strict=True))
    rows = without_kafka(MODELS[write](drawn))
    bad_rows = Counter(
        shown((each.offset, each.key, each.value, headers_of(each), says(drawn, of)))
        for of, each in pairs
        if is_bad(drawn, of, deletes)
    )
    for number in (1, 2):
        project.send_all(each for each in sent if each.batch == number)
        project.run()
        run_twin(project, write)
    context = project.context()
    of_topic, last = context.plan.pipelines[0], context.plan.pipelines[-1]
    assert without_kafka(landed(last)) == rows
    assert bad(project.rows(bad=True)) == bad_rows

    previewed = {each.offset: each for each in preview(context, of_topic, len(sent), "earliest").messages}
    assert previewed.keys() == {each.offset for each in sent}
    for at, of in enumerate(drawn.sent):
        (seen,) = previewed[at].rows
        assert seen.fate == ("bad" if is_bad(drawn, of, deletes) else "deletes" if of.value is None else "lands")
        assert seen.fate != "lands" or seen.after[-1] == row(drawn, of)

    given_ = tuple(GivenRow(1, each) for each in landed(of_topic)) if write == "replace" else tuple(sent)
    tried = (
        Trials(project.spark, context.plan).run(
            last, Example(name="x", where=Where("x", 1, 1), given=given_, expect=None, expect_bad=())
        )
        if given_
        else None
    )
    if tried is not None:
        assert tried.error is None
        assert without_kafka(tried.rows) == rows
        assert write == "replace" or bad(tried.bad) == bad_rows

    run_rebuild(project, of_topic)
    run_twin(project, write)
    run_rebuild(project, last)
    assert without_kafka(landed(last)) == rows
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
    context = project.context()
    ahead, _ = rebuild.check_rebuild(context, pipeline, without_lost=False)
    assert rebuild.rebuild(context, pipeline, ahead, lambda _: None, lambda: False) is not None
