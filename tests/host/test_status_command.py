"""`sluice status`, `history` and `bad-rows` from given metadata: states, commits, columns. Nothing runs here."""

from __future__ import annotations

import gzip
import json
import os
import pty
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from framework.base.errors import (
    BadRowsStop,
    ColumnsChanged,
    KafkaAway,
    RolledBack,
    SluiceError,
    SourceMissing,
    Transient,
    Unexpected,
    UnreachableError,
)
from framework.core.iceberg import metadata, table_state
from framework.core.rules import journal, protocol, refusals
from framework.core.rules.journal import FailedRun, RunRecord
from framework.core.rules.protocol import BORN, Position
from framework.host.cli import _grid, _status, history as history_command
from framework.operations.observe import status as status_module
from framework.operations.observe.commits import History, history
from framework.operations.observe.progress import Offsets, PipelineProgress, newest_event
from framework.operations.observe.status import Status, status_from, statuses
from framework.plan import Pipeline
from framework.systems.catalogs._local_files import local_files
from tests.support.project import plan_for
from tests.support.shop import COPY, NOWHERE, catalog, made_by_hand, planned, sluice, specs
from tests.support.time_limits import bar

MOMENT = datetime(2026, 1, 5, 10, 0, tzinfo=timezone.utc)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes COLUMNS, so that output is as wide as without a terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    return tmp_path


def position_at(batch: int = 1, attempt: str = "019b8d4b1a00f", **ends: int) -> Position:
    """Returns a position; its attempt began on 2026-01-05 at about 08:00."""
    return Position(
        attempt=attempt,
        batch=batch,
        cluster="c",
        topics={"trades": "t"},
        ends=ends or {"trades/0": 10},
        snapshot=7,
        sequence=2,
        spec="spec one",
    )


CAUGHT_UP = PipelineProgress(
    pipeline="trades",
    table="shop.trades",
    rows=10,
    lag=0,
    position=position_at(),
    committed=MOMENT - timedelta(hours=1),
    snapshot=7,
)
AWAY = KafkaAway("kafka-unreachable", "Kafka at x does not answer", "is it running?")
BACK = RolledBack("rolled-back", "the table was rolled back", "`sluice accept trades`: 5 messages are read again", "5 messages")
MISSING = SourceMissing("source-missing", "it does not exist", "run it first")
BAD_ROWS = BadRowsStop("bad-rows", "1 bad message", "`sluice accept trades`: they are quarantined", "1 bad message")
BUSY = Transient("table-busy", "another commit came first", "run again")


def failed(error: SluiceError, hours: float = 0.5) -> RunRecord:
    return RunRecord(failed=FailedRun.from_error(error, (MOMENT - timedelta(hours=hours)).isoformat()))


# States


@pytest.mark.parametrize(
    ("progress", "record", "state", "codes"),
    [
        (replace(CAUGHT_UP, position=None, lag=0), RunRecord(), "pending", []),
        (replace(CAUGHT_UP, position=position_at(0, BORN), lag=60), RunRecord(), "pending", []),
        (replace(CAUGHT_UP, lag=1), RunRecord(), "syncing", []),
        (CAUGHT_UP, RunRecord(), "caught up", []),
        (replace(CAUGHT_UP, lag=1), RunRecord(paused=MOMENT.isoformat()), "paused", []),
        (replace(CAUGHT_UP, lag=None, trouble=AWAY), RunRecord(paused=MOMENT.isoformat()), "paused", ["kafka-unreachable"]),
        (replace(CAUGHT_UP, lag=None, trouble=BACK), RunRecord(), "suspended", ["rolled-back"]),
        (replace(CAUGHT_UP, lag=None, trouble=BACK), failed(BACK), "suspended", ["rolled-back"]),
        (replace(CAUGHT_UP, lag=None, trouble=AWAY), RunRecord(), "failing", ["kafka-unreachable"]),
        (replace(CAUGHT_UP, lag=None, trouble=AWAY), failed(BAD_ROWS), "suspended", ["kafka-unreachable", "bad-rows"]),
        (replace(CAUGHT_UP, lag=5), failed(BAD_ROWS), "suspended", ["bad-rows"]),
        (replace(CAUGHT_UP, lag=5), failed(BUSY), "failing", ["table-busy"]),
        # Accepted since: the position was moved after the run that was refused.
        (replace(CAUGHT_UP, lag=5), failed(BAD_ROWS, hours=3), "syncing", []),
        # Corrected since then: otherwise the table itself would show it.
        (replace(CAUGHT_UP, lag=5), failed(BACK), "syncing", []),
        (replace(CAUGHT_UP, lag=5), failed(AWAY), "failing", ["kafka-unreachable"]),
        # A source table that does not exist yet is no failure.
        (replace(CAUGHT_UP, position=None, lag=None, trouble=MISSING), RunRecord(), "pending", []),
        (replace(CAUGHT_UP, lag=None, trouble=MISSING), RunRecord(), "failing", ["source-missing"]),
    ],
)  # fmt: skip
def test_a_state_follows_from_progress_and_record(
    folder: Path, progress: PipelineProgress, record: RunRecord, state: str, codes: list[str]
) -> None:
    status = status_from(planned(folder, "n: bigint"), progress, record, None, MOMENT)
    assert (status.state, [reason.code for reason in status.reasons]) == (state, codes)
    assert status.bad == (state in ("suspended", "failing"))


