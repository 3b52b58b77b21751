"""Expires older snapshots with a person, which readers, followers, and tags and branches of others keep.

Readers and followers must catch up first; pins of others are removed, and named. These snapshots stay: main's since the last commit of
`forget`, and the newest one of each state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from functools import partial

from framework.base import amounts
from framework.base.errors import RefusedError, SluiceError
from framework.core.context.context import Context
from framework.core.follow import follow, waiting
from framework.core.iceberg import metadata, published
from framework.core.iceberg.commit import RETRY_HINT, again
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.main_line import main_line, number
from framework.core.iceberg.metadata import Metadata
from framework.core.iceberg.updates import without_own
from framework.core.maintain import expire, readers
from framework.core.rules import attempts, protocol
from framework.operations.forget.expiring import Deleted, Expiring
from framework.plan import FOLLOWED, Pipeline

_STAGED = re.compile(r"(.+)_([0-9a-f]{32})")


def pins(table: Metadata, pipeline: Pipeline, end_snapshot: int | None = None) -> tuple[str, ...]:
    """Tags and branches of others, and of followers and attempts that no longer exist, unless they contain `end_snapshot`."""
    return tuple(name for name in sorted(table.refs) if not _stays(table, pipeline, name, end_snapshot))


def _stays(table: Metadata, pipeline: Pipeline, name: str, end_snapshot: int | None) -> bool:
    staged_match = _STAGED.fullmatch(name) if table.is_branch(name) else None
    if name in ("main", protocol.TAG, protocol.EMPTY) or name in table.states:
        return True
    if staged_match and (protocol.is_state(staged_match[1]) or f"{staged_match[1]}_" == protocol.BRANCH):
        return not attempts.is_dead(staged_match[2])
    if name.startswith(FOLLOWED):
        return any(name in (follower.tag, follower.showing) for follower in pipeline.also)
    return end_snapshot is not None and _contains(table, table.refs[name], end_snapshot)


def _contains(table: Metadata, snapshot: int, end_snapshot: int) -> bool:
    """Whether a snapshot is one of main's since `end_snapshot`, or descends from that."""
    main_ids = [main_snapshot["snapshot-id"] for main_snapshot in main_line(table)]
    if snapshot in main_ids and end_snapshot in main_ids:
        return main_ids.index(snapshot) <= main_ids.index(end_snapshot)
    return any(ancestor["snapshot-id"] == end_snapshot for ancestor in table.ancestors(snapshot))


def _diverged(table: Metadata, pipeline: Pipeline, end_snapshot: int | None) -> Iterator[str]:
    """Branches of others that contain `end_snapshot`, and have commits of their own."""
    removed_pins = pins(table, pipeline, end_snapshot)
    yield from (name for name in table.diverged if name not in removed_pins and table.is_branch(name))


def refuse_readers_behind(pipelines: tuple[Pipeline, ...], pipeline: Pipeline, end_snapshot: int) -> None:
    """Refuses while a pipeline that reads the table has not read up to `end_snapshot`, since it would lose its place."""
    table = _read(pipeline)
    end_number = _number(table, end_snapshot)
    late_readers = [reader.name for reader in pipelines if _is_behind(reader, pipeline, table, end_number)]
    if late_readers:
        hint = f"`sluice run {' '.join(late_readers)}`, then {RETRY_HINT}"
        message = f"{', '.join(late_readers)} must read {pipeline.table.identifier} up to now before its older snapshots go"
        raise RefusedError("reader-behind", message, hint)


def _is_behind(reader: Pipeline, pipeline: Pipeline, table: Metadata, end_number: int) -> bool:
    if reader.computes_all or pipeline.name not in [table.pipeline for table in reader.read_tables]:
        return False
    reached_number = readers.reached(table, pipeline, reader.table.catalog, reader.table.identifier)
    return reached_number is not None and reached_number < end_number


