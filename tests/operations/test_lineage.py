"""Column lineage: from a table's columns back to the topic's, through every step."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from framework.host.plans import make
from framework.operations.lineage import flow as flows
from framework.operations.lineage.page import html
from framework.operations.lineage.text import document, lines
from framework.plan.lineage import lineage

CHROMIUM = shutil.which("chromium")
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

NAMES = """---
pipeline: names
from: {topic: trades}
steps: [select: [user]]
into: {table: m.names, kafka_columns: false}
"""


def plan(folder: Path, documents: str = "") -> dict[str, dict[str, list[str]]]:
    (folder / "specs").mkdir()
    (folder / "specs" / "a.yaml").write_text(SPECS + documents, encoding="utf-8")
    return {
        pipeline.name: {name: sorted(sources) for name, sources in lineage(pipeline).items()}
        for pipeline in make(folder / "specs").pipelines
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
    documents = """---
pipeline: sums
from: {table: m.trades}
steps:
  - select: [user, both]
  - derive: {user: "concat(user, x_)", both: upper(both)}
into: {table: m.sums, write: replace, kafka_columns: false}
"""
    assert plan(tmp_path, documents.replace(", x_)", ", both)"))["sums"] == {"user": ["both", "user"], "both": ["both"]}


def test_lineage_goes_through_a_topic_that_a_table_is_sent_to(tmp_path: Path) -> None:
    documents = """---
topic: sent
value: json
columns: {user: string, total: double}
---
pipeline: totals
from: {topic: trades}
steps: [aggregate: {by: [user], measures: {total: sum(a), trades: count(*)}}]
into: {table: m.totals, write: accumulate}
also: [{topic: sent}]
---
pipeline: onward
from: {topic: sent}
into: {table: m.onward, kafka_columns: false}
"""
    plan(tmp_path, documents)
    flow = flows.build_flow(make(tmp_path / "specs"))

    assert flow.origins(("topic sent", "total")) == [("table m.totals", "total")]
    assert flow.origins(("table m.onward", "total")) == [("topic sent", "total")]
    assert flow.origins(("topic sent", "trades")) == []  # a column that the topic does not declare


def test_lineage_of_a_whole_select_names_tables_and_columns(tmp_path: Path) -> None:
    documents = (
        NAMES
        + """---
pipeline: sums
from: {tables: [m.trades, m.names]}
steps:
  - sql: |
      with both as (select t.user, x + number as n, row_number() over (partition by t.user order by when_) as nth from m.trades t)
      select user, sum(n) as total, max(nth) as most from both left semi join m.names using (user) group by user
into: {table: m.sums, write: replace}
---
pipeline: behind
from: {table: m.sums}
steps: [derive: {half: total / 2}]
into: {table: m.behind, write: replace, kafka_columns: false}
"""
    )
    lineages = plan(tmp_path, documents.replace("x + number", "x + length(number)"))

    assert lineages["sums"] == {
        "user": ["m.trades.user"], "total": ["m.trades.number", "m.trades.x"], "most": ["m.trades.user", "m.trades.when_"],
    }  # fmt: skip
    assert lineages["behind"]["half"] == ["total"]
    flow = flows.build_flow(make(tmp_path / "specs"))
    assert flow.origins(("table m.behind", "half")) == [("table m.sums", "total")]
    assert ("table m.names", "table m.sums") in flow.parts_of  # the names decide which rows there are
    text = "\n".join(lines(flow, next(pipeline for pipeline in make(tmp_path / "specs").pipelines if pipeline.name == "sums")))
    assert "  total  table m.trades: number, x" in text


def test_lineage_of_rows_that_are_left_out_is_none(tmp_path: Path) -> None:
    documents = (
        NAMES
        + """---
pipeline: others
from: {tables: [m.trades, m.names]}
steps: [{sql: "select user from m.trades except select user from m.names"}]
into: {table: m.others, write: replace}
"""
    )
    assert plan(tmp_path, documents)["others"] == {"user": ["m.trades.user"]}
    (other_pipeline,) = [pipeline for pipeline in make(tmp_path / "specs").pipelines if pipeline.name == "others"]
    columns = {"user": [{"table": "m.trades", "column": "user"}]}
    written = document(flows.build_flow(make(tmp_path / "specs")), other_pipeline)
    assert written == {"name": "others", "table": "m.others", "columns": columns}


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SPECS.replace("pipeline: trades", "pipeline: trades\ndoc: '</script><script>alert(1)'"))
    text = html(flows.build_flow(make(tmp_path)), "local")

    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "</script><script>alert" not in text
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    assert {part["key"] for part in json.loads(data)["parts"]} == {"topic trades", "table m.trades"}


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine: apt-get install chromium")
def test_a_column_that_is_clicked_shows_where_it_comes_from_and_goes(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    page_file = tmp_path / "lineage.html"
    page_file.write_text(html(flows.build_flow(make(Path(__file__).resolve().parents[2] / "specs")), "local"), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(page_file.as_uri())
        page.locator("article", has_text="web.click_sessions").get_by_role("button", name="first_page").click()
        origins = page.locator("button.from").all_inner_texts()
        page.get_by_role("searchbox").fill("stock_bars")
        articles = page.locator("article:visible h2").all_inner_texts()
        browser.close()
    assert errors == []
    assert sorted(text.split("\n")[0] for text in origins) == ["at", "at", "page", "page"]
    assert articles == ["totals.stock_bars"]