@pytest.mark.parametrize(
    ("error", "do"),
    [
        (BAD_ROWS, "decide: `sluice accept trades` asks before it acts"),
        (
            ColumnsChanged("schema-change", "b is gone", "correct the spec; or `sluice accept trades`", ("b is kept",)),
            "decide: `sluice accept trades` asks before it acts",
        ),
        (ColumnsChanged("schema-change", "b is gone", "correct the spec"), "do what the hint says, then `sluice run trades`"),
        (Unexpected("wild", "not-as-expected", "1 row", "correct it"), "do what the hint says, then `sluice run trades`"),
        (AWAY, "it answers now: `sluice run trades` continues"),
        (BUSY, "`sluice run trades` retries it"),
    ],
)
def test_each_reason_has_its_next_step(folder: Path, error: SluiceError, do: str) -> None:
    (reason,) = status_from(planned(folder, "n: bigint"), CAUGHT_UP, failed(error), None, MOMENT).reasons
    assert reason.do.startswith(do)
    assert reason.time == MOMENT - timedelta(hours=0.5)


@pytest.mark.parametrize(
    ("progress", "fresh"),
    [
        (CAUGHT_UP, True),  # caught up: nothing newer can be in it
        (replace(CAUGHT_UP, lag=5), False),
        (replace(CAUGHT_UP, lag=5, committed=MOMENT - timedelta(minutes=2)), True),
        (replace(CAUGHT_UP, lag=None, trouble=AWAY), False),
        (replace(CAUGHT_UP, lag=5, position=None), None),
    ],
)
def test_a_table_is_fresh_when_caught_up_or_recently_committed(
    folder: Path, progress: PipelineProgress, fresh: bool | None
) -> None:
    pipeline = planned(folder, "n: bigint", "fresh_within: 15m")
    assert status_from(pipeline, progress, RunRecord(), None, MOMENT).fresh is fresh
    assert status_from(replace(pipeline, fresh_within=None), progress, RunRecord(), None, MOMENT).fresh is None


def test_the_event_time_is_the_topics_or_kafkas(folder: Path) -> None:
    assert planned(folder, "n: bigint").event_time is None
    assert planned(folder, "n: bigint; moment: timestamp", topic="event_time: moment").event_time == "moment"
    pipeline = plan_for(folder, "x:1", specs("n: bigint").replace("kafka_columns: false", "partition_by: []")).pipelines[0]
    assert pipeline.event_time == "_kafka_timestamp"


# On the terminal


def test_a_table_from_a_table_is_as_fresh_as_the_topics_behind_it(folder: Path) -> None:
    plan = plan_for(
        folder, NOWHERE, specs("moment: timestamp", topic="event_time: moment") + COPY.rstrip() + "\nfresh_within: 15m\n"
    )
    copy = next(pipeline for pipeline in plan.pipelines if pipeline.name == "copy")
    assert (copy.name, copy.event_time) == ("copy", "moment")
    fresh = [status_from(copy, CAUGHT_UP, RunRecord(), MOMENT, MOMENT, waits).fresh for waits in (False, True)]
    assert fresh == [True, False]
    watched, source = replace(CAUGHT_UP, pipeline="copy"), replace(CAUGHT_UP, lag=3)
    read = {"copy": watched, "trades": source}
    assert status_module._status(plan, copy, read, MOMENT).fresh is False
    assert status_module._status(plan, copy, {**read, "trades": CAUGHT_UP}, MOMENT).fresh is True


