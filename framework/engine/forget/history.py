"""What keeps older snapshots of a table, in which a person is still there: readers, followers, and tags and branches of others.

Readers and followers are waited for; pins of others go, and are named.
"""

from __future__ import annotations

from collections.abc import Iterator

from framework.engine.context import Context
from framework.engine.follow import follow, waiting
from framework.engine.iceberg import metadata
from framework.engine.iceberg.lake import Lake
from framework.engine.iceberg.metadata import Metadata
from framework.engine.maintain import expire
from framework.engine.rules import protocol
from framework.engine.rules.protocol import Position
from framework.errors import RefusedError, SluiceError
from framework.model import FOLLOWED, Pipeline


def pins(table: Metadata, until: int | None = None) -> tuple[str, ...]:
    """Tags and branches of others, on snapshots before that commit."""
    return tuple(
        name for name in sorted(table.refs) if not _is_ours(name) and (until is None or _number(table, table.refs[name]) < until)
    )


def _is_ours(name: str) -> bool:
    kept = name in ("main", protocol.TAG, protocol.EMPTY) or protocol.is_state(name)
    return kept or name.startswith((protocol.BRANCH, FOLLOWED))


def _number(table: Metadata, snapshot: int) -> int:
    return int(table.snapshots[snapshot].get("sequence-number") or 0)


def refuse_readers_behind(plan_pipelines: tuple[Pipeline, ...], pipeline: Pipeline, until: int) -> None:
    """Refuses while a pipeline has not read up to that commit, since it would lose its place."""
    table = _read(pipeline)
    behind = [each.name for each in plan_pipelines if _is_behind(each, pipeline, table, until)]
    if behind:
        hint = f"`sluice run {' '.join(behind)}`, then give the same command again: it goes on from here"
        message = f"{', '.join(behind)} must read {pipeline.table.identifier} up to now before its older snapshots go"
        raise RefusedError("reader-behind", message, hint)


def _is_behind(reader: Pipeline, pipeline: Pipeline, table: Metadata, until: int) -> bool:
    if reader.source is None or reader.source.identifier != pipeline.table.identifier or reader.source.reads == "all":
        return False
    read = metadata.read(reader.table.catalog, reader.table.identifier)
    text = read.properties.get(protocol.POSITION) if read else None
    position = Position.read(text) if text else None
    if position is None or position.topics.get(pipeline.table.identifier) != table.uuid or not position.ends:
        return False
    return next(iter(position.ends.values())) < until


def catch_up(context: Context, lake: Lake, pipeline: Pipeline, until: int) -> Iterator[str]:
    """Lets followers show what changed, and moves their tags."""
    for followed in follow.after_run(context, pipeline):
        if followed.trouble is not None:
            hint = f"{followed.trouble.hint or 'correct that'}; then give the same command again: it goes on from here"
            raise SluiceError(followed.trouble.code, followed.trouble.message, hint)
        yield followed.line
    table = _read(pipeline)
    for follower in pipeline.also:
        if waiting.step(table, follower) is not None:
            message = f"the {follower.title} of {pipeline.table.identifier} has not shown all commits yet"
            raise SluiceError("follower-behind", message, "give the same command again when no run of the pipeline is under way")
        shown = table.refs.get(follower.tag)
        if shown is not None and _number(table, shown) < until:
            main = int(table.main["snapshot-id"]) if table.main else shown
            lake.tag(lake.load(pipeline.table.identifier), {follower.tag: main}, {follower.tag: shown}, (follower.before,))


def forget(lake: Lake, pipeline: Pipeline, name: str, until: int | None) -> tuple[tuple[str, ...], int]:
    """Removes pins, and expires the snapshots before that commit, or all but the newest; which pins and how many files went."""
    catalog = pipeline.table.catalog
    table = metadata.read(catalog, name)
    if table is None:
        return (), 0
    going = pins(table, until)
    lake.unpin(lake.load(name), going)
    heads = {snapshot for ref, snapshot in table.refs.items() if ref not in going}
    old = [each for each in table.snapshots if each not in heads and (until is None or _number(table, each) < until)]
    _, files = expire.expire(lake, catalog, name, old)
    return going, files


def _read(pipeline: Pipeline) -> Metadata:
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    return table
