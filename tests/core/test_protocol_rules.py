"""The protocol's rules, each by itself."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from framework.base.errors import RefusedError
from framework.core.rules import attempts
from framework.core.rules.protocol import (
    LostOffsets,
    Position,
    Range,
    Snapshot,
    Standing,
    TableState,
    TopicState,
    Verdict,
    lost_offsets,
    next_range,
    offsets_beyond_end,
    standing,
    verdict,
)

Offsets = dict[str, int]
names = st.builds("t/{}".format, st.integers(0, 12))
partitions = st.dictionaries(names, st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1)


def position_at(ends: Offsets, snapshot: int = 1, sequence: int = 1, attempt: str = "a") -> Position:
    return Position(
        attempt=attempt, batch=1, cluster="kafka", topics={"t": "topic"}, ends=ends, snapshot=snapshot, sequence=sequence
    )


def topic(starts: Offsets, ends: Offsets) -> TopicState:
    return TopicState("kafka", {"t": "topic"}, starts, ends)


def table(*snapshots: Snapshot, position: Position | None, main: int | None = None, uuid: str = "t") -> TableState:
    return TableState(
        uuid=uuid,
        main=main or snapshots[-1].id,
        snapshots={snapshot.id: snapshot for snapshot in snapshots},
        position=position,
        owner="me",
    )


def ranges(position: Position, state: TopicState, limit: int) -> list[Range]:
    batches = []
    while (range_ := next_range(position, state, limit)) is not None:
        batches.append(range_)
        position = replace(position, ends=range_.ends)
    return batches


@settings(deadline=None)
@given(partitions, st.integers(1, 60))
@pytest.mark.slow
def test_successive_batches_read_every_offset_once(sizes: dict[str, tuple[int, int]], limit: int) -> None:
    state = topic(
        {partition: start for partition, (start, _) in sizes.items()},
        {partition: start + size for partition, (start, size) in sizes.items()},
    )
    batches = ranges(position_at(dict(state.starts)), state, limit)
    read_offsets = [
        (partition, offset)
        for range_ in batches
        for partition in range_.starts
        for offset in range(range_.starts[partition], range_.ends[partition])
    ]
    assert sorted(read_offsets) == [
        (partition, offset)
        for partition in sorted(state.starts)
        for offset in range(state.starts[partition], state.ends[partition])
    ]


@settings(deadline=None)
@given(partitions, st.integers(1, 60))
@pytest.mark.slow
def test_a_batch_is_as_large_as_it_may_be(sizes: dict[str, tuple[int, int]], limit: int) -> None:
    state = topic(dict.fromkeys(sizes, 0), {partition: start + size for partition, (start, size) in sizes.items()})
    position = position_at({partition: start for partition, (start, _) in sizes.items()})
    waiting = sum(size for _, size in sizes.values())
    for range_ in ranges(position, state, limit):
        assert range_.size == min(limit, waiting)
        assert range_.waiting == waiting
        assert all(range_.starts[partition] <= range_.ends[partition] <= state.ends[partition] for partition in sizes)
        waiting -= range_.size
    assert waiting == 0


def test_a_batch_takes_from_each_partition_what_waits_there() -> None:
    range_ = next_range(position_at({"t/0": 0, "t/1": 0}), topic({"t/0": 0, "t/1": 0}, {"t/0": 900, "t/1": 100}), 100)
    assert range_ is not None
    assert range_.ends == {"t/0": 90, "t/1": 10}


def test_no_range_where_nothing_waits() -> None:
    assert next_range(position_at({"t/0": 5}), topic({"t/0": 0}, {"t/0": 5}), 10) is None
    assert next_range(position_at({"t/0": 5}), topic({"t/0": 0}, {"t/0": 3}), 10) is None


def test_a_new_partition_begins_at_its_start() -> None:
    assert next_range(position_at({"t/0": 5}), topic({"t/0": 0, "t/1": 0}, {"t/0": 5, "t/1": 2}), 10) == Range(
        {"t/0": 5, "t/1": 0}, {"t/0": 5, "t/1": 2}, 2, topics={"t": "topic"}
    )


def test_offsets_that_kafka_deleted_or_never_had_are_reported() -> None:
    position = position_at({"t/0": 5, "t/1": 5, "t/2": 5})
    assert lost_offsets(position, topic({"t/0": 5, "t/1": 7, "t/2": 0}, {"t/0": 9, "t/1": 9, "t/2": 9})) == (
        LostOffsets("t/1", 5, 7),
    )
    assert offsets_beyond_end(position, topic({"t/0": 0, "t/1": 0}, {"t/0": 4, "t/1": 5})) == (
        LostOffsets("t/0", 5, 4),
        LostOffsets("t/2", 5, 0),
    )


def test_the_first_messages_of_a_new_partition_can_be_lost() -> None:
    assert lost_offsets(position_at({"t/0": 5}), topic({"t/0": 0, "t/1": 3}, {"t/0": 5, "t/1": 9})) == (LostOffsets("t/1", 0, 3),)


def test_where_a_table_stands_follows_from_its_snapshots() -> None:
    oldest, middle, latest = Snapshot(1, None, 1), Snapshot(2, 1, 2), Snapshot(3, 2, 3)
    position = position_at({}, snapshot=2, sequence=2)
    assert standing(table(oldest, middle, position=None)) is Standing.FOREIGN
    assert standing(table(oldest, middle, position=position)) is Standing.HERE
    assert standing(table(oldest, middle, latest, position=position)) is Standing.HERE
    assert standing(table(oldest, middle, position=position, main=1)) is Standing.ROLLED_BACK
    assert standing(table(oldest, middle, Snapshot(3, 1, 3), position=position)) is Standing.ROLLED_BACK


def test_standing_where_snapshots_are_expired() -> None:
    position = position_at({}, snapshot=2, sequence=2)
    assert standing(table(Snapshot(3, 2, 3), position=position)) is Standing.HERE
    assert standing(table(Snapshot(4, 3, 4), position=position)) is Standing.EXPIRED
    assert standing(table(Snapshot(1, 0, 1), position=position)) is Standing.ROLLED_BACK


def test_a_foreign_commit_on_a_main_that_was_rolled_back_is_not_expiry() -> None:
    older, foreign = Snapshot(1, 0, 1), Snapshot(3, 1, 3)
    position = position_at({}, snapshot=2, sequence=2)
    assert standing(table(older, foreign, position=position)) is Standing.ROLLED_BACK
    assert standing(table(older, foreign, Snapshot(4, 3, 4), position=position)) is Standing.ROLLED_BACK


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(1, 8), st.integers(0, 7))
@pytest.mark.slow
def test_a_position_in_main_is_never_rolled_back(flags: list[bool], behind: int, expired: int) -> None:
    chain = [Snapshot(number, number - 1 or None, number) for number in range(1, len(flags) + 1)]
    position = chain[min(behind, len(chain)) - 1]
    remaining = [snapshot for snapshot in chain[expired:] if flags[snapshot.id - 1]] or [chain[-1]]
    if remaining[-1] is not chain[-1]:
        remaining.append(chain[-1])
    state = table(*remaining, position=position_at({}, position.id, position.sequence))
    assert standing(state) in (Standing.HERE, Standing.EXPIRED)


BORN = Snapshot(1, None, 1)
STAGED = Snapshot(2, 1, 2, attempt="me")
OPENED = table(BORN, position=position_at({"t/0": 5}))


@pytest.mark.parametrize(
    ("current_state", "staged", "expected"),
    [
        (OPENED, STAGED, Verdict.PUBLISH),
        (OPENED, None, Verdict.RESTAGE),
        (OPENED, replace(STAGED, parent=7), Verdict.RESTAGE),
        (OPENED, replace(STAGED, attempt="other"), Verdict.RESTAGE),
        (replace(OPENED, main=7), STAGED, Verdict.RESTAGE),
        (replace(OPENED, position=position_at({"t/0": 9}, attempt="other")), STAGED, Verdict.AGAIN),
        (replace(OPENED, position=None), STAGED, Verdict.AGAIN),
        (replace(OPENED, main=2, position=position_at({"t/0": 9}, attempt="me")), None, Verdict.DONE),
        (replace(OPENED, uuid="other", position=position_at({"t/0": 9}, attempt="me")), STAGED, Verdict.RECREATED),
    ],
)
def test_the_verdict_follows_from_the_table_as_it_is(
    current_state: TableState, staged: Snapshot | None, expected: Verdict
) -> None:
    assert verdict(OPENED, current_state, "me", staged) is expected


@given(st.dictionaries(names, st.integers(0, 2**62)), st.dictionaries(names, st.integers(0, 2**62)))
@settings(deadline=None)
@pytest.mark.slow
def test_a_position_is_read_as_it_was_written(ends: Offsets, accepted: Offsets) -> None:
    position = replace(position_at(ends), accepted=accepted, bad=3, spec="ünïcode", forget=(2, 5))
    assert Position.read(position.text()) == position
    assert Position.read(replace(position, forget=None).text()).forget is None


def test_what_a_commit_writes_of_its_position_grows_little_with_the_partitions() -> None:
    """Each snapshot's summary has the position, and each metadata file has all summaries."""
    chance = random.Random(1)
    ends = {f"trades/{number}": 10**9 + chance.randint(0, 10**6) for number in range(300)}
    short = Position(attempt="a", batch=1, cluster="c", topics={"trades": "t"}, ends=ends, snapshot=1, sequence=1).short_text()
    assert Position.read(short).ends == ends
    assert len(short) < 1_400 < 6_000 < len(Position.read(short).text())


