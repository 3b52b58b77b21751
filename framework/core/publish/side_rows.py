"""Changes of a side table's rows: staged on a branch of their own, and published only onto the snapshot from which they began.

Each change can be repeated: once it is published, it finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from framework.core.iceberg import moves, removal
from framework.core.iceberg.lake import TableStore
from framework.core.rules import attempts, protocol
from framework.core.rules.protocol import Position
from framework.core.rules.read_again import read_again, replay_undone
from framework.core.spark.java_errors import CommitRefused, commit_answers
from framework.core.staging import by_key
from framework.plan import BAD_ROW_COLUMNS, OPEN, REPLAYED, Column
from framework.sql.quote import identifier

_PLACE = ("batch", "topic", "partition", "offset", "item")


def add_columns(lake: TableStore, table: Any, columns: Iterable[Column]) -> None:
    """Adds columns that a newer Sluice keeps."""
    missing = [column for column in columns if table.schema().findField(column.name) is None]
    if missing:
        lake.add_columns(table, missing)


def forget(lake: TableStore, table: Any, position: Position) -> None:
    """Deletes bad rows whose messages are read again, and reopens bad rows whose replay is undone."""
    has_states = table.schema().findField("replayed_in") is not None

    def statements(branch: str) -> Iterator[str]:
        yield f"DELETE FROM {branch} WHERE {read_again(position)}"
        if has_states:
            yield f"UPDATE {branch} SET state = '{OPEN}', replayed_in = NULL WHERE {replay_undone(position)}"

    change(lake, table, statements)


def settle(lake: TableStore, table: Any, position: Position) -> None:
    """Marks bad rows as a replay left them. The outcomes are staged on the branch of the replay's attempt."""
    tip = table.snapshot(protocol.BRANCH + position.attempt)
    if tip is None:
        return
    staged = lake.spark.read.option("start-snapshot-id", str(tip.parentId())).option("end-snapshot-id", str(tip.snapshotId()))
    view = f"sluice_{position.attempt}"
    by_key.detached(staged.format("iceberg").load(_name(lake, table))).createOrReplaceTempView(view)
    names = [identifier(column.name) for column in BAD_ROW_COLUMNS]
    same = " AND ".join(f"t.{identifier(name)} <=> s.{identifier(name)}" for name in _PLACE)
    updates = ", ".join(f"{name} = s.{name}" for name in ("stage", "code", "message", "schema_id", "replayed_in"))

    def merge(branch: str) -> Iterator[str]:
        yield (
            f"MERGE INTO {branch} t USING {view} s ON {same} "
            f"WHEN MATCHED AND s.state = '{REPLAYED}' THEN UPDATE SET state = s.state, replayed_in = s.replayed_in "
            f"WHEN MATCHED THEN UPDATE SET {updates} "
            f"WHEN NOT MATCHED AND s.state = '{OPEN}' "
            f"THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
        )

    try:
        change(lake, table, merge, other_attempt=position.attempt)
    finally:
        lake.spark.catalog.dropTempView(view)


def change(lake: TableStore, table: Any, statements: Callable[[str], Iterable[str]], other_attempt: str = "") -> None:
    """Makes changes in one commit, which also removes the branch of `other_attempt`. Refused if the table changed meanwhile."""
    base = table.currentSnapshot().snapshotId()
    with attempts.attempt() as attempt:
        lake.branch(table, attempt, base)
        branch = f"{_name(lake, table)}.{identifier(f'branch_{protocol.BRANCH}{attempt}')}"
        for statement in statements(branch):
            with commit_answers():
                lake.spark.sql(statement)
        try:
            settled = str(_settled(lake, table, branch))
            moves.advance(lake.begin(table), attempt, base, other_attempt, {protocol.SETTLED: settled})
        except CommitRefused:
            removal.sweep(lake, lake.load(".".join(_parts(table))), attempt)
            raise
        attempts.forget(attempt)


def _settled(lake: TableStore, table: Any, branch: str) -> int:
    if table.schema().findField("state") is None:
        return 0
    return int(lake.spark.table(branch).where(f"coalesce(state, '{OPEN}') <> '{OPEN}'").count())


def _name(lake: TableStore, table: Any) -> str:
    return identifier(lake.component.name, *_parts(table))


def _parts(table: Any) -> list[str]:
    """The name of a table in its catalog."""
    return str(table.name()).split(".")[1:]
