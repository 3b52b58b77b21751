"""Column lineage: from a table's columns back to the topic's, through every step."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.plan.lineage import lineage
from framework.plan.passes import make

SPECS = """
cluster: main
bootstrap: a:1
---
catalog: lake
type: sql
uri: sqlite:///.sluice/lake.db
warehouse: .sluice/warehouse
---
topic: trades
value: json
key: {format: string, as: user}
columns: {a: int, b: string, c: "struct<a: int, d: string>", list: "array<struct<x: int>>", at: timestamp, gone: int}
event_time: at
---
pipeline: trades
from: {topic: trades}
steps:
  - rename: {a: b, b: a}
  - derive: {both: "concat(a, 'b `user`')", of_field: c.a, when_: "coalesce(_event_time, _kafka_timestamp)", number: "1"}
  - flatten: [c]
  - explode: {column: list, into: item}
  - cast: {b: string}
  - sql: select user, both, of_field, when_, number, c_a, c_d, item.x as x, upper(b) as b, array(a) as ys from input where gone > 0
into: {table: m.trades}
"""


def plan(folder: Path, more: str = "") -> dict[str, dict[str, list[str]]]:
    (folder / "specs").mkdir()
    (folder / "specs" / "a.yaml").write_text(SPECS + more, encoding="utf-8")
    return {
        each.name: {name: sorted(sources) for name, sources in lineage(each).items()} for each in make(folder / "specs").pipelines
    }


def test_lineage_goes_through_every_step(tmp_path: Path) -> None:
    assert plan(tmp_path)["trades"] == {
        "user": ["user"],
        "both": ["b"],
        "of_field": ["c"],
        "when_": ["_kafka_timestamp", "at"],
        "number": [],
        "c_a": ["c"],
        "c_d": ["c"],
        "x": ["list"],
        "b": ["a"],
        "ys": ["b"],
        "_kafka_partition": ["_kafka_partition"],
        "_kafka_offset": ["_kafka_offset"],
        "_kafka_timestamp": ["_kafka_timestamp"],
    }


@pytest.mark.parametrize(
    ("part", "reads"),
    [
        ("steps: [derive: {b: \"'_event_time'\"}]", False),
        ("steps: [filter: _event_time > _kafka_timestamp]", True),
        ("expect: [{when: _event_time > _kafka_timestamp, else: warn}]", True),
        ("expect: [{when: a > 0, else: warn}]", False),
        ("steps: [rename: {user: u}]", False),
    ],
)
def test_the_event_time_is_carried_along_where_it_is_read(tmp_path: Path, part: str, reads: bool) -> None:
    (tmp_path / "a.yaml").write_text(f"{SPECS.partition('steps:')[0]}{part}\ninto: {{table: m.trades, partition_by: [b]}}\n")
    (pipeline,) = make(tmp_path).pipelines
    assert pipeline.reads_event_time is reads


def test_lineage_of_a_table_source_names_its_columns(tmp_path: Path) -> None:
    more = """---
pipeline: sums
from: {table: m.trades}
steps:
  - select: [user, both]
  - derive: {user: "concat(user, x_)", both: upper(both)}
into: {table: m.sums, write: replace, kafka_columns: false}
"""
    assert plan(tmp_path, more.replace(", x_)", ", both)"))["sums"] == {"user": ["both", "user"], "both": ["both"]}
