"""`sluice status`, `history` and `bad-rows` with a real Kafka and tables that Spark wrote."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from framework.base.errors import BadRowsStop, RolledBack
from framework.core.context.context import Context
from framework.core.rules import attempts, journal
from framework.core.run.run import batches
from framework.core.schemas.write_schemas import current_schemas, register_new
from framework.host.plans import make
from framework.operations.send import generate
from framework.operations.undo import accept
from framework.plan import in_order
from tests.support.commands import sluice
from tests.support.project import BASE, Project
from tests.support.time_limits import bar

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes COLUMNS, so that output is as wide as without a terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)


def status(project: Project) -> dict[str, Any]:
    (table,) = json.loads(sluice(project, "status", "--json").output)["tables"]
    assert isinstance(table, dict)
    return table


def state_of(project: Project) -> tuple[str, int | None, list[str]]:
    table = status(project)
    return table["state"], table["lag"]["records"], [reason["code"] for reason in table["reasons"]]


def accepted(project: Project) -> None:
    context = project.context()
    refusal = accept.refusal(context, context.plan.pipelines[0])
    assert refusal is not None
    accept.accept(context, context.plan.pipelines[0], refusal)


def test_from_pending_to_suspended_and_failing(project: Project) -> None:
    project.more = "fresh_within: 15m"
    project.make_topic()
    assert state_of(project) == ("pending", 0, [])
    assert "nothing has landed yet, and there are no messages to read" in sluice(project, "status").output
    project.send_good(60, bad_every=6)
    assert state_of(project) == ("pending", 60, [])

    (batch,) = project.run()
    table = status(project)
    assert (table["state"], table["rows"], table["bad_rows"], table["bad_rows_waiting"], table["batch"]) == (
        "caught up",
        50,
        10,
        0,
        1,
    )
    assert (table["snapshot_id"], table["freshness"]) == (str(batch.snapshot), {"within_seconds": 900, "fresh": True})
    assert Path(table["metadata_file"].removeprefix("file:")).is_file()
    assert table["metadata_file"].removeprefix("file:").startswith(table["location"].removeprefix("file://"))
    times = [row["_kafka_timestamp"] for row in project.rows()]
    assert datetime.fromisoformat(table["lag"]["newest_event"]) == max(times)
    assert 0 <= table["lag"]["newest_event_seconds"] < 120
    assert abs((datetime.now(timezone.utc) - datetime.fromisoformat(table["last_commit"])).total_seconds()) < 60

    project.send_good(9, partition=1)
    assert state_of(project) == ("syncing", 9, [])
    assert [(offsets["partition"], offsets["end"] - offsets["position"], offsets["lag"]) for offsets in status(project)["offsets"]] == [
        (0, 0, 0), (1, 9, 9), (2, 0, 0),
    ]  # fmt: skip
    lines = sluice(project, "status", f"{project.namespace}.trades", "--partitions").output.splitlines()
    assert [line.split() for line in lines[-3:]] == [
        [project.topic, str(number), str(20), str(end), str(end - 20)] for number, end in ((0, 20), (1, 29), (2, 20))
    ]
    sluice(project, "pause", "trades")
    assert (state_of(project), sluice(project, "status").exit_code) == (("paused", 9, []), 0)
    sluice(project, "resume", "trades")
    project.run()
    assert state_of(project) == ("caught up", 0, [])

    project.sql(f"CALL lake.system.rollback_to_snapshot('{{bare}}', {batch.snapshot})")
    with pytest.raises(RolledBack):
        project.run()
    assert state_of(project) == ("suspended", None, ["rolled-back"])
    result = sluice(project, "status")
    assert result.exit_code == 1
    text = re.sub(r" --specs \s*[^`]+", "", result.output.replace("\n", " "))
    assert " do: decide: `sluice accept trades` asks before it acts, then `sluice run trades` continues" in text
    accepted(project)
    assert state_of(project) == ("syncing", 9, [])
    project.run()

    project.delete_topic()
    assert state_of(project) == ("failing", None, ["no-topic"])
    assert sluice(project, "status").exit_code == 1


def test_suspended_by_bad_rows_until_they_are_accepted(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.more = "bad_rows: stop"
    project.make_topic()
    project.send_good(5)
    moment = datetime.now(timezone.utc)
    with monkeypatch.context() as earlier:  # notes have no fractions of a second, and take no clock
        earlier.setattr(attempts, "time", SimpleNamespace(time=lambda: moment.timestamp() - 6))
        project.run()
    project.send([b"not json"])
    with monkeypatch.context() as earlier, pytest.raises(BadRowsStop):  # and times differ by whole seconds
        earlier.setattr(journal, "_now", lambda: (moment - timedelta(seconds=3)).isoformat(timespec="seconds"))
        project.run()
    assert state_of(project) == ("suspended", 1, ["bad-rows"])
    assert re.search(r"the last run, \d+ (?:s|min) ago: bad-rows: 1 bad message,", sluice(project, "status").output)
    accepted(project)
    assert state_of(project) == ("syncing", 1, [])
    project.run()
    assert state_of(project) == ("caught up", 0, [])


class Killed(BaseException):
    """Stands for a death at a kill point."""


def test_history_and_bad_rows(project: Project) -> None:
    def die(point: str) -> None:
        if point == "published":
            raise Killed

    project.make_topic()
    project.send_good(30, bad_every=3)
    project.run()
    project.sql("INSERT INTO {table} SELECT * FROM {table} LIMIT 1")
    project.template = project.template.replace("price > 900", "price > 800")
    project.send([b"\xff\xfe", b'{"id": "one"}', None])
    with pytest.raises(Killed):
        project.run(at=die)

    commits = json.loads(sluice(project, "history", "trades", "--json").output)["commits"]
    assert [(commit["batch"], commit["rows_added"], commit["bad_rows"], commit["spec_changed"]) for commit in commits] == [
        (2, 0, 3, True), (None, 1, None, False), (1, 20, 10, False), (0, 0, None, False),
    ]  # fmt: skip
    assert [sum(offsets["to"] - offsets["from"] for offsets in commit["offsets"]) for commit in commits] == [3, 0, 30, 0]
    output = sluice(project, "history", "trades").output
    assert "not Sluice's: spark" in output
    assert "30 – 33" in output

    waiting = sluice(project, "bad-rows", "trades").output
    assert waiting.startswith("3 bad rows of the last batch wait: the next run writes them here\n")
    assert "bad_rows: 10 rows" in waiting
    assert "3 bad rows of the last batch wait" in sluice(project, "status").output
    assert (status(project)["bad_rows"], status(project)["bad_rows_waiting"]) == (13, 3)

    project.run()
    answer = json.loads(sluice(project, "bad-rows", "trades", "--json", "--limit", "4").output)
    assert (answer["rows"], answer["waiting"]) == (13, 0)
    assert answer["kinds"][0] == {"code": "undecodable", "message": "the value is not JSON", "rows": 11}
    assert sorted(kind["rows"] for kind in answer["kinds"]) == [1, 1, 11]
    values = {
        (sample["offset"], sample["partition"]): sample.get("value", sample.get("value_base64")) for sample in answer["samples"]
    }
    assert values[10, 0] == "//4="
    assert values[10, 2] is None
    assert values[10, 1] == '{"id": "one"}'
    null_values = json.loads(sluice(project, "bad-rows", "trades", "--json", "--code", "null_value").output)
    assert [(sample["code"], sample["key"], sample["value"]) for sample in null_values["samples"]] == [("null_value", "k2", None)]
    assert [commit["bad_rows"] for commit in json.loads(sluice(project, "history", "trades", "--json").output)["commits"]] == [
        3, None, 10, None,
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.timed
def test_the_shipped_tables_within_a_second(
    project: Project, registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new process shows the status with Kafka running and rows in each table."""
    (tmp_path / "pipelines").symlink_to(ROOT / "pipelines")  # a step of the project's own
    for file in (ROOT / "specs").rglob("*.yaml"):
        text = re.sub(r"table: (markets|sensors)\.", f"table: {project.namespace}.", file.read_text())
        copy = tmp_path / "specs" / file.relative_to(ROOT / "specs")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
    settings = (ROOT / "specs" / "main.yaml").read_text()
    documents = [settings[settings.index(first_line) :].partition("---")[0] for first_line in ("variables: main", "mail: main")]
    base = BASE.format(bootstrap=project.bootstrap).replace("\n---", f"\nregistry: {registry}\n---", 1)
    monkeypatch.setenv("SLUICE_SECRET_PII", "0123456789abcdef")
    (tmp_path / "specs" / "main.yaml").write_text("---\n".join((base, *documents)))
    plan = make(tmp_path / "specs")
    start = datetime.now(timezone.utc)
    for topic in plan.topics:
        generate.ensure_topic(topic, plan.secrets)
        schemas = register_new(topic, plan.secrets, current_schemas(topic, plan.secrets))
        messages = generate.messages(topic, 1, start, {schema.of: schema.writer for schema in schemas})
        generate.send(topic, plan.secrets, itertools.islice(messages, 1000))
    context = Context(plan, spark=lambda: project.spark)
    for pipeline in in_order(plan.pipelines):
        assert list(batches(context, pipeline))

    command = [sys.executable, "-c", "from framework.host.cli import main; main()", "status", "--specs", str(tmp_path / "specs")]
    took = []
    for _ in range(5):
        began = time.monotonic()
        result = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        took.append(time.monotonic() - began)
    assert result.stdout.count("caught up") == len(plan.pipelines)
    assert min(took) < bar(1)
