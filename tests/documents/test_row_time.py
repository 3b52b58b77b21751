"""A row's time under each later step: steps that compare times use the time of the event, or the spec is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.base.errors import Problem
from framework.host import plans as passes
from framework.language import extensions
from framework.plan import Pipeline
from tests.support.spec_parts import LAKE

SPEC = f"""
cluster: main
bootstrap: 127.0.0.1:1
---
{LAKE}
---
topic: trades
value: json
columns: {{k: string, v: double, at: timestamp, other: timestamp, place: "struct<at: timestamp>", times: "array<timestamp>"}}
event_time: at
---
topic: customers
value: json
key: {{format: string, as: k}}
columns: {{at: timestamp}}
---
pipeline: customers
from: {{topic: customers}}
into: {{table: shop.customers, write: upsert, keys: [k]}}
---
pipeline: trades
from: {{topic: trades}}
steps: [%s]
into: {{table: shop.trades, %s}}
"""
# Steps that keep the time of a row, and the column that has it then.
KEEP = {
    "filter": ("{filter: v > 0}", "at"),
    "a flag of its own": ("{flag: {into: label, rules: [{when: v > 0, label: HIGH}]}}", "at"),
    "a copy": ("{derive: {at2: at}}", "at"),
    "a copy, and another time": ("{derive: {event: at}}, {derive: {at: other}}", "event"),
    "rename": ("{rename: {at: time}}", "time"),
    "names that are swapped": ("{rename: {at: other, other: at}}", "other"),
    "there and back": ("{rename: {at: time}}, {rename: {time: at}}", "at"),
    "select": ("{select: [k, v, at]}", "at"),
    "sql": ("{sql: 'select k, v, at from input'}", "at"),
    "sql that renames": ("{sql: 'select k, v, at as time, other as at from input'}", "time"),
    "drop of another": ("{drop: [other]}", "at"),
    "cast of another": ("{cast: {other: date}}", "at"),
    "flatten": ("{flatten: [place]}", "at"),
    "join": ("{rename: {at: time}}, {join: {table: shop.customers, on: [k], take: [at]}}", "time"),
    "mask of another": ("{mask: {key: '${secret:pii}', columns: {other: {generalize: day}}}}", "at"),
}
# Steps after which no column has the time, and what is said of the step.
LOSE = {
    "derive": ("{derive: {at: \"date_trunc('DAY', at)\"}}", "`derive` gives it other values"),
    "another type": ("{derive: {at: cast(at as date)}}", "`derive` gives it other values"),
    "cast of it": ("{cast: {at: date}}", "`cast` gives it other values"),
    "flag that replaces it": ("{flag: {into: at, rules: [{when: v > 0, label: HIGH}]}}", "`flag` gives it other values"),
    "mask": ("{mask: {key: '${secret:pii}', columns: {at: {generalize: day}}}}", "`mask` masks it"),
    "mask that drops": ("{mask: {key: '${secret:pii}', columns: {at: drop}}}", "`mask` masks it"),
    "drop": ("{drop: [at]}", "`drop` removes it"),
    "drop of a renamed one": ("{rename: {at: time}}, {drop: [time]}", "`drop` removes it"),
    "select without it": ("{select: [k, v, other]}", "`select` removes it"),
    "select of a field": ("{select: [k, v, place.at]}", "`select` gives it other values"),
    "flatten that replaces it": ("{drop: [at]}, {rename: {place: x}}, {flatten: [x]}, {rename: {x_at: at}}", "`drop` removes it"),
    "join that replaces it": ("{drop: [at]}, {join: {table: shop.customers, on: [k], take: [at]}}", "`drop` removes it"),
    "sql that replaces it": ("{sql: 'select k, v, other as at from input'}", "`sql` gives it other values"),
}
DEDUP = "{dedup: {keys: [k], within: 1h}}"
MOVING = "{flag: {into: moving, rules: [{beyond: {column: v, per: [k], deviations: 4, %s}, label: FAR}]}}"
COMPARERS = {
    "dedup": (DEDUP, "dedup-changed-time"),
    "moving rule of a time": (MOVING % "over: 24h", "beyond-changed-time"),
    "moving rule of rows": (MOVING % "rows: 100", "beyond-changed-time"),
}


def planned(folder: Path, steps: str, into: str) -> tuple[Pipeline | None, tuple[Problem, ...]]:
    (folder / "specs").mkdir()
    (folder / "specs" / "a.yaml").write_text(SPEC % (steps, into))
    plan, problems = passes.draft(folder / "specs")
    return plan.pipeline("trades"), problems


@pytest.mark.parametrize("steps", KEEP)
@pytest.mark.parametrize("comparer", COMPARERS)
@pytest.mark.parametrize("behind", [True, False])
def test_a_step_compares_the_time_of_the_event_under_whatever_name_the_table_has_it(
    tmp_path: Path, comparer: str, steps: str, behind: bool
) -> None:
    step, (other_steps, column) = COMPARERS[comparer][0], KEEP[steps]
    pipeline, problems = planned(tmp_path, f"{step}, {other_steps}" if behind else f"{other_steps}, {step}", "write: append")
    assert not problems
    assert pipeline is not None
    assert pipeline.event_time == column


@pytest.mark.parametrize("steps", LOSE)
@pytest.mark.parametrize("comparer", COMPARERS)
@pytest.mark.parametrize("behind", [True, False])
def test_a_step_that_compares_times_is_refused_where_the_table_has_other_times(
    tmp_path: Path, comparer: str, steps: str, behind: bool
) -> None:
    (step, code), (other_steps, message) = COMPARERS[comparer], LOSE[steps]
    _, problems = planned(tmp_path, f"{step}, {other_steps}" if behind else f"{other_steps}, {step}", "write: append")
    assert [problem.code for problem in problems] == [code]
    assert message in problems[0].message


@pytest.mark.parametrize("write", ["upsert", "history"])
@pytest.mark.parametrize("steps", [*KEEP, *LOSE])
def test_rows_of_a_key_are_ordered_by_the_time_of_the_event_or_a_mask_is_refused(tmp_path: Path, write: str, steps: str) -> None:
    other_steps, _ = (KEEP | LOSE)[steps]
    pipeline, problems = planned(tmp_path, other_steps, f"write: {write}, keys: [k]")
    if steps.startswith("mask") and steps in LOSE:
        assert [problem.code for problem in problems] == ["mask-of-time"]
        return
    assert not problems
    assert pipeline is not None
    assert pipeline.table.keyed is not None
    untouched = steps in KEEP and KEEP[steps][1] == "at" and "rename" not in other_steps
    assert pipeline.table.keyed.order[0] == ("at" if untouched else "_event_time")


@pytest.mark.parametrize("steps", [steps for steps in LOSE if steps not in ("mask", "mask that drops")])
def test_a_table_that_does_not_keep_the_time_of_the_event_has_no_other_time_instead(tmp_path: Path, steps: str) -> None:
    pipeline, problems = planned(tmp_path, LOSE[steps][0], "write: append")
    assert not problems
    assert pipeline is not None
    assert pipeline.event_time is None


def test_a_masked_time_is_not_kept_for_first_and_last_values(tmp_path: Path) -> None:
    mask = "{mask: {key: '${secret:pii}', columns: {at: {generalize: day}}}}"
    total = "{aggregate: {by: [k], window: {column: at, every: 1h}, measures: {%s}}}"
    _, problems = planned(tmp_path, f"{mask}, {total % 'opened: first(v)'}", "write: accumulate")
    assert [problem.code for problem in problems] == ["mask-of-time"]
    assert "`first` and `last`" in problems[0].hint


def test_obeying_the_hint_orders_a_masked_table_by_kafkas_time(tmp_path: Path) -> None:
    pipeline, problems = planned(tmp_path, LOSE["mask"][0], "write: upsert, keys: [k], order_by: _kafka_timestamp")
    assert not problems
    assert pipeline is not None
    assert [column.name for column in pipeline.table.columns if column.name == "_event_time"] == []


def test_each_step_of_sluice_stands_in_the_matrix() -> None:
    text = " ".join(steps for steps, _ in [*KEEP.values(), *LOSE.values(), *COMPARERS.values()])
    # A total has no time of its own, and each item of `explode` would be a repeat of the first.
    missing = {name for name, step in extensions.find(extensions.STEPS).items() if step.built_in and f"{{{name}:" not in text}
    assert missing == {"aggregate", "explode"}
