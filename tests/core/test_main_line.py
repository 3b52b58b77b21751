"""Main's snapshots, where some between them have expired."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import given, strategies as st

from framework.core.iceberg.main_line import gaps, main_line, rules_line
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol, recorded_moves
from framework.core.rules.protocol import Position, TableState
from tests.support.metadata_files import snapshot, table_of

BEGIN = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def at(number: int, parent: int | None = None, batch: int | None = None) -> dict[str, Any]:
    entry = snapshot(number, BEGIN + timedelta(seconds=number), parent)
    position = Position.read(entry["summary"][protocol.POSITION])
    entry["summary"][protocol.POSITION] = Position(
        attempt="a", batch=batch or number, cluster="c", topics=position.topics, ends=position.ends
    ).text()
    return entry


def without(table: Metadata, ids: Collection[int]) -> Metadata:
    """The table after these snapshots have expired."""
    left = [entry for id_, entry in table.snapshots.items() if id_ not in ids]
    refs = {name: ref for name, ref in table.document["refs"].items() if name != "main"}
    return table_of(left, refs, table.document["current-snapshot-id"], table.properties)


def ids(table: Metadata) -> list[int]:
    return [entry["snapshot-id"] for entry in main_line(table)]


def rolled_back(begin: int, tip: int, target: int, last: int) -> Metadata:
    """A table that went from the snapshot `tip` back to `target`, and on from there, in batches with the next numbers."""
    entries = [at(number) for number in range(begin, tip + 1)]
    undone_table = table_of(entries)
    state = TableState(
        uuid="u",
        main=tip,
        snapshots={entry.id: entry for entry in rules_line(list(main_line(undone_table)))},
        position=None,
        owner=None,
    )
    position = Position(attempt="a", batch=tip + 1, cluster="c", topics={}, ends={}, forget=(target, tip))
    properties = recorded_moves.with_move(None, recorded_moves.ROLLBACK, position, state, target)
    newer = [at(number, target if number == tip + 1 else number - 1, number + 1) for number in range(tip + 1, last + 1)]
    return table_of([*entries, *newer], properties=properties)


@given(st.sets(st.integers(1, 29)))
def test_main_goes_on_behind_each_gap(expired: set[int]) -> None:
    table = without(table_of(at(number) for number in range(1, 31)), expired)
    assert ids(table) == [number for number in range(30, 0, -1) if number not in expired]
    assert gaps(list(main_line(table))) == {number for number in range(2, 31) if number - 1 in expired and number not in expired}
    line = rules_line(list(main_line(table)))
    assert [entry.parent for entry in line[:-1]] == [entry.id for entry in line[1:]]


@given(st.sets(st.integers(1, 19)))
def test_batches_that_a_rollback_has_undone_are_not_mains(expired: set[int]) -> None:
    table = rolled_back(1, tip=10, target=5, last=20)
    assert ids(without(table, expired)) == [number for number in [*range(20, 10, -1), *range(5, 0, -1)] if number not in expired]


@given(st.sets(st.integers(1, 29)))
def test_branches_and_states_are_not_mains(expired: set[int]) -> None:
    """Also snapshots of a state that a rollback has left without a branch."""

    def staged(number: int, parent: int) -> Mapping[str, Any]:
        entry = at(number, parent)
        entry["summary"] = {"operation": "append", protocol.ATTEMPT: "b" * 32}
        return entry

    entries = [at(number, number - 2 if number > 2 else None) for number in range(1, 31, 2)]
    states = [staged(number, number - 2) for number in range(2, 22, 2)]
    others = [{**at(number, number - 2 if number > 22 else 21), "summary": {}} for number in range(22, 31, 2)]
    table = table_of([*entries, *states, *others], {"theirs": {"snapshot-id": 30, "type": "branch"}}, main=29)
    expired_ids = expired - {29, 30} - {entry["snapshot-id"] for entry in others}
    assert ids(without(table, expired_ids)) == [number for number in range(29, 0, -2) if number not in expired_ids]


@given(st.sets(st.integers(1, 19) | st.just(100)))
def test_commits_without_a_batch_that_a_rollback_has_undone_are_not_mains(expired: set[int]) -> None:
    """Batch 5, another program's commit 6 and a compaction 7 of it; back to 5, and on."""
    table = rolled_back(1, tip=7, target=5, last=20)
    table.snapshots[6]["summary"] = {"operation": "overwrite"}  # type: ignore[index]
    table.snapshots[7]["summary"] = {"operation": "replace", protocol.COMPACTED: "true"}  # type: ignore[index]
    assert ids(without(table, expired)) == [number for number in [*range(20, 7, -1), *range(5, 0, -1)] if number not in expired]