def printed(status: Sequence[Status], width: int, partitions: bool = False) -> list[str]:
    console = Console(width=width, highlight=False, markup=False, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(_status.block(status, partitions, width))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_columns_of_numbers_are_aligned_and_all_are_shown_where_there_is_room(folder: Path) -> None:
    pipeline = planned(folder, "n: bigint", "fresh_within: 15m")
    large = replace(CAUGHT_UP, rows=12_345_678, bad_rows=7, files=12, lag=1234)
    table_statuses = [
        status_from(pipeline, progress, RunRecord(), MOMENT - timedelta(seconds=90), MOMENT) for progress in (CAUGHT_UP, large)
    ]
    assert printed(table_statuses, 120)[:3] == [
        "table        state      waiting  newest event  last commit        rows  bad rows  files  fresh",
        "shop.trades  caught up        0  90 s ago      60 min ago           10         0      0  yes",
        "shop.trades  syncing      1,234  90 s ago      60 min ago   12,345,678         7     12  LATE",
    ]
    assert "  late: the last commit is 60 min old, `fresh_within` is 15m, and messages wait" in printed(table_statuses, 120)
    assert printed(table_statuses, 80)[2] == "shop.trades  syncing      1,234  90 s ago      12,345,678         7  LATE"


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_nothing_is_wider_than_the_terminal(folder: Path, width: int) -> None:
    pipeline = planned(folder, "n: bigint")
    progress = replace(
        CAUGHT_UP, table=f"shop.{'very_' * 9}long", lag=None, trouble=AWAY, offsets=(Offsets("trades/0", 5, 10**12),)
    )
    lines = printed([status_from(pipeline, progress, RunRecord(), MOMENT, MOMENT)], width, partitions=True)
    assert max(map(len, lines)) <= width
    assert lines[0].split()[:2] == ["table", "state"]
    assert "failing" in lines[1]


def test_an_outage_of_several_tables_is_shown_once(folder: Path) -> None:
    first_pipeline = planned(folder, "n: bigint")
    pipelines = [first_pipeline, replace(first_pipeline, name="orders")]
    table_statuses = [
        status_from(pipeline, replace(CAUGHT_UP, lag=None, trouble=AWAY), RunRecord(), None, MOMENT) for pipeline in pipelines
    ]
    assert printed(table_statuses, 120)[5:] == [
        "",
        "kafka-unreachable: Kafka at x does not answer",
        "  hint: is it running?",
        "  do: once it answers, the next run continues; no message is lost",
        "  pipelines: trades, orders",
    ]
    assert printed(table_statuses[:1], 120)[4:] == [
        "",
        "trades",
        "  kafka-unreachable: Kafka at x does not answer",
        "    hint: is it running?",
        "    do: once it answers, `sluice run trades` continues; no message is lost",
    ]


def test_partitions_and_waiting_bad_rows_are_shown(folder: Path) -> None:
    offsets = (Offsets("trades/0", 5, 1005), Offsets("trades/11", 3, 3))
    progress = replace(CAUGHT_UP, lag=1000, bad_waiting=1, offsets=offsets)
    lines = printed([status_from(planned(folder, "n: bigint"), progress, RunRecord(), None, MOMENT)], 120, partitions=True)
    assert lines[4:] == [
        "",
        "trades",
        "  1 bad row of the last batch waits: the next run writes it to the bad rows' table",
        "",
        "shop.trades",
        "topic   partition  position    end  waiting",
        "trades          0         5  1,005    1,000",
        "trades         11         3      3        0",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0, "0 s ago"), (119.4, "119 s ago"), (120, "2 min ago"), (7200, "2 h ago"), (9e5, "10 d ago")],
)
def test_ages_have_their_units(seconds: float | None, text: str) -> None:
    assert _grid.ago(seconds) == text


def test_columns_that_do_not_fit_are_dropped_by_rank() -> None:
    columns = [
        _grid.GridColumn("name", folds=True),
        _grid.GridColumn("less", 2),
        _grid.GridColumn("least", 3),
        _grid.GridColumn("number", right=True),
    ]
    rows = [(Text("abcdefghijklmnopqrstuvwxyz"), "x", "y", "1")]
    heads = {width: [column.header for column in _grid.grid(columns, rows, width).columns] for width in (80, 45, 39, 20)}
    assert heads == {80: ["name", "less", "least", "number"], 45: ["name", "less", "number"], 39: ["name", "number"],
                     20: ["name", "number"]}  # fmt: skip
    assert _grid.one_line("a\nb\x1b[31m" + "c" * 50, 10) == "a�b�[31mc…"


