"""The reasons why older snapshots with a person stay in a table: readers, followers, and tags and branches of others.

Readers and followers are waited for; pins of others go, and are named. Of the snapshots stay: main's since the last commit of `forget`,
and the newest one of each state.
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
from framework.core.iceberg import metadata, published, removal
from framework.core.iceberg.commit import AGAIN, again
from framework.core.iceberg.lake import Lake
from framework.core.iceberg.metadata import Metadata
from framework.core.maintain import expire, readers
from framework.core.rules import attempts, protocol
from framework.operations.forget.expiring import Deleted, Expiring
from framework.plan import FOLLOWED, Pipeline

_STAGED = re.compile(r"(.+)_([0-9a-f]{32})")


def pins(table: Metadata, pipeline: Pipeline, ended: int | None = None) -> tuple[str, ...]:
    """Tags and branches of others, and of followers and attempts that are no more; without those that begin at a commit of ours."""
    return tuple(name for name in sorted(table.refs) if not _stays(table, pipeline, name, ended))


def _stays(table: Metadata, pipeline: Pipeline, name: str, ended: int | None) -> bool:
    staged = _STAGED.fullmatch(name) if table.is_branch(name) else None
    if name in ("main", protocol.TAG, protocol.EMPTY) or name in table.states:
        return True
    if staged and (protocol.is_state(staged[1]) or f"{staged[1]}_" == protocol.BRANCH):
        return not attempts.is_dead(staged[2])
    if name.startswith(FOLLOWED):
        return any(name in (each.tag, each.showing) for each in pipeline.also)
    line = (each["snapshot-id"] for each in table.ancestors(table.refs[name]))
    return ended is not None and ended in line


def _diverged(table: Metadata, pipeline: Pipeline, ended: int | None) -> Iterator[str]:
    """Branches of others that began at a commit of ours since the end, and have commits of their own."""
    ours = pins(table, pipeline, ended)
    yield from (name for name in table.diverged if name not in ours and table.is_branch(name))


def refuse_readers_behind(pipelines: tuple[Pipeline, ...], pipeline: Pipeline, ended: int) -> None:
    """Refuses while a pipeline has not read up to that snapshot, since it would lose its place."""
    table = _read(pipeline)
    until = _number(table, ended)
    behind = [each.name for each in pipelines if _is_behind(each, pipeline, table, until)]
    if behind:
        hint = f"`sluice run {' '.join(behind)}`, then {AGAIN}"
        message = f"{', '.join(behind)} must read {pipeline.table.identifier} up to now before its older snapshots go"
        raise RefusedError("reader-behind", message, hint)


def _is_behind(reader: Pipeline, pipeline: Pipeline, table: Metadata, until: int) -> bool:
    if reader.source is None or reader.source.identifier != pipeline.table.identifier or reader.source.reads == "all":
        return False
    reached = readers.reached(table, pipeline, reader.table.catalog, reader.table.identifier)
    return reached is not None and reached < until


def catch_up(context: Context, lake: Lake, pipeline: Pipeline, ended: int) -> Iterator[str]:
    """Lets followers show what changed, and moves their tags. Refused while another catalog lists the table that the spec no longer
    names: it would go on with files that are gone."""
    left = ", ".join(each.name for each in published.left(pipeline, _read(pipeline).refs))
    if left:
        message = f"{pipeline.table.identifier} is still listed as {left}, which the spec no longer names"
        raise RefusedError("still-listed", message, f"`sluice unpublish {pipeline.name}`, then {AGAIN}")
    for followed in follow.after_run(context, pipeline):
        if followed.trouble is not None:
            hint = f"{followed.trouble.hint or 'correct that'}; then {AGAIN}"
            raise SluiceError(followed.trouble.code, followed.trouble.message, hint)
        yield followed.line
    table = _read(pipeline)
    for follower in pipeline.also:
        tagged, main = table.refs.get(follower.tag), table.refs["main"]
        behind = tagged is not None and ended not in (each["snapshot-id"] for each in table.ancestors(tagged))
        if waiting.step(table, follower) is not None or (behind and follower.by_files):
            message = f"the {follower.title} of {pipeline.table.identifier} has not shown all commits yet"
            raise SluiceError("follower-behind", message, "give the same command again when no run of the pipeline is under way")
        if behind:
            again(pipeline.table.identifier, partial(_move_tag, lake, pipeline, follower.tag, tagged, main))


def _move_tag(lake: Lake, pipeline: Pipeline, tag: str, tagged: int | None, main: int) -> None:
    """From a snapshot that was shown to the newest one, which has the same rows."""
    lake.tag(lake.load(pipeline.table.identifier), {tag: main}, {tag: tagged})


@dataclass(frozen=True)
class Expired:
    """The deletions of one table."""

    pins: tuple[str, ...]
    files: Deleted


def expire_older(
    lake: Lake,
    pipeline: Pipeline,
    name: str,
    ended: int | None,
    attempt: str,
    holds: Callable[[str], bool] = lambda _branch: False,
) -> Expired:
    """Removes pins, and branches of others of which `holds` says that they have the person; expires the snapshots before the end, or all
    but the newest. The branch of that attempt stays: it is published."""
    catalog = pipeline.table.catalog
    table = metadata.read(catalog, name)
    if table is None:
        return Expired((), Deleted(0, 0))
    pinning = (*pins(table, pipeline, ended), *filter(holds, _diverged(table, pipeline, ended)))
    going = tuple(each for each in pinning if each != protocol.BRANCH + attempt)
    again(name, lambda: removal.unpin(lake.load(name), going))
    wanted = {snapshot for ref, snapshot in table.refs.items() if ref not in going} | _since(table, ended)
    expiring = Expiring(lake, pipeline, name, table.uuid)
    files = expiring.remember()
    again(name, lambda: expire.expire(lake, catalog, name, [each for each in table.snapshots if each not in wanted]))
    _refuse_left(pipeline, name, table.snapshots.keys() - wanted)
    return Expired(going, expiring.delete(files))


def _since(table: Metadata, ended: int | None) -> set[int]:
    """The snapshots of main and of states that came after the end, to which the table can be rolled back."""
    if ended is None:
        return set()
    main = [each["snapshot-id"] for each in table.ancestors()]
    if ended not in main:
        message = "the table was rolled back meanwhile"
        raise SluiceError("table-busy", message, AGAIN)
    states = [table.ancestors(table.refs[name]) for name in table.states]
    until = _number(table, ended)
    later = {each["snapshot-id"] for line in states for each in line if _number(table, each["snapshot-id"]) > until}
    return later | set(main[: main.index(ended) + 1])


def _number(table: Metadata, snapshot: int) -> int:
    return int(table.snapshots[snapshot].get("sequence-number") or 0)


def _refuse_left(pipeline: Pipeline, name: str, unwanted: Set[int]) -> None:
    """Nothing is said to be gone that is there."""
    table = metadata.read(pipeline.table.catalog, name)
    if table is not None and (left := table.snapshots.keys() & unwanted):
        kept = ", ".join(ref for ref, snapshot in table.refs.items() if snapshot in left) or "another commit"
        message = f"{amounts.counted(len(left), 'older snapshot')} of {name} could not go, because of {kept}"
        raise SluiceError("table-busy", message, AGAIN)


def _read(pipeline: Pipeline) -> Metadata:
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    return table
