"""Every step and every expectation on the real engine: on one and on five partitions, with nulls, extremes and empty batches."""

from __future__ import annotations

import pkgutil
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.errors import Where
from framework.documents import steps
from framework.documents.pipeline.written_expectation import OF_MANY, TESTS
from framework.operations.trials.trial import Outcome, Trials
from framework.plan import Message, Plan, SpecTest
from tests.support.project import plan_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]
START = datetime(2026, 1, 1, tzinfo=timezone.utc)

VALUES = {
    "nothing": '{"id": "nothing"}',
    "most": """{"id": "most", "n": 9223372036854775807, "d": 999999999999999999999999999999999999.99,
        "at": "9999-12-31T23:59:59.999999Z", "s": "日本 🙂 é", "items": ["a", null, ""],
        "place": {"building": "A", "floor": 2147483647}}""",
    "least": """{"id": "least", "n": -9223372036854775808, "d": -999999999999999999999999999999999999.99,
        "at": "0001-01-01T00:00:00Z", "s": "", "items": [], "place": {}}""",
    "plain": """{"id": "plain", "n": 1, "d": 1.50, "at": "2026-01-05T10:00:00Z", "s": " x ", "items": ["b"],
        "place": {"building": "B", "floor": 2}}""",
    "broken": "not json",
}
LARGEST, SMALLEST = Decimal("999999999999999999999999999999999999.99"), Decimal("-999999999999999999999999999999999999.99")
NOTHING = dict.fromkeys(("n", "d", "at", "s", "items", "place"))
ROWS: dict[str, dict[str, Any]] = {
    "nothing": {"id": "nothing", **NOTHING},
    "most": {
        "id": "most", "n": 2**63 - 1, "d": LARGEST, "at": datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc), "s": "日本 🙂 é",
        "items": ["a", None, ""], "place": {"building": "A", "floor": 2**31 - 1},
    },
    "least": {
        "id": "least", "n": -(2**63), "d": SMALLEST, "at": datetime(1, 1, 1, tzinfo=timezone.utc), "s": "", "items": [],
        "place": {"building": None, "floor": None},
    },
    "plain": {
        "id": "plain", "n": 1, "d": Decimal("1.50"), "at": datetime(2026, 1, 5, 10, tzinfo=timezone.utc), "s": " x ", "items": ["b"],
        "place": {"building": "B", "floor": 2},
    },
}  # fmt: skip
TOPIC = """
topic: all
value: json
columns: {id: string, n: bigint, d: "decimal(38,2)", at: timestamp, s: string, items: array<string>,
  place: "struct<building string, floor int>"}
"""


@dataclass(frozen=True)
class Case:
    """The spec of a pipeline without its topic and table, its rows from `VALUES`, and its bad rows with their reasons. Each case
    has the undecodable message `broken` besides."""

    says: str
    rows: tuple[dict[str, Any], ...]
    bad: tuple[tuple[str, str, str, str], ...] = ()  # id, stage, code, message
    stops: str = ""  # what an expectation says that stops the batch