@given(
    st.dictionaries(st.sampled_from(["a", "b.c"]), st.lists(st.integers(0, 2**63 - 1), max_size=20)),
    st.dictionaries(st.sampled_from(["a/3", "d/7", "b.c/31"]), st.integers(0, 2**63 - 1)),
)
def test_a_short_text_has_every_offset(topics: dict[str, list[int]], other_ends: dict[str, int]) -> None:
    ends = {f"{topic}/{number}": end for topic, offsets in topics.items() for number, end in enumerate(offsets)} | other_ends
    position = replace(position_at(ends), replay=True, forget=(2, 5))
    assert Position.read(position.short_text()) == position


@pytest.mark.parametrize("text", ['{"trades":"gA=="}', '{"trades":"?"}'])
def test_a_short_text_that_is_cut_off_is_unreadable(text: str) -> None:
    whole = position_at({}).text()
    with pytest.raises(RefusedError, match="cannot be read as a position"):
        Position.read(whole.replace('"ends":{}', f'"ends":{text}'))


def test_the_attempts_that_work_on_a_table_are_known_while_they_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    with attempts.attempt() as name:
        attempts.works_on(name, "one")
        attempts.works_on(name, "one")
        assert (attempts.of("one"), attempts.of("other")) == ([name], [])
        assert not attempts.is_dead(name)
    assert attempts.of("one") == [name] and attempts.is_dead(name), "what it has left is still to be swept"
    attempts.forget(name)
    assert attempts.of("one") == []
