"""`also: delta`: the rows of a table that readers of Delta Lake see."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable

from framework.base.errors import SluiceError
from framework.core.follow import follow
from framework.core.iceberg.metadata import DataFile, Metadata
from framework.core.maintain import maintain
from framework.core.sources.changes import NOTHING
from framework.features.followers import delta
from framework.operations.observe.status import status_of
from framework.systems.catalogs._local_files import LocalFiles
from tests.support.delta_followers import by_duckdb, folder, prepare, visible_rows
from tests.support.follower_parts import ran
from tests.support.kill_points import Died
from tests.support.project import Project
from tests.support.selection import few

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def send(project: Project, *rows: dict[str, Any]) -> None:
    project.send([json.dumps(row).encode() for row in rows], 0)


def test_readers_of_delta_see_each_commit(project: Project) -> None:
    prepare(project, ", partition_by: [id]")
    send(project, {"id": 1, "price": 1, "l": [{"x": 1}], "m": {"a": 1.5}}, {"id": 2, "price": 2})
    assert ran(project) == [2]
    send(project, {"id": 3, "price": 3})
    assert ran(project) == [1]
    assert ran(project) == []
    assert visible_rows(project) == [(1, 1), (2, 2), (3, 3)]
    columns = DeltaTable(folder(project)).schema().to_arrow().names
    assert columns == ["id", "price", "gone", "l", "m", "_kafka_partition", "_kafka_offset", "_kafka_timestamp"]
    (row,) = [row for row in DeltaTable(folder(project)).to_pyarrow_table().to_pylist() if row["id"] == 1]
    assert (row["l"], str(dict(row["m"])["a"])) == ([{"x": 1}], "1.50")
    expected_row = (1, [{"x": 1}], {"a": Decimal("1.50")}, row["_kafka_timestamp"])
    assert by_duckdb("id, l, m, _kafka_timestamp", folder(project))[0] == expected_row
    assert DeltaTable(folder(project)).version() == 1
    (state,) = status_of(project.plan, project.pipeline).followers
    assert (state.follower.title, state.state) == ("delta log", "connected")


@pytest.mark.parametrize("point", few(follow.KILL_POINTS, "shown"))
def test_it_dies_at(project: Project, point: str) -> None:
    prepare(project)
    send(project, {"id": 1, "price": 1})

    def die(reached_point: str) -> None:
        if reached_point == point:
            raise Died

    with suppress(Died):
        ran(project, die)
    send(project, {"id": 2, "price": 2})
    ran(project)
    assert visible_rows(project) == [(1, 1), (2, 2)]


@pytest.mark.long
def test_changed_rows_are_shown_once_the_table_is_compacted(project: Project) -> None:
    prepare(project, ", write: upsert, keys: [id], deletes: {{when: gone}}")
    send(project, *({"id": number, "price": 1} for number in range(4)))
    ran(project)
    send(project, {"id": 1, "price": 5}, {"id": 2, "gone": True}, {"id": 9, "price": 9})
    assert ran(project) == []
    assert visible_rows(project) == [(0, 1), (1, 1), (2, 1), (3, 1)]
    (state,) = status_of(project.plan, project.pipeline).followers
    assert (state.state, state.rows > 0) == ("lagging", True)
    context = project.context()
    list(maintain.maintain(context, context.plan.pipelines[0]))
    assert ran(project) == [4]
    assert visible_rows(project) == [(0, 1), (1, 5), (3, 1), (9, 9)]


def test_a_new_column_is_added_and_another_type_refused(project: Project) -> None:
    prepare(project)
    send(project, {"id": 1, "price": 1})
    ran(project)
    project.template = project.template.replace("gone: boolean", "gone: boolean, new: int")
    send(project, {"id": 2, "price": 2, "new": 7})
    assert ran(project) == [1]
    table = DeltaTable(folder(project)).to_pyarrow_table(columns=["id", "new"]).to_pylist()
    assert sorted(row["new"] or 0 for row in table) == [0, 7]
    project.template = project.template.replace("new: int", "new: bigint")
    send(project, {"id": 3})
    with pytest.raises(SluiceError, match="`new` is int32, not int64, in older files") as error:
        ran(project)
    assert error.value.code == "delta-cannot-show"
    assert len(visible_rows(project)) == 2
    assert len(project.rows()) == 3


@pytest.mark.long
def test_compacted_files_replace_the_small_ones(project: Project) -> None:
    prepare(project)
    for number in range(3):
        send(project, {"id": number, "price": number})
        ran(project)
    project.sql("call lake.system.rewrite_data_files(table => '{bare}', options => map('rewrite-all', 'true'))")
    ran(project)
    assert visible_rows(project) == [(0, 0), (1, 1), (2, 2)]
    assert len(DeltaTable(folder(project)).file_uris()) == 1


def test_a_log_of_somebody_else_is_not_touched(project: Project) -> None:
    import pyarrow
    from deltalake import write_deltalake

    prepare(project)
    send(project, {"id": 1})
    project.run()
    write_deltalake(folder(project), pyarrow.table({"a": [1]}))
    with pytest.raises(SluiceError, match="has a log of Delta Lake that Sluice did not write"):
        ran(project)
    assert DeltaTable(folder(project)).to_pyarrow_table().to_pylist() == [{"a": 1}]


def test_names_with_special_characters(tmp_path: Path) -> None:
    """The log encodes the names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    root = tmp_path / "sp ace é+&"
    id_ = pa.field("id", pa.int64(), metadata={b"PARQUET:field_id": b"1"})
    names = ["data/1.parquet", "data/a=b%20c d/2 é.parquet", "data/3.parquet"]
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [number]}, pa.schema([id_])), root / name)
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
    document = {"table-uuid": "u", "location": str(root), "schemas": [schema], "current-schema-id": 0}
    table = Metadata("", document, LocalFiles(f"file://{tmp_path}"))

    def follow(until: int, *names: str) -> int:
        files = tuple(DataFile(str(root / name), 1, (root / name).stat().st_size) for name in names)
        pipeline = SimpleNamespace(name="p", table=SimpleNamespace(doc=""))
        step = SimpleNamespace(since=NOTHING)
        return delta.follow(SimpleNamespace(table=table, pipeline=pipeline, files=lambda: files, until=until, step=step))  # type: ignore[arg-type]

    assert [follow(1, *names[:2]), follow(2, *names), follow(3, names[2])] == [2, 1, 0]
    assert DeltaTable(root).version() == 2
    assert DeltaTable(root).to_pyarrow_table().to_pylist() == [{"id": 2}]
    assert by_duckdb("id", root) == [(2,)]
