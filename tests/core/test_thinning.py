"""The choice of snapshots to keep, by their times."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from hypothesis import given, strategies as st

from framework.core.iceberg.metadata import Metadata
from framework.core.maintain.thinning import expirable, kept
from framework.plan import Maintain, Thin
from framework.systems.catalogs._local_files import LocalFiles

MOMENT = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def policy(**changed: int) -> Maintain:
    thin = Thin(all_for=3600, then_every=60, for_=86400, then_every_hour=True)
    settings = {"keep_snapshots_for": 7 * 86400, "keep_at_least": 20, **changed}
    return Maintain(compact_to=1, compact_every=1, orphans_after=1, thin=thin, **settings)


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


def test_what_was_thinned_out_leaves_a_gap_and_no_end() -> None:
    """Main is followed across expired snapshots, so the next maintenance keeps the same. Other branches do not count."""
    count, seconds = 3000, 30
    began = MOMENT - timedelta(seconds=seconds * count)

    def snapshot(number: int, parent: int | None, id_: int | None = None) -> dict[str, object]:
        moment = int((began + timedelta(seconds=seconds * number)).timestamp() * 1000)
        summary = {"operation": "append", "total-records": "1"}
        fields = {"snapshot-id": id_ or number, "sequence-number": number, "timestamp-ms": moment, "summary": summary}
        return fields if parent is None else {**fields, "parent-snapshot-id": parent}

    snapshots = [snapshot(number, number - 1 if number > 1 else None) for number in range(1, count + 1)]
    snapshots += [snapshot(100, 99, 10_100), snapshot(101, 10_100, 10_101)]
    refs = {"main": {"snapshot-id": count, "type": "branch"}, "mine": {"snapshot-id": 10_101, "type": "branch"}}
    document = {"table-uuid": "u", "properties": {}, "current-snapshot-id": count, "refs": refs, "snapshots": snapshots}
    sizes = []
    for _ in range(3):
        table = Metadata("", document, LocalFiles("file:///"))
        expired = set(expirable(table, policy(), MOMENT))
        document["snapshots"] = [entry for entry in document["snapshots"] if entry["snapshot-id"] not in expired]  # type: ignore[attr-defined]
        sizes.append(len(document["snapshots"]))  # type: ignore[arg-type]
    assert sizes[0] == sizes[1] == sizes[2]
    assert sizes[0] > 1400


def test_a_plan_knows_about_how_many_snapshots_are_kept() -> None:
    assert policy().most_snapshots(1) == 3600 + 1440 + (7 * 86400 - 3600 - 86400) // 3600
    assert replace(policy(), keep_snapshots_for=3600).most_snapshots(60) == 60
