"""The choice of snapshots to keep, by their times."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, strategies as st

from framework.core.iceberg.main_line import main_line
from framework.core.iceberg.metadata import Metadata
from framework.core.maintain import many_commits
from framework.core.maintain.thinning import NO_NEEDS, Needs, expirable, kept
from framework.core.rules import protocol
from framework.plan import Maintain, Thin
from tests.support.metadata_files import snapshot, table_of

MOMENT = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def policy(**changed: int) -> Maintain:
    thin = Thin(all_for=3600, then_every=60, for_=86400, then_every_hour=True)
    settings = {"keep_snapshots_for": 7 * 86400, "keep_at_least": 20, **changed}
    return Maintain(compact_to=1, compact_every=1, orphans_after=1, thin=thin, adapts=True, **settings)


def ago(*seconds: float) -> list[datetime]:
    return [MOMENT - timedelta(seconds=second) for second in sorted(seconds)]


def test_a_week_of_batches_each_ten_seconds() -> None:
    times = ago(*(10 * number for number in range(8 * 8640)))
    keep = kept(times, policy(), MOMENT)
    ages = [(MOMENT - times[index]).total_seconds() for index in keep]
    assert sum(age <= 3600 for age in ages) == 361
    assert 1439 <= sum(3600 < age <= 90000 for age in ages) <= 1441
    assert 142 <= sum(age > 90000 for age in ages) <= 144
    assert max(ages) <= 7 * 86400


def test_so_many_are_kept_however_old() -> None:
    assert kept(ago(*(86400 * day for day in range(10, 50))), policy(), MOMENT) == frozenset(range(20))


@given(st.lists(st.integers(0, 9 * 86400), max_size=60), st.integers(1, 5), st.integers(0, 3 * 86400))
def test_what_is_kept_later_was_kept_before(seconds: list[int], min_count: int, later: int) -> None:
    """Thinning twice keeps what thinning once keeps: nothing is lost because maintenance ran in between."""
    times, rules = ago(*seconds), policy(keep_at_least=min_count)
    first_times = [times[index] for index in sorted(kept(times, rules, MOMENT))]
    later_moment = MOMENT + timedelta(seconds=later)
    after_both = {first_times[index] for index in kept(first_times, rules, later_moment)}
    at_once = {times[index] for index in kept(times, rules, later_moment)}
    assert at_once <= after_both | {moment for moment in at_once if times.count(moment) > 1}


def test_a_commit_each_second_leaves_less_than_a_hundred_snapshots() -> None:
    """Whatever the age, one is about a quarter younger or older, also if maintenance ran in between."""
    kept_times: list[datetime] = []
    begun = MOMENT - timedelta(days=8)
    for minute in range(0, 8 * 1440, 7):
        moment = begun + timedelta(minutes=minute)
        new_times = [moment - timedelta(seconds=second) for second in range(7 * 60)]
        times = [*new_times, *kept_times]
        kept_times = [times[index] for index in sorted(many_commits.kept(times, policy(), moment))]
        assert len(kept_times) <= 100
    ages = [(moment - time).total_seconds() for time in kept_times]
    for age in (30, 300, 3_600, 20_000, 86_400, 500_000):
        assert min(abs(age - kept_age) for kept_age in ages) <= age / 4 + 1
    assert 6 * 86_400 < max(ages) <= 7 * 86_400


@given(st.lists(st.integers(0, 9 * 86400), max_size=60), st.integers(1, 5), st.integers(0, 3 * 86400))
def test_of_many_commits_what_is_kept_later_was_kept_before(seconds: list[int], min_count: int, later: int) -> None:
    times, rules = ago(*set(seconds)), policy(keep_at_least=min_count)
    first_times = [times[index] for index in sorted(many_commits.kept(times, rules, MOMENT))]
    later_moment = MOMENT + timedelta(seconds=later)
    after_both = {first_times[index] for index in many_commits.kept(first_times, rules, later_moment)}
    assert {times[index] for index in many_commits.kept(times, rules, later_moment)} <= after_both


def of_many(table: Metadata, changed: Maintain | None = None, needs: Needs = NO_NEEDS) -> list[int]:
    """The numbers of the snapshots that are kept."""
    expired = expirable(table, changed or policy(), MOMENT, needs).ids
    return sorted(table.snapshots.keys() - set(expired))


def test_a_table_with_a_commit_each_second_keeps_less_than_a_hundred() -> None:
    table = table_of([snapshot(number, MOMENT - timedelta(seconds=5000 - number)) for number in range(1, 5001)])
    kept_ids = of_many(table)
    assert 50 <= len(kept_ids) <= 100
    assert set(range(4981, 5001)) < set(kept_ids)
    assert len(of_many(table, replace(policy(), adapts=False))) >= 3600


def test_a_busy_hour_thins_out_itself_alone() -> None:
    """Each commit of the days before stays, one of each hour."""
    times = [MOMENT - timedelta(hours=hour) for hour in range(150, 2, -1)]
    times += [MOMENT - timedelta(seconds=second) for second in range(3600, 0, -1)]
    table = table_of([snapshot(number, time) for number, time in enumerate(times, 1)])
    kept_ids = of_many(table)
    assert set(range(1, 149)) <= set(kept_ids) and len(kept_ids) < 148 + 100
    later = MOMENT + timedelta(days=2)
    expired_later = expirable(
        table_of([entry for id_, entry in table.snapshots.items() if id_ in kept_ids]), policy(), later, Needs()
    )
    left_of_hour = set(kept_ids) - set(expired_later.ids) - set(range(1, 149))
    assert 20 <= len(left_of_hour) <= 25


def test_the_last_batch_of_each_run_stays() -> None:
    """Three batches within ten seconds are no stream: the last one stands for the hour until the next run."""
    times = [MOMENT - timedelta(hours=hour, seconds=-5 * number) for hour in range(144, 1, -1) for number in range(3)]
    table = table_of([snapshot(number, time) for number, time in enumerate(times, 1)])
    assert set(of_many(table, replace(policy(), adapts=False))) <= set(of_many(table))


@pytest.mark.parametrize(
    ("needs", "count"), [(Needs(unread=4000), 1000), (Needs(pinned=True), 600), (Needs(unread=-1), 3600), (Needs(), 20)]
)
def test_what_others_still_have_to_read_stays(needs: Needs, count: int) -> None:
    table = table_of([snapshot(number, MOMENT - timedelta(seconds=5000 - number)) for number in range(1, 5001)])
    assert set(range(5001 - count, 5001)) <= set(of_many(table, needs=needs))


def test_commits_of_others_and_the_first_one_stay_and_can_be_reached() -> None:
    snapshots = [snapshot(number, MOMENT - timedelta(seconds=3500 - number)) for number in range(1, 3501)]
    snapshots[0]["summary"][protocol.POSITION] = snapshots[0]["summary"][protocol.POSITION].replace('"a"', '"born"')
    snapshots[3001]["summary"] = {"operation": "overwrite", "engine-name": "Trino"}
    table = table_of(snapshots)
    kept_ids = of_many(table)
    assert {1, 3002, 3003} <= set(kept_ids)
    left = table_of([entry for entry in snapshots if entry["snapshot-id"] in kept_ids])
    assert {1, 3002} <= {entry["snapshot-id"] for entry in main_line(left)}


def test_what_other_programs_committed_before_a_table_was_adopted_stays_as_long_as_all_else() -> None:
    """No link leads to it once the first batch would be gone."""
    foreign = [
        {**snapshot(number, MOMENT - timedelta(hours=80 - 6 * number)), "summary": {"operation": "append"}}
        for number in range(1, 9)
    ]
    batches = [snapshot(number, MOMENT - timedelta(minutes=15 * (140 - number))) for number in range(9, 141)]
    kept_ids: list[int] = []
    for hours in range(0, 100, 5):
        moment = MOMENT + timedelta(hours=hours)
        table = table_of([*foreign, *batches])
        expired_ids = expirable(table, policy(), moment, NO_NEEDS).ids
        foreign, batches = (
            [entry for entry in entries if entry["snapshot-id"] not in expired_ids] for entries in (foreign, batches)
        )
        kept_ids = [entry["snapshot-id"] for entry in foreign]
        assert {number for number in range(1, 9) if 80 - 6 * number + hours <= 7 * 24} <= set(kept_ids)
    assert kept_ids


def test_compactions_among_many_commits_are_thinned_out_too() -> None:
    snapshots = []
    for number in range(1, 20_001):
        entry = snapshot(number, MOMENT - timedelta(seconds=20_000 - number))
        if number % 300 == 0:
            entry["summary"] = {"operation": "replace", protocol.COMPACTED: "true"}
        snapshots.append(entry)
    assert len(of_many(table_of(snapshots))) < 110


def test_what_was_thinned_out_leaves_a_gap_and_no_end() -> None:
    """Main is followed across expired snapshots, so the next maintenance keeps the same. Other branches do not count."""
    count, seconds = 3000, 30

    def at(number: int, parent: int | None = None, id_: int | None = None) -> dict[str, Any]:
        return snapshot(number, MOMENT - timedelta(seconds=seconds * (count - number)), parent, id_)

    snapshots = [*map(at, range(1, count + 1))]
    snapshots += [{**entry, "summary": {}} for entry in (at(100, 99, 10_100), at(101, 10_100, 10_101))]
    refs = {"mine": {"snapshot-id": 10_101, "type": "branch"}}
    sizes = []
    for _ in range(3):
        kept_ids = of_many(table_of(snapshots, refs=refs, main=count))
        snapshots = [entry for entry in snapshots if entry["snapshot-id"] in kept_ids]
        sizes.append(len(snapshots))
    assert sizes[0] == sizes[1] == sizes[2]
    assert 1400 < sizes[0] < 1700


def test_a_plan_knows_about_how_many_snapshots_are_kept() -> None:
    assert policy().most_snapshots(1) == 100
    assert replace(policy(), adapts=False).most_snapshots(1) == 3600 + 1440 + (7 * 86400 - 3600 - 86400) // 3600
    assert replace(policy(), keep_snapshots_for=3600).most_snapshots(60) == 60