def test_what_another_program_has_put_back_and_a_person_accepted_is_not_mains() -> None:
    entries = [at(number) for number in range(1, 11)]
    foreign = {**at(11, 5), "summary": {"operation": "append"}}
    line = [*entries[:5], foreign]
    position = Position.read(entries[9]["summary"][protocol.POSITION])
    before = TableState(
        uuid="u", main=11, snapshots={entry.id: entry for entry in rules_line(line[::-1])}, owner=None,
        position=replace(position, snapshot=10, sequence=10),
    )  # fmt: skip
    accepted = replace(position, batch=12, snapshot=11, sequence=11)
    properties = recorded_moves.with_move(None, recorded_moves.ACCEPT, accepted, before)
    table = table_of([*entries, foreign, at(12, 11, 13), at(13, 12, 14)], properties=properties)
    assert ids(without(table, {12, 11})) == [13, 5, 4, 3, 2, 1]


def test_what_another_program_and_then_a_person_went_back_from_is_not_mains() -> None:
    """Batches up to 10; another program puts main at 5, and a rollback goes on to 3."""
    entries = [at(number) for number in range(1, 11)]
    position = replace(Position.read(entries[9]["summary"][protocol.POSITION]), snapshot=10, sequence=10)
    before = TableState(
        uuid="u", main=5, snapshots={entry.id: entry for entry in rules_line(entries[4::-1])}, position=position, owner=None
    )
    properties = recorded_moves.with_move(None, recorded_moves.ROLLBACK, replace(position, batch=11, forget=(3, 10)), before, 3)
    table = table_of([*entries, at(11, 3, 12), at(12, 11, 13)], properties=properties)
    assert ids(without(table, {11})) == [12, 3, 2, 1]


def test_an_accept_of_something_else_undoes_nothing() -> None:
    """Also behind a rebuild, whose position says that all bad rows before it are forgotten."""
    line = [at(number) for number in range(10, 0, -1)]
    position = replace(Position.read(line[0]["summary"][protocol.POSITION]), snapshot=10, sequence=10, forget=(0, 10))
    before = TableState(
        uuid="u", main=10, snapshots={entry.id: entry for entry in rules_line(line)}, position=position, owner=None
    )
    properties = recorded_moves.with_move(None, recorded_moves.ACCEPT, replace(position, batch=11), before)
    assert [move.undone for move in recorded_moves.recorded(properties)] == [None]


def test_a_commit_behind_a_gap_has_no_position_of_an_older_batch() -> None:
    """Another program has expired the parents of a compaction: its rows are those of the batch that is gone."""
    compaction = {**at(10), "summary": {"operation": "replace", protocol.COMPACTED: "true"}}
    table = without(table_of([*map(at, range(1, 10)), compaction, at(11)]), range(6, 10))
    line = rules_line(list(main_line(table)))
    assert [entry.id for entry in line] == [11, 10, 5, 4, 3, 2, 1]
    assert [entry.parent for entry in line[:3]] == [10, 9, 4]


def test_a_rewind_undoes_no_rows() -> None:
    position = Position(attempt="a", batch=11, cluster="c", topics={}, ends={}, forget=(2, 10), rewound=True)
    state = TableState(uuid="u", main=10, snapshots={}, position=None, owner=None)
    properties = recorded_moves.with_move(None, recorded_moves.REWIND, position, state)
    assert [move.undone for move in recorded_moves.recorded(properties)] == [None]