# Commands, without Kafka


def test_status_without_kafka_and_tables_is_failing(folder: Path) -> None:
    planned(folder, "n: bigint")
    result = sluice("status")
    assert result.exit_code == 1
    assert "failing" in result.output
    assert "kafka-unreachable: Kafka at 127.0.0.1:1 does not answer\n    hint: is it running?" in result.output
    (table,) = json.loads(sluice("status", "shop.trades", "--json").output)["tables"]
    assert (table["state"], table["rows"], table["metadata_file"], table["snapshot_id"], table["lag"]["records"], table["offsets"]) == (
        "failing", 0, None, None, None, [],
    )  # fmt: skip
    assert table["reasons"] == [
        {"code": "kafka-unreachable", "message": "Kafka at 127.0.0.1:1 does not answer",
         "hint": "is it running? `sluice services up kafka` starts one on this machine",
         "do": "once it answers, `sluice run trades` continues; no message is lost", "suspended": False, "at": None}
    ]  # fmt: skip
    assert sluice("history", "trades").output == "shop.trades: no table yet, so no commits: `sluice run trades` creates it\n"
    assert json.loads(sluice("history", "trades", "--json").output)["commits"] == []
    assert sluice("bad-rows", "trades").output == "shop.trades__bad_rows: no bad rows\n"


@pytest.mark.slow
def test_a_computed_table_is_pending_until_its_source_exists(folder: Path) -> None:
    plan = plan_for(folder, "127.0.0.1:1", specs("n: bigint") + COPY)
    trades, copy = plan.pipeline("trades"), plan.pipeline("copy")
    assert trades is not None
    assert copy is not None
    assert sluice("status", "copy").exit_code == 0
    assert "shop.copy  pending" in sluice("status", "copy").output
    assert (
        "nothing has landed yet: the table shop.trades, which copy reads, does not exist yet" in sluice("status", "copy").output
    )
    made_by_hand(refusals.owner(trades))
    assert "  nothing has landed yet, 1 row to read: `sluice run copy`\n" in sluice("status", "copy").output
    made_by_hand(refusals.owner(copy), "copy", copy.spec, source="shop.trades")
    (found,) = statuses(plan, [copy])
    assert found.reasons == ()
    assert (found.state, found.progress.lag, found.progress.rows, found.newest_event) == ("caught up", 0, 1, None)
    assert "is computed from the table shop.trades" in sluice("status", "copy", "--partitions").output


def test_a_broken_catalog_is_a_reason(folder: Path) -> None:
    planned(folder, "n: bigint")
    Path("lake.db").write_text("this is no database " * 100)
    result = sluice("status")
    assert result.exit_code == 1
    assert "catalog-unreachable: the catalog `lake` cannot be read: " in result.output
    assert json.loads(sluice("status", "--json").output)["tables"][0]["rows"] is None
    for command in ("history", "bad-rows"):
        result = sluice(command, "trades")
        assert (result.exit_code, result.output.startswith("catalog-unreachable: ")) == (1, True)


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("trade", "unknown-pipeline: there is no pipeline `trade`\n  hint: did you mean `trades`?\n"),
        ("shop.trade", "unknown-pipeline: there is no pipeline with a table `shop.trade`\n  hint: did you mean `shop.trades`?\n"),
        ("zzz", "unknown-pipeline: there is no pipeline `zzz`\n  hint: the pipeline is `trades`\n"),
    ],
)
def test_a_wrong_name_is_an_error_with_a_hint(folder: Path, name: str, output: str) -> None:
    planned(folder, "n: bigint")
    for command in ("status", "history", "bad-rows", "pause"):
        assert sluice(command, name).output == output
    assert sluice("pause", "shop.trades").output.startswith("trades: paused since ")


def test_watch_and_json_are_refused_together(folder: Path) -> None:
    planned(folder, "n: bigint")
    assert sluice("status", "--watch", "--json").exit_code == 2


