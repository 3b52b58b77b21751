"""Maintenance: fewer files and snapshots, the same rows, and nothing lost by it."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from click.testing import CliRunner

from framework.base.errors import RolledBack
from framework.core.iceberg import metadata
from framework.core.iceberg.at import OfBatch
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.main_line import main_line
from framework.core.iceberg.updates import Updates
from framework.core.maintain import due as due_module, expire, thinning
from framework.core.maintain.due import due
from framework.core.maintain.maintain import KILL_POINTS, maintain
from framework.core.rules import protocol, refusals
from framework.core.spark.java_errors import CommitRefused
from framework.host.cli import main
from framework.host.cli.plan import next_run_lines
from framework.operations.observe.commits import history
from framework.operations.observe.next_run import next_runs
from framework.operations.undo import accept as accepting, rollback
from framework.operations.undo.accept import accept, refusal
from tests.support.project import Project
from tests.support.rollbacks import rolled_back, snapshots
from tests.support.selection import few

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
DAYS = """
topic: trades
kafka_name: {topic}
value: json
columns: {{at: timestamp, place: string, name: string}}
---
pipeline: trades
from: {{topic: trades}}
into: {{table: {namespace}.trades, partition_by: [day(at), place, "truncate(2, name)"]}}
maintain: {{compact_every: 1m}}
"""
KEEP = "maintain: {compact_every: 1m, keep_snapshots_for: 1h, keep_at_least: 1}"


class Died(BaseException):
    pass


@pytest.fixture
def aged(project: Project) -> Project:
    """A table of five batches, a day after the last one."""
    project.more = KEEP
    project.make_topic()
    for _ in range(5):
        project.send_good(30, bad_every=10)
        project.run()
    project.clock = lambda: datetime.now(timezone.utc) + timedelta(days=1)
    return project


def maintained(project: Project, on_point: Callable[[str], None] | None = None) -> list[tuple[str, tuple[str, ...]]]:
    context = project.context(on_point)
    return [(done.identifier.rpartition(".")[2], done.says) for done in maintain(context, context.plan.pipelines[0])]


def metadata_file(project: Project) -> str:
    table = metadata.read(project.pipeline.table.catalog, project.pipeline.table.identifier)
    assert table is not None
    return table.file


def counts(project: Project, table: str = "{table}") -> dict[str, int]:
    queries = {name: f"select count(*) from {table}.{name}" for name in ("files", "snapshots")}
    return {name: project.sql(text)[0][0] for name, text in queries.items()}


def test_files_become_fewer_and_old_snapshots_go(aged: Project) -> None:
    before = sorted(aged.rows(), key=str)
    done = dict(maintained(aged))
    assert done["trades"][0].endswith("files into 1")
    assert " snapshots and " in done["trades"][1]
    assert counts(aged) == {"files": 1, "snapshots": 2}  # the compaction's, and the last batch's, which says the position
    assert sorted(aged.rows(), key=str) == before
    aged.assert_exactly_once()
    assert aged.unreferenced() == set()
    aged.send_good(30, bad_every=10)
    assert [batch.number for batch in aged.run()] == [6]
    aged.assert_exactly_once()
    assert counts(aged, "{table}__bad_rows")["files"] <= 2


@pytest.fixture
def busy(project: Project) -> Project:
    """A table with a commit each second or less, a minute after the last one."""
    project.more = "maintain: {compact_every: 1m, keep_at_least: 1}"
    project.make_topic()
    for _ in range(9):
        project.send_good(30, bad_every=10)
        project.run()
    project.clock = lambda: datetime.now(timezone.utc) + timedelta(seconds=61)
    return project


def listed_files(project: Project) -> dict[Path, list[Path]]:
    """The files that are to be deleted later, by the files that list them."""
    folder = project.lake / "warehouse" / project.namespace / "trades" / "metadata"
    contents = {path: json.loads(path.read_text()) for path in folder.glob("delete-later-*.json")}
    return {path: [Path(urlparse(file).path) for file in content["files"]] for path, content in contents.items()}


def in_minutes(project: Project, minutes: float) -> None:
    project.clock = lambda: datetime.now(timezone.utc) + timedelta(minutes=minutes)


def test_files_of_snapshots_that_expire_early_stay_for_their_readers(busy: Project) -> None:
    """Where commits are many, snapshots of a minute ago expire, and whoever reads one goes on reading its files."""
    folder = busy.lake / "warehouse" / busy.namespace / "trades"
    before = {path for path in folder.rglob("*") if path.suffix in (".avro", ".parquet")}
    assert "snapshots are gone" in dict(maintained(busy))["trades"][1]
    assert counts(busy)["snapshots"] < 8 and counts(busy)["files"] == 1
    assert before <= set(folder.rglob("*"))
    (files,) = listed_files(busy).values()
    assert len(files) >= 4 and all(path.exists() for path in files)
    now = datetime.now(timezone.utc)
    assert [due(busy.pipeline, now + timedelta(minutes=minutes))[0].delete for minutes in (50, 70)] == [False, True]
    in_minutes(busy, 70)
    assert dict(maintained(busy))["trades"][-1] == f"{len(files)} files of earlier snapshots are gone"
    assert not any(path.exists() for path in files) and not listed_files(busy)
    assert not any(duty.delete for duty in due(busy.pipeline, now + timedelta(days=1)))
    assert busy.unreferenced() == set()
    busy.send_good(30, bad_every=10)
    busy.run()
    busy.assert_exactly_once()


def test_no_file_of_a_snapshot_that_came_back_is_deleted(busy: Project) -> None:
    """An older metadata file may have been restored."""
    maintained(busy)
    ((list_path, files),) = listed_files(busy).items()
    newest = busy.sql("select max_by(snapshot_id, committed_at) from {table}.snapshots")[0]
    content = json.loads(list_path.read_text())
    list_path.write_text(json.dumps({**content, "snapshots": [*content["snapshots"], newest[0]]}))
    in_minutes(busy, 70)
    maintained(busy)
    assert all(path.exists() for path in files) and not list_path.exists()


def test_no_other_file_is_deleted_whatever_a_list_says(busy: Project) -> None:
    """A list of which no commit was made counts for nothing, and the search for orphans leaves listed files to their time."""
    maintained(busy)
    ((list_path, files),) = listed_files(busy).items()
    outside = busy.lake / "theirs.parquet"
    outside.touch()
    content = json.loads(list_path.read_text())
    list_path.write_text(json.dumps({**content, "files": [str(outside), *content["files"]]}))
    data = next((list_path.parent.parent / "data").rglob("*.parquet"))
    never_committed = list_path.with_name("delete-later-0000000001-00000000.json")
    never_committed.write_text(json.dumps({"snapshots": [], "files": [str(data)]}))
    for path in (*files, data):
        os.utime(path, (1, 1))
    maintained(busy)
    assert all(path.exists() for path in (*files, data))
    in_minutes(busy, 70)
    maintained(busy)
    assert outside.exists() and data.exists() and not any(path.exists() for path in files)
    assert list(listed_files(busy)) == [never_committed]
    busy.assert_exactly_once()


def test_a_refused_expiry_leaves_neither_a_list_nor_metadata(busy: Project) -> None:
    """An expiry during which a batch is published each time is left to the next time."""
    folder = busy.lake / "warehouse" / busy.namespace / "trades" / "metadata"
    lake = busy.context().lake(busy.pipeline)

    def begin(table: Any) -> Any:
        begun = TableStore.begin(lake, table)
        if begun.table.name().endswith(".trades"):
            Updates(TableStore.load(lake, busy.pipeline.table.identifier)).set({"theirs": uuid.uuid4().hex})
        return begun

    lake.begin = begin  # type: ignore[method-assign]
    expired_ids = snapshots(busy)[1:4]
    with pytest.raises(CommitRefused):
        expire.expire(lake, busy.pipeline.table.catalog, busy.pipeline.table.identifier, expired_ids, datetime.now(timezone.utc))
    assert listed_files(busy) == {}
    numbers = [path.name.partition("-")[0] for path in folder.glob("*.metadata.json")]
    assert len(numbers) == len(set(numbers))  # a refused commit would have left another file with the number of the one before it


def test_metadata_of_refused_compactions_is_deleted_and_no_other(busy: Project) -> None:
    """Iceberg commits a compaction again after each refusal, and leaves a file each time."""
    lake = busy.context().lake(busy.pipeline)
    refused = lake.spark._jvm.sluice.Refused(lake.load(busy.pipeline.table.identifier))
    since = refused.current()
    maintained(busy)
    folder = Path(urlparse(metadata_file(busy)).path).parent
    lives = {path: json.loads(path.read_text()) for path in sorted(folder.glob("*.metadata.json"))}
    introduced = next(
        path for path, document in lives.items() if protocol.COMPACTED in (document["snapshots"][-1].get("summary") or {})
    )
    number = int(introduced.name.partition("-")[0])
    left = introduced.with_name(f"{number:05d}-left.metadata.json")
    left.write_text(introduced.read_text())
    later = json.loads(introduced.read_text())
    later["metadata-log"] = [
        *later["metadata-log"],
        {"metadata-file": f"file:{introduced}", "timestamp-ms": later["last-updated-ms"]},
    ]
    of_another = introduced.with_name(f"{number + 1:05d}-of-another-catalog.metadata.json")
    of_another.write_text(json.dumps(later))
    refused.deleteCompactions(since, protocol.COMPACTED)
    assert set(folder.glob("*.metadata.json")) == {*lives, of_another}
    busy.run()
    busy.assert_exactly_once()


def test_files_that_are_to_be_deleted_are_dropped_with_their_table(busy: Project) -> None:
    maintained(busy)
    assert listed_files(busy)
    specs = str(Path(busy.pipeline.where.file).parent)
    result = CliRunner().invoke(main, ["drop", "trades", "--data", "--yes", "--specs", specs])
    assert result.exit_code == 0 and "stay" not in result.output, result.output
    assert not (busy.lake / "warehouse" / busy.namespace / "trades").exists()


def die_at(project: Project, point: str) -> None:
    """Maintenance dies at a point, and the next batch finds all rows."""

    def die(reached: str) -> None:
        if reached == point:
            raise Died

    with suppress(Died):
        maintained(project, die)
    project.send_good(30, bad_every=10)
    project.run()
    project.assert_exactly_once()


@pytest.mark.parametrize("point", few(KILL_POINTS, "expired"))
def test_many_commits_lose_nothing_by_a_death_at(busy: Project, point: str) -> None:
    die_at(busy, point)
    for minutes in (2, 90):
        in_minutes(busy, minutes)
        maintained(busy)
        busy.assert_exactly_once()
    assert busy.unreferenced() == set() and busy.branches() == []


def test_a_table_goes_back_behind_snapshots_that_have_expired(busy: Project) -> None:
    maintained(busy)
    busy.clock = lambda: datetime.now(timezone.utc)
    for _ in range(3):
        busy.send_good(30, bad_every=10)
        busy.run()
    table = metadata.read(busy.pipeline.table.catalog, busy.pipeline.table.identifier)
    assert table is not None
    line = list(main_line(table))
    target = line[-1]["snapshot-id"]
    assert target not in [snapshot["snapshot-id"] for snapshot in table.ancestors()]
    past = history(busy.pipeline)
    assert past is not None and [commit.snapshot for commit in past.commits] == [snapshot["snapshot-id"] for snapshot in line]
    assert any(commit.older_expired for commit in past.commits) and not any(commit.moved for commit in past.commits)
    meaning = rolled_back(busy, target)
    assert meaning.undone >= 8 and meaning.rows_then == busy.sql("select count(*) from {table}")[0][0]
    busy.run()
    busy.assert_exactly_once()


@pytest.mark.parametrize("point", few(KILL_POINTS, "compacted"))
def test_no_row_is_lost_after_a_death_at(aged: Project, point: str) -> None:
    die_at(aged, point)
    maintained(aged)
    aged.assert_exactly_once()
    assert aged.unreferenced() == set()
    assert aged.branches() == []


@pytest.mark.parametrize("point", few(["rolled_forward", "compacted", "settled"], "compacted"))
def test_a_batch_comes_between(aged: Project, point: str) -> None:
    def batch(reached: str) -> None:
        if reached == point:
            aged.send_good(30, bad_every=10)
            aged.run()

    maintained(aged, batch)
    aged.assert_exactly_once()
    aged.run()
    aged.assert_exactly_once()


@pytest.mark.parametrize("point", few(["branched", "staged", "checked"], "staged"))
def test_maintenance_comes_between(aged: Project, point: str) -> None:
    came: list[Any] = []

    def keep(reached: str) -> None:
        if reached == point and not came:
            came.append(reached)
            came.append(maintained(aged))

    aged.send_good(30, bad_every=10)
    assert sum(batch.read for batch in aged.run(keep)) == 30
    assert came[1]
    aged.assert_exactly_once()
    assert aged.branches() == []


@pytest.mark.long
def test_a_rollback_behind_a_compaction_is_known(aged: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for floor in ("FLOOR", "FLOOR_OF_MANY"):
        monkeypatch.setattr(thinning, floor, timedelta(days=9))  # keeps all snapshots, as those of the last minutes
    maintained(aged)
    snapshots = aged.sql("select snapshot_id, operation from {table}.snapshots order by committed_at")
    compaction = snapshots[-1]
    assert compaction[1] == "replace"
    for snapshot in (compaction[0], snapshots[4][0]):
        aged.send_good(30, bad_every=10)
        aged.run()
        aged.sql(f"call lake.system.rollback_to_snapshot('{{bare}}', {snapshot})")
        assert maintained(aged) == []  # its snapshots say what is to be read again
        context = aged.context()
        refused = refusal(context, context.plan.pipelines[0])
        assert isinstance(refused, RolledBack)
        accept(context, context.plan.pipelines[0], refused)
        aged.run()
        aged.assert_exactly_once()


def test_files_that_no_commit_names_go_once_they_are_old(aged: Project) -> None:
    folder = aged.lake / "warehouse" / aged.namespace / "trades"
    lost = folder / "data" / "lost.parquet"
    lost.write_bytes(b"of a run that was killed")
    index_file = folder / "index" / "of-a-follower"
    index_file.parent.mkdir()
    index_file.touch()
    maintained(aged)
    assert lost.exists()  # `orphans_after` is three days
    long_ago = 1
    for path in folder.rglob("*"):
        os.utime(path, (long_ago, long_ago))
    copy = folder / "metadata" / "of-another-catalog.metadata.json"
    document = json.loads(Path(urlparse(metadata_file(aged)).path).read_text())
    only = folder / "data" / "of-another.avro"
    shutil.copy(urlparse(document["snapshots"][0]["manifest-list"]).path, only)
    copy.write_text(json.dumps({**document, "snapshots": [{**document["snapshots"][0], "manifest-list": str(only)}]}))
    os.utime(only, (long_ago, long_ago))
    damaged = folder / "metadata" / "damaged.metadata.json"
    damaged.write_text("{")
    maintained(aged)
    assert lost.exists()
    damaged.unlink()
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / "00000000000000000000.json").write_text("{}")
    maintained(aged)
    assert lost.exists()
    shutil.rmtree(folder / "_delta_log")
    lines = dict(maintained(aged))["trades"]
    assert lines[-1] == "1 file that no commit names is gone"
    assert not lost.exists()
    assert only.exists() and index_file.exists()
    aged.run()
    aged.assert_exactly_once()


def test_the_table_of_another_pipeline_is_left_to_it(aged: Project) -> None:
    owner = refusals.owner(replace(aged.pipeline, name="other"))
    aged.spark.sql(f"alter table {aged.table} set tblproperties ('{protocol.OWNER}' = '{owner}')")
    before = counts(aged)
    assert maintained(aged) == []
    assert counts(aged) == before


@pytest.mark.long
def test_files_that_another_catalog_names_stay_when_snapshots_go(aged: Project) -> None:
    folder = aged.lake / "warehouse" / aged.namespace / "trades"
    document = json.loads(Path(urlparse(metadata_file(aged)).path).read_text())
    (folder / "metadata" / "of-another-catalog.metadata.json").write_text(json.dumps(document))
    before = set(folder.rglob("data/**/*.parquet"))
    maintained(aged)
    assert counts(aged) == {"files": 1, "snapshots": 2}
    assert before and before <= set(folder.rglob("data/**/*.parquet"))
    aged.assert_exactly_once()


def test_many_new_files_are_compacted_before_their_time(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_module, "_CROWD", 5)  # files: hundreds would take minutes
    project.make_topic()
    said = []
    for _ in range(6):
        project.send_good(30)
        project.run()
        (duty, *_) = due(project.pipeline, datetime.now(timezone.utc) + timedelta(seconds=61))
        said.append((duty.compact, duty.why))
    assert said[0] == (False, "was compacted not long ago") and said[-1][0]
    (duty, *_) = due(project.pipeline, datetime.now(timezone.utc) + timedelta(seconds=30))
    assert not duty.compact
    project.more = "maintain: {compact_every: 2h}"
    (duty, *_) = due(project.pipeline, datetime.now(timezone.utc) + timedelta(seconds=61))
    assert not duty.compact


def test_what_is_due_is_said_without_spark(aged: Project) -> None:
    pipeline = aged.pipeline
    (table, _) = due(pipeline, datetime.now(timezone.utc) + timedelta(days=1))
    assert table.compact
    assert len(table.expirable.ids) == 5  # all but the newest: the table was made by one more
    assert not any(
        due_table.compact for due_table in due(pipeline, datetime.now(timezone.utc))
    )  # a new table waits for `compact_every`
    specs = str(pipeline.where.file).rpartition("/")[0]
    done = CliRunner().invoke(main, ["maintain", "--dry-run", "--specs", specs])
    assert done.exit_code == 0, done.output
    assert f"{pipeline.table.identifier}: to compact: " in done.output


def test_a_plan_says_what_is_maintained_behind_the_next_run(aged: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = aged.pipeline
    later = due(pipeline, datetime.now(timezone.utc) + timedelta(days=1))
    # Plans go by the clock of the machine, by which this table is not due before tomorrow.
    monkeypatch.setattr("framework.core.maintain.due.due", lambda *_: later)
    aged.send_good(3)
    (run,) = next_runs(aged.plan, [pipeline])
    assert any(line.startswith(f"then maintains {pipeline.table.identifier}: to compact: ") for line in next_run_lines(run))
    aged.run()
    (idle,) = next_runs(aged.plan, [pipeline])
    assert not any(line.startswith("then maintains") for line in next_run_lines(idle))


def test_partitions_to_which_nothing_comes_any_more_are_compacted_first(project: Project) -> None:
    project.template = DAYS
    project.make_topic(1)
    for number in range(14):
        row = {"at": f"2026-01-0{1 + number // 7}T10:00:00Z", "place": None, "name": "Ann"}
        project.send([json.dumps(row).encode()], partition=0)
        project.run()
    project.clock = lambda: datetime.now(timezone.utc) + timedelta(days=1)
    context = project.context()
    (done, *_) = maintain(context, context.plan.pipelines[0], byte_limit=1)
    assert done.says[0] == "7 files into 1"
    files = project.sql("select day(partition.at_day), count(*) from {table}.files group by 1 order by 1")
    assert [tuple(row) for row in files] == [(1, 1), (2, 7)]
    assert len(project.rows()) == 14


def test_compacted_bad_rows_are_deleted_by_a_rollback(project: Project) -> None:
    project.make_topic()
    for _ in range(7):
        project.send_good(30, bad_every=10)
        project.run()
    context = project.context()
    (pipeline,) = context.plan.pipelines
    assert [done.says[0] for done in maintain(context, pipeline)][1].endswith("files into 1")
    accepting.move(context, pipeline, rollback.judged(context, pipeline, OfBatch(3)).moves)
    assert {row["batch"] for row in project.rows(bad=True)} == {1, 2, 3}
    project.run()
    project.assert_exactly_once()


@pytest.mark.parametrize("index", [0, 1])
def test_what_was_chosen_before_a_rollback_does_not_expire_behind_it(project: Project, index: int) -> None:
    """Another program rolls the table back while maintenance looks for the files of old snapshots, and commits something. Without the
    snapshots between, this would look as if nothing had been rolled back, and the messages would not be read again."""
    project.make_topic()
    for _ in range(3):
        project.send_good(6)
        project.run()
    chosen = snapshots(project)[: index + 1]
    project.sql(f"CALL lake.system.rollback_to_snapshot('{{bare}}', {chosen[-1]})")
    lake, catalog, name = (
        project.context().lake(project.pipeline),
        project.pipeline.table.catalog,
        project.pipeline.table.identifier,
    )
    Updates(lake.load(name)).append({})
    with pytest.raises(CommitRefused, match="rolled back"):
        expire.expire(lake, catalog, name, chosen)
    with pytest.raises(RolledBack):
        project.run()