def catch_up(context: Context, lake: TableStore, pipeline: Pipeline, end_snapshot: int) -> Iterator[str]:
    """Brings followers up to date, and moves their tags. Refuses while a catalog lists the table that the spec no longer names, since it
    would name files that are gone."""
    listings = ", ".join(listing.name for listing in published.former_followers(pipeline, _read(pipeline).refs))
    if listings:
        message = f"{pipeline.table.identifier} is still listed as {listings}, which the spec no longer names"
        raise RefusedError("still-listed", message, f"`sluice unpublish {pipeline.name}`, then {RETRY_HINT}")
    for outcome in follow.after_run(context, pipeline):
        if outcome.trouble is not None:
            hint = f"{outcome.trouble.hint or 'correct that'}; then {RETRY_HINT}"
            raise SluiceError(outcome.trouble.code, outcome.trouble.message, hint)
        yield outcome.line
    table = _read(pipeline)
    for follower in pipeline.also:
        tagged_snapshot, main_snapshot = table.refs.get(follower.tag), table.refs["main"]
        is_behind = tagged_snapshot is not None and not _contains(table, tagged_snapshot, end_snapshot)
        if waiting.step(table, follower) is not None or (is_behind and follower.by_files):
            message = f"the {follower.title} of {pipeline.table.identifier} has not shown all commits yet"
            raise SluiceError("follower-behind", message, "give the same command again when no run of the pipeline is under way")
        if is_behind:
            again(pipeline.table.identifier, partial(_move_tag, lake, pipeline, follower.tag, tagged_snapshot, main_snapshot))


def _move_tag(lake: TableStore, pipeline: Pipeline, tag: str, tagged_snapshot: int | None, main_snapshot: int) -> None:
    """Moves a follower's tag from the snapshot that it has shown to main's newest one, which has the same rows."""
    lake.tag(lake.load(pipeline.table.identifier), {tag: main_snapshot}, {tag: tagged_snapshot})


@dataclass(frozen=True)
class Expired:
    """The deletions of one table."""

    pins: tuple[str, ...]
    files: Deleted


def expire_older(
    lake: TableStore,
    pipeline: Pipeline,
    name: str,
    end_snapshot: int | None,
    attempt: str,
    holds: Callable[[str], bool] = lambda _branch: False,
) -> Expired:
    """Removes pins, and branches of others for which `holds` is true; expires the snapshots before `end_snapshot`, or all but the newest.
    The branch of `attempt` stays, since it is published."""
    catalog = pipeline.table.catalog
    table = metadata.read(catalog, name)
    if table is None:
        return Expired((), Deleted(0, 0))
    pin_names = (*pins(table, pipeline, end_snapshot), *filter(holds, _diverged(table, pipeline, end_snapshot)))
    removed_pins = tuple(pin for pin in pin_names if pin != protocol.BRANCH + attempt)
    again(name, lambda: without_own(lake.load(name), removed_pins))
    kept_snapshots = {snapshot for ref, snapshot in table.refs.items() if ref not in removed_pins} | _since(table, end_snapshot)
    expiring = Expiring(lake, pipeline, name, table.uuid)
    files = expiring.remember()
    again(
        name,
        lambda: expire.expire(lake, catalog, name, [snapshot for snapshot in table.snapshots if snapshot not in kept_snapshots]),
    )
    _refuse_left(pipeline, name, table.snapshots.keys() - kept_snapshots)
    return Expired(removed_pins, expiring.delete(files))


def _since(table: Metadata, end_snapshot: int | None) -> set[int]:
    """The snapshots of main and of states since `end_snapshot`, to which the table can be rolled back."""
    if end_snapshot is None:
        return set()
    main_ids = [main_snapshot["snapshot-id"] for main_snapshot in main_line(table)]
    if end_snapshot not in main_ids:
        message = "the table was rolled back meanwhile"
        raise SluiceError("table-busy", message, RETRY_HINT)
    states = [table.ancestors(table.refs[name]) for name in table.states]
    end_number = _number(table, end_snapshot)
    later_snapshots = {
        ancestor["snapshot-id"] for line in states for ancestor in line if _number(table, ancestor["snapshot-id"]) > end_number
    }
    return later_snapshots | set(main_ids[: main_ids.index(end_snapshot) + 1])


def _number(table: Metadata, snapshot: int) -> int:
    return number(table.snapshots[snapshot])


def _refuse_left(pipeline: Pipeline, name: str, expired_snapshots: Set[int]) -> None:
    """Refuses if the table still has one of these snapshots, so that none is reported as gone."""
    table = metadata.read(pipeline.table.catalog, name)
    if table is not None and (remaining_snapshots := table.snapshots.keys() & expired_snapshots):
        references = ", ".join(ref for ref, snapshot in table.refs.items() if snapshot in remaining_snapshots) or "another commit"
        message = f"{amounts.counted(len(remaining_snapshots), 'older snapshot')} of {name} could not go, because of {references}"
        raise SluiceError("table-busy", message, RETRY_HINT)


def _read(pipeline: Pipeline) -> Metadata:
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    return table