@pytest.mark.parametrize("terminal", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.slow
def test_watch_goes_on_until_it_is_interrupted(folder: Path, terminal: bool) -> None:
    planned(folder, "n: bigint")
    (where,) = Path("specs").iterdir()
    command = [sys.executable, "-c", "from framework.host.cli import main; main()", "status", "--watch", "--specs", str(where)]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=theirs if terminal else subprocess.PIPE, env=environment) as child:
        os.close(theirs)
        descriptor = ours if terminal else child.stdout.fileno() if child.stdout else -1
        output, deadline = b"", time.monotonic() + 60
        while output.count(b"every 2 s") < 2 and time.monotonic() < deadline:
            if select.select([descriptor], [], [], 1)[0]:
                output += os.read(descriptor, 65536)
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 1  # Kafka is away
    assert output.count(b"every 2 s") >= 2
    assert b"Traceback" not in output
    assert (b"\x1b[" in output) == terminal
    os.close(ours)


@pytest.mark.slow
@pytest.mark.timed
def test_a_silent_kafka_is_reported_within_two_seconds(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        plan = plan_for(folder, f"127.0.0.1:{server.getsockname()[1]}", specs("n: bigint"))
        began = time.monotonic()
        (status,) = statuses(plan, plan.pipelines)
        assert time.monotonic() - began < 1.5 + bar(0.5)
    assert [reason.code for reason in status.reasons] == ["kafka-unreachable"]


@pytest.mark.slow
def test_status_loads_nothing_that_is_slow_to_load(folder: Path) -> None:
    planned(folder, "n: bigint")
    made_by_hand(refusals.owner(planned(folder, "n: bigint")))
    (where, *_) = Path("specs").iterdir()
    work = f"main(['status', '--specs', {str(where)!r}], standalone_mode=False)"
    heavy = ("pyspark", "py4j", "dagster", "pyiceberg", "pyarrow", "sqlalchemy")
    loaded = f"print(*sorted(set({heavy!r}) & set(sys.modules)), sep=',')"
    text = f"import sys; from framework.host.cli import main\ntry: {work}\nexcept SystemExit: pass\n{loaded}"
    result = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert result.stdout.splitlines()[-1] == ""
    assert "shop.trades" in result.stdout


# Metadata, read as JSON


def write_metadata(document: dict[str, Any], name: str = "trades", zipped: bool = False) -> None:
    """Writes a table's metadata alone, as any writer may leave it, and lists it in the catalog."""
    data = json.dumps(document).encode()
    file = Path(f"{name}.{'gz.' if zipped else ''}metadata.json").absolute()
    file.write_bytes(gzip.compress(data) if zipped else data)
    with sqlite3.connect("lake.db") as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)"
        )
        database.execute("DELETE FROM iceberg_tables WHERE table_name = ?", (name,))
        database.execute("INSERT INTO iceberg_tables VALUES ('lake', 'shop', ?, ?)", (name, f"file://{file}"))


def snapshot(
    number: int, position: Position | None = None, parent: int | None = None, extra: Mapping[str, str] | None = None
) -> dict[str, Any]:
    ours = {protocol.POSITION: position.text(), protocol.ATTEMPT: position.attempt} if position else {}
    parent_id = number - 1 if parent is None else parent
    return {
        "snapshot-id": number, "timestamp-ms": number * 1000, "sequence-number": number,
        "summary": {"operation": "append", "added-records": "10", **ours, **(extra or {})},
        **({"parent-snapshot-id": parent_id} if parent_id else {}),
    }  # fmt: skip


def metadata_of(
    snapshots: list[dict[str, Any]], log: Sequence[int] | None = None, properties: Mapping[str, str] | None = None
) -> dict[str, Any]:
    ids = [snapshot["snapshot-id"] for snapshot in snapshots] if log is None else log
    return {
        "format-version": 2, "table-uuid": "u", "location": "file:///x", "current-schema-id": 0,
        "schemas": [{"schema-id": 0, "type": "struct", "fields": []}], "properties": properties or {}, "snapshots": snapshots,
        "current-snapshot-id": ids[-1], "refs": {"main": {"snapshot-id": ids[-1], "type": "branch"}},
        "snapshot-log": [{"snapshot-id": id_, "timestamp-ms": id_ * 1000 + 5000} for id_ in ids],
    }  # fmt: skip


def history_lines(pipeline: Pipeline, *arguments: str) -> list[str]:
    return [" ".join(line.split()) for line in sluice("history", pipeline.name, *arguments).output.splitlines()]