def rows(*ids: str, **changed: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    """Returns the rows of these ids; `changed` has columns to add, replace or (without values) remove."""
    result = []
    for index, name in enumerate(ids):
        row = {**ROWS[name], **{column: values[index] for column, values in changed.items() if values}}
        result.append({column: value for column, value in row.items() if changed.get(column, (None,))})
    return tuple(result)


def failed(stage: str, text: str, *ids: str) -> tuple[tuple[str, str, str, str], ...]:
    return tuple((name, stage, "step_failed", f"`{text}` cannot be computed for this row") for name in ids)


def unexpected(message: str, *ids: str) -> tuple[tuple[str, str, str, str], ...]:
    return tuple((name, "expect", "expectation_failed", message) for name in ids)


ALL = ("nothing", "most", "least", "plain")
FLOORS = (None, 2**31 - 1, None, 2)
BUILDINGS = (None, "A", None, "B")
REMOVED: tuple[Any, ...] = ()

CASES: dict[str, Case] = {
    "nothing": Case("steps: []", rows(*ALL)),
    "select": Case(
        "steps: [{select: [s, place.floor, n]}]",
        tuple({"s": ROWS[name]["s"], "floor": floor, "n": ROWS[name]["n"]} for name, floor in zip(ALL, FLOORS, strict=True)),
    ),
    "dedup": Case(
        "steps: [{dedup: {keys: [s]}}]",
        rows("most", "least", "plain"),
        (("nothing", "dedup", "null_key", "`s` is null, and it is one of the keys"),),
    ),
    "drop": Case("steps: [{drop: [place, d]}]", rows(*ALL, place=REMOVED, d=REMOVED)),
    "rename": Case(
        "steps: [{rename: {n: d, d: n}}]", rows(*ALL, n=(None, LARGEST, SMALLEST, Decimal("1.50")), d=(None, 2**63 - 1, -(2**63), 1))
    ),
    "cast": Case(
        'steps: [{cast: {n: int, d: "decimal(4,1)"}}]',
        rows("nothing", "plain", d=(None, Decimal("1.5"))),
        failed("cast", "n as int", "most", "least"),
    ),
    "cast text": Case(
        "steps: [{cast: {n: string, s: bigint}}]", rows("nothing", n=(None,)), failed("cast", "s as bigint", "most", "least", "plain")
    ),
    "derive": Case(
        "steps: [{derive: {n: n + 1, later: at + interval 1 day, inverse: 1 / n}}]",
        rows(
            "nothing", "least", "plain", n=(None, -(2**63) + 1, 2), inverse=(None, -1 / 2**63, 1.0),
            later=(None, datetime(1, 1, 2, tzinfo=timezone.utc), datetime(2026, 1, 6, 10, tzinfo=timezone.utc)),
        ),
        failed("derive", "n: n + 1", "most"),
    ),
    "filter": Case("steps: [{filter: n > 0}]", rows("most", "plain")),
    "filter that fails": Case("steps: [{filter: n * 2 > 0}]", rows("plain"), failed("filter", "n * 2 > 0", "most", "least")),
    "filter all": Case("steps: [{filter: n is null and s is not null}]", ()),
    "flag": Case(
        "steps: [{flag: {into: size, rules: [{when: n > 5, label: LARGE}, {when: n - 5 > -9, label: SMALL}]}}]",
        rows("nothing", "most", "plain", size=(None, "LARGE", "SMALL")),
        failed("flag", "size", "least"),
    ),
    "flatten": Case(
        "steps: [{flatten: [place]}]", rows(*ALL, place=REMOVED, place_building=BUILDINGS, place_floor=FLOORS),
    ),
    "explode": Case(
        "steps: [{explode: {column: items, into: item}}]",
        rows("most", "most", "most", "plain", items=REMOVED, item=("a", None, "", "b")),
    ),
    "explode and fail": Case(
        "steps: [{explode: {column: items}}, {derive: {length: 10 / length(items)}}]",
        rows("most", "most", "plain", items=("a", None, "b"), length=(10.0, None, 10.0)),
        failed("derive", "length: 10 / length(items)", "most"),
    ),
    "sql": Case(
        "steps: [{sql: \"select id, upper(s) as s, d * 2 as d2 from input where id <> 'plain'\"}]",
        ({"id": "nothing", "s": None, "d2": None},),
        failed("sql", "d * 2", "most", "least"),
    ),
    "tidy": Case("steps: [{tidy: [s]}]", rows(*ALL, s=(None, "日本 🙂 é", None, "x"))),
    "several": Case(
        "steps: [{filter: n > 0}, {derive: {n: n - 1}}, {tidy: [s]}, {drop: [place]}]",
        rows("most", "plain", n=(2**63 - 2, 0), s=("日本 🙂 é", "x"), place=REMOVED),
    ),
    "not null": Case("expect: [{column: n, not_null: true}]", rows("most", "least", "plain"), unexpected("n is not null", "nothing")),
    "between": Case(
        "expect: [{column: d, between: [0, 1.5]}]", rows("plain"), unexpected("d is between 0 and 1.5", "nothing", "most", "least")
    ),
    "between numbers of another type": Case(
        "expect: [{column: n, between: [0.5, 10000000000000000000]}]",
        rows("most", "plain"),
        unexpected("n is between 0.5 and 10000000000000000000", "nothing", "least"),
    ),
    "one of": Case(
        'expect: [{column: s, one_of: ["", " x "]}]', rows("least", "plain"), unexpected("s is one of ,  x ", "nothing", "most")
    ),
    "matches": Case(
        'expect: [{column: s, matches: "[^x]*"}]', rows("most", "least"), unexpected("s matches [^x]*", "nothing", "plain")
    ),
    "when": Case(
        "expect: [{name: early, when: year(at) < 2026}]", rows("least"),
        unexpected("early: year(at) < 2026", "nothing", "most", "plain"),
    ),
    "length": Case(
        "expect: [{column: s, length: [1, 3]}]",
        rows("plain"),
        unexpected("the length of s is between 1 and 3", "nothing", "most", "least"),
    ),
    "many rows": Case("expect: [{unique: [n, s]}, {rows: [0, 1000]}]", rows(*ALL)),
    "warn": Case("expect: [{when: n > 0, else: warn}, {column: s, not_null: true, else: warn}]", rows(*ALL)),
    "stop": Case("expect: [{name: large, when: n > 0, else: stop}]", (), stops="2 of 4 rows are not as `large` expects"),
    "stop that holds": Case(
        "steps: [{filter: n > 0}]\nexpect: [{when: n > 0, else: stop}]", rows("most", "plain")
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def plan(lake: Path) -> Iterator[Plan]:
    folder = lake / "specs" / "pipelines"
    shutil.copytree(ROOT / "pipelines" / "steps", folder / "steps", dirs_exist_ok=True)
    pipelines = [
        f"---\npipeline: case{number}\nfrom: {{topic: all}}\n{case.says}\ninto: {{table: steps.case{number}}}\n"
        for number, case in enumerate(CASES.values())
    ]
    yield plan_for(lake, "127.0.0.1:1", TOPIC + "".join(pipelines))
    shutil.rmtree(folder)


def without_cause(message: str) -> str:
    return message.partition(" for this row")[0] + " for this row" if " for this row" in message else message


def messages(partitions: int, batches: tuple[int, ...]) -> tuple[Message, ...]:
    """Returns all values as messages, spread in turn over these batches and over this many partitions."""
    result = []
    offsets = [0] * partitions
    for batch in batches:
        for index, value in enumerate(VALUES.values()):
            if batches[index % len(batches)] == batch:
                result.append(
                    Message(
                        batch=batch,
                        topic="all",
                        partition=index % partitions,
                        offset=offsets[index % partitions],
                        timestamp=START,
                        value=value.encode(),
                    )
                )
                offsets[index % partitions] += 1
    return tuple(result)


def rows_and_bad_rows(outcome: Outcome) -> tuple[list[str], list[tuple[str, ...]]]:
    good = [repr({name: _utc(value) for name, value in row.items() if not name.startswith("_kafka_")}) for row in outcome.rows]
    ids = {value.encode(): name for name, value in VALUES.items()}
    bad = [(ids[row["value"]], row["stage"], row["code"], without_cause(row["message"])) for row in outcome.bad]
    return sorted(good), sorted(bad)


def _utc(value: Any) -> Any:
    """Returns times with the time zone of the rows above, since Arrow's UTC is another object."""
    return value.replace(tzinfo=timezone.utc) if isinstance(value, datetime) else value


@pytest.mark.parametrize(
    ("partitions", "batches"),
    [(1, (1,)), pytest.param(5, (2, 4), marks=pytest.mark.long)],
    ids=["one", "five, empty batches between"],
)
@pytest.mark.parametrize("name", CASES)
def test_a_step_gives_the_rows_of_its_case(
    name: str, partitions: int, batches: tuple[int, ...], plan: Plan, spark: SparkSession
) -> None:
    case = CASES[name]
    pipeline = plan.pipeline(f"case{list(CASES).index(name)}")
    assert pipeline is not None
    table = replace(pipeline.table, namespace=f"p{partitions}")
    batches = (1,) if case.stops else batches  # with more batches, the rows of earlier ones would stay

    outcome = Trials(spark, plan, partitions).run(
        replace(pipeline, table=table),
        SpecTest(name=name, where=Where("", 0, 0), given=messages(partitions, batches), expect=None, expect_bad=()),
    )

    assert case.stops in str(outcome.error) if case.stops else outcome.error is None
    good, bad = rows_and_bad_rows(outcome)
    names = [column.name for column in table.columns if not column.name.startswith("_kafka_")]
    assert good == sorted(repr({name: row[name] for name in names}) for row in case.rows)
    undecodable = (
        () if case.stops else (("broken", "value", "undecodable", "the value is not JSON: `o` is not expected at byte 1"),)
    )
    assert bad == sorted((*case.bad, *undecodable))


def test_an_error_that_nobody_foresaw_fails_its_own_test_alone(
    plan: Plan, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    # No spec is known whose batch fails by an error that nobody foresaw.
    monkeypatch.setattr("framework.operations.trials.trial.next_batch", broken)
    work = [
        (plan.pipelines[0], SpecTest(name=name, where=Where("", 0, 0), given=(), expect=None, expect_bad=()))
        for name in ("a", "b")
    ]
    outcomes = list(Trials(spark, plan).outcomes(work))
    assert [outcome.error and outcome.error.code for outcome in outcomes] == ["unexpected-error"] * 2


def test_every_step_and_expectation_has_a_case(plan: Plan) -> None:
    step_names = {module.name for module in pkgutil.iter_modules(steps.__path__) if not module.name.startswith("_")}
    # What mask hides is compared here, aggregate adds rows up, and join needs another table: they have tests of their own.
    step_names -= {"mask", "aggregate", "join"}
    own_names = {path.stem for path in (ROOT / "pipelines" / "steps").glob("*.py")}
    used_names = {step.name for pipeline in plan.pipelines for step in pipeline.steps}
    assert step_names | own_names <= used_names, "add a case to CASES"
    text = "".join(case.says for case in CASES.values())
    words = [f"{test}:" for test in (*TESTS, *OF_MANY, "when") if test != "references"]  # which has another table, too
    assert all(word in text for word in (*words, "else: warn", "else: stop"))