def test_history_shows_commits_with_their_changes(folder: Path) -> None:
    pipeline = planned(folder, "n: bigint")
    zeroth_position = replace(position_at(0, BORN), ends={"trades/0": 5, "trades/1": 0}, spec="one")
    first_position = replace(position_at(1, "a1"), ends={"trades/0": 15, "trades/1": 2}, spec="one")
    second_position = replace(position_at(2, "a2"), ends={"trades/0": 20, "trades/1": 2}, spec="two")
    fourth_position = replace(position_at(4, "a4"), ends={"trades/0": 30, "trades/1": 9, "trades/2": 1}, spec="two")
    other_snapshot = snapshot(
        4, extra={"engine-name": "spark", "engine-version": "4.1", "deleted-records": "3", "operation": "overwrite"}
    )
    snapshots = [
        snapshot(1, zeroth_position),
        snapshot(2, first_position),
        snapshot(3, second_position),
        other_snapshot,
        snapshot(5, fourth_position),
    ]
    write_metadata(metadata_of(snapshots, properties={protocol.POSITION: replace(fourth_position, bad=3).text()}))
    bad = [
        snapshot(1),
        snapshot(2, extra={protocol.ATTEMPT: "a1", "added-records": "4"}),
        snapshot(3, extra={"source-snapshot-id": "9"}),
    ]
    picked = snapshot(9, parent=1, extra={protocol.ATTEMPT: "a2"})
    write_metadata(metadata_of([*bad, picked], log=[1, 2, 3]), "trades__bad_rows")
    assert history_lines(pipeline) == [
        "when batch operation rows bad rows offsets snapshot",
        "1970-01-01T00:00:10Z 4 append +10 3 ? – 40 5 position moved",
        "1970-01-01T00:00:09Z overwrite +10 −3 4 not Sluice's: spark 4.1",
        "1970-01-01T00:00:08Z 2 append +10 10 17 – 22 3 spec changed",
        "1970-01-01T00:00:07Z 1 append +10 4 5 – 17 2",
        "1970-01-01T00:00:06Z 0 append +10 1 table created",
        "the next batch will differ: the spec, or Sluice itself, has changed since the last one",
    ]
    assert history_lines(pipeline, "--limit", "1", "--partitions")[1:4] == [
        "1970-01-01T00:00:10Z 4 append +10 3 0: ? – 30 5 position moved",
        "1: ? – 9",
        "2: ? – 1",
    ]
    assert "4 older commits: --limit 5 shows them" in history_lines(pipeline, "--limit", "1")
    answer = json.loads(sluice("history", "shop.trades", "--json").output)
    assert answer["commits"][2]["offsets"] == [
        {"topic": "trades", "partition": 0, "from": 15, "to": 20}, {"topic": "trades", "partition": 1, "from": 2, "to": 2},
    ]  # fmt: skip
    assert [commit["batch"] for commit in answer["commits"]] == [4, None, 2, 1, 0]
    assert (answer["commits"][1]["by"], answer["commits"][1]["offsets"], answer["expired"]) == ("spark 4.1", [], False)


def test_history_says_what_expired_or_was_rolled_back(folder: Path) -> None:
    pipeline = planned(folder, "n: bigint")
    snapshots = [snapshot(3, position_at(3, "a3")), snapshot(4, replace(position_at(4, "a4"), ends={"trades/0": 25}))]
    write_metadata(metadata_of(snapshots, log=[3, 4, 3]))
    write_metadata(metadata_of([snapshot(2)]), "trades__bad_rows")
    result = history(pipeline)
    assert isinstance(result, History)
    assert (result.expired, result.rolled_back, len(result.commits)) == (True, 1, 2)
    assert (result.commits[0].operation, result.commits[0].ours) == ("rollback", False)
    assert (result.commits[1].offsets, result.commits[1].bad) == ((("trades/0", None, 10),), None)
    assert history_lines(pipeline)[3:] == ["older commits have expired", "1 not shown: main was rolled back past it"]
    assert history(replace(pipeline, bad_rows="drop")) is not None


@pytest.mark.parametrize("width", [30, 60, 80])
def test_history_fits_a_narrow_terminal(folder: Path, width: int) -> None:
    pipeline = planned(folder, "n: bigint")
    write_metadata(metadata_of([snapshot(1), snapshot(2, position_at())]))
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    for part in history_command.lines(pipeline, history(pipeline), 20, False, width):
        console.print(part)
    assert max(len(line.rstrip()) for line in console.export_text().splitlines()) <= width


def test_zipped_metadata_is_read_and_damaged_is_an_error(folder: Path) -> None:
    pipeline = planned(folder, "n: bigint")
    write_metadata(metadata_of([snapshot(1), snapshot(2, position_at())]), zipped=True)
    state = table_state.state(pipeline.table)
    assert state is not None
    assert (state.main, list(state.snapshots)) == (2, [2, 1])
    for wrong in (b"", b"{", b"[]", b"{}", b'{"table-uuid": "u", "schemas": []}'):
        Path("trades.gz.metadata.json").write_bytes(gzip.compress(wrong))
        with pytest.raises(UnreachableError, match="the catalog `lake` cannot be read: "):
            table_state.state(pipeline.table)
    Path("trades.gz.metadata.json").unlink()
    with pytest.raises(SluiceError, match="No such file"):
        table_state.state(pipeline.table)


def test_a_database_without_tables_has_none(folder: Path) -> None:
    pipeline = planned(folder, "n: bigint")
    sqlite3.connect("lake.db").close()
    assert table_state.state(pipeline.table) is None
    sqlite3.connect("lake.db").execute("CREATE TABLE other (x)").connection.close()
    assert table_state.state(pipeline.table) is None
    assert metadata.read(pipeline.table.catalog, "shop.trades") is None


# Lists of files, read as Avro


@pytest.fixture
def times(folder: Path) -> Any:
    import pyarrow

    catalog().create_namespace("shop")
    schema = pyarrow.schema([("n", pyarrow.int64()), ("moment", pyarrow.timestamp("us", "UTC"))])
    table = catalog().create_table("shop.trades", schema)

    def append(*moments: datetime | None) -> None:
        table.append(pyarrow.table({"n": list(range(len(moments))), "moment": list(moments)}, schema=schema))

    append.delete = table.delete  # type: ignore[attr-defined]
    return append


@pytest.mark.slow
def test_the_newest_event_is_that_of_the_files_bounds(folder: Path, times: Any) -> None:
    pipeline = planned(folder, "n: bigint; moment: timestamp", topic="event_time: moment")
    assert newest_event(pipeline) is None
    times(None)
    assert newest_event(pipeline) is None
    old = datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)
    times(old)
    assert newest_event(pipeline) == old
    times(MOMENT, old, None)
    times(MOMENT - timedelta(days=1))
    assert newest_event(pipeline) == MOMENT
    times.delete(f"moment >= '{MOMENT.isoformat()}'")
    assert newest_event(pipeline) == MOMENT - timedelta(days=1)


def test_lists_of_files_are_read_as_pyiceberg_reads_them(folder: Path, times: Any) -> None:
    times(MOMENT, None)
    times(MOMENT)
    table = catalog().load_table("shop.trades")
    main = table.current_snapshot()
    assert main is not None
    theirs = [entry for manifest in main.manifests(table.io) for entry in manifest.fetch_manifest_entry(table.io)]
    ours = [
        entry for manifest in main.manifests(table.io) for entry in metadata.records(local_files("."), manifest.manifest_path)
    ]
    assert [entry.data_file.file_path for entry in theirs] == [entry["data_file"]["file_path"] for entry in ours]
    for their_entry, our_entry in zip(theirs, ours, strict=True):
        bounds = {bound["key"]: bound["value"] for bound in our_entry["data_file"]["upper_bounds"]}
        assert (their_entry.data_file.upper_bounds, their_entry.data_file.record_count) == (
            bounds,
            our_entry["data_file"]["record_count"],
        )


@pytest.mark.parametrize("data", [b"", b"Obj\x01", b"PK\x03\x04 no Avro", b"Obj\x01" + b"\x00" * 40])
def test_a_file_that_is_no_avro_is_a_value_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.avro").write_bytes(data)
    with pytest.raises(ValueError):  # noqa: PT011 - fastavro's own
        metadata.records(local_files("."), str(tmp_path / "x.avro"))


def test_records_are_read_from_this_home(folder: Path) -> None:
    """The next status shows the end of a run."""
    planned(folder, "n: bigint")
    journal.record_failure("trades", Transient("table-busy", "somebody else writes", "run again"))
    (table,) = json.loads(sluice("status", "--json").output)["tables"]
    assert [(reason["code"], reason["at"] is None) for reason in table["reasons"]] == [
        ("kafka-unreachable", True),
        ("table-busy", False),
    ]
