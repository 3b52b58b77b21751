"""What keeps older snapshots of a table, in which a person is still there: readers, followers, and tags and branches of others.

Readers and followers are waited for; pins of others go, and are named. Of the snapshots stay: main's since the last commit of `forget`,
and the newest one of each state.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from functools import partial
from pathlib import Path

from framework import amounts
from framework.engine.context import Context
from framework.engine.follow import follow, waiting
from framework.engine.forget.rows import again
from framework.engine.iceberg import deletable_files, metadata
from framework.engine.iceberg.lake import Lake
from framework.engine.iceberg.metadata import Metadata
from framework.engine.maintain import expire, orphans, others
from framework.engine.rules import attempts, protocol
from framework.engine.rules.protocol import Position
from framework.errors import RefusedError, SluiceError
from framework.home import home, private, put
from framework.model import FOLLOWED, Pipeline

_FOLDER = "forget"
_STAGED = re.compile(r"(.+)_([0-9a-f]{32})")


def pins(table: Metadata, pipeline: Pipeline, ended: int | None = None) -> tuple[str, ...]:
    """Tags and branches of others, and of followers and attempts that are no more; without those that begin at a commit of ours."""
    return tuple(name for name in sorted(table.refs) if not _stays(table, pipeline, name, ended))


def _stays(table: Metadata, pipeline: Pipeline, name: str, ended: int | None) -> bool:
    staged = _STAGED.fullmatch(name)
    if name in ("main", protocol.TAG, protocol.EMPTY) or protocol.is_state(name):
        return True
    if staged and (protocol.is_state(staged[1]) or f"{staged[1]}_" == protocol.BRANCH):
        return not attempts.is_dead(staged[2])
    if name.startswith(FOLLOWED):
        return any(name in (each.tag, each.showing) for each in pipeline.also)
    line = (each["snapshot-id"] for each in table.ancestors(table.refs[name]))
    return ended is not None and ended in line


def refuse_readers_behind(pipelines: tuple[Pipeline, ...], pipeline: Pipeline, ended: int) -> None:
    """Refuses while a pipeline has not read up to that snapshot, since it would lose its place."""
    table = _read(pipeline)
    until = int(table.snapshots[ended].get("sequence-number") or 0)
    behind = [each.name for each in pipelines if _is_behind(each, pipeline, table, until)]
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


def catch_up(context: Context, lake: Lake, pipeline: Pipeline, ended: int) -> Iterator[str]:
    """Lets followers show what changed, and moves their tags."""
    for followed in follow.after_run(context, pipeline):
        if followed.trouble is not None:
            hint = f"{followed.trouble.hint or 'correct that'}; then give the same command again: it goes on from here"
            raise SluiceError(followed.trouble.code, followed.trouble.message, hint)
        yield followed.line
    table = _read(pipeline)
    for follower in pipeline.also:
        shown, main = table.refs.get(follower.tag), table.refs["main"]
        behind = shown is not None and ended not in (each["snapshot-id"] for each in table.ancestors(shown))
        if waiting.step(table, follower) is not None or (behind and follower.by_files):
            message = f"the {follower.title} of {pipeline.table.identifier} has not shown all commits yet"
            raise SluiceError("follower-behind", message, "give the same command again when no run of the pipeline is under way")
        if behind:
            again(pipeline.table.identifier, partial(_move_tag, lake, pipeline, follower.tag, shown, main))


def _move_tag(lake: Lake, pipeline: Pipeline, tag: str, shown: int | None, main: int) -> None:
    """From a snapshot that was shown to the newest one, which has the same rows."""
    lake.tag(lake.load(pipeline.table.identifier), {tag: main}, {tag: shown})


def expire_older(lake: Lake, pipeline: Pipeline, name: str, ended: int | None) -> tuple[tuple[str, ...], int, int]:
    """Removes pins, and expires the snapshots before the end, or all but the newest; which pins and how many files went, and how many
    of the expired files stay because others name them."""
    catalog = pipeline.table.catalog
    table = metadata.read(catalog, name)
    if table is None:
        return (), 0, 0
    going = pins(table, pipeline, ended)
    again(name, lambda: lake.unpin(lake.load(name), going))
    heads = {snapshot for ref, snapshot in table.refs.items() if ref not in going}
    main = [each["snapshot-id"] for each in table.ancestors()]
    since = set(main[: main.index(ended) + 1]) if ended is not None else set()
    expiring = _Expiring(lake, pipeline, name, table.uuid)
    files = expiring.remember()
    again(name, lambda: expire.expire(lake, catalog, name, [each for each in table.snapshots if each not in heads | since]))
    _refuse_left(pipeline, name, table.snapshots.keys() - heads - since)
    gone, stay = expiring.delete(files)
    return going, gone, stay


def _refuse_left(pipeline: Pipeline, name: str, unwanted: Set[int]) -> None:
    """Nothing is said to be gone that is there."""
    table = metadata.read(pipeline.table.catalog, name)
    if table is not None and (left := table.snapshots.keys() & unwanted):
        kept = ", ".join(ref for ref, snapshot in table.refs.items() if snapshot in left) or "another commit"
        message = f"{amounts.counted(len(left), 'older snapshot')} of {name} could not go, because of {kept}"
        raise SluiceError("table-busy", message, "give the same command again: it goes on from here")


class _Expiring:
    """Files of expired snapshots, which are written down before these go: a process that dies in between leaves none behind."""

    def __init__(self, lake: Lake, pipeline: Pipeline, name: str, uuid: str) -> None:
        self.lake, self.pipeline, self.name = lake, pipeline, name
        self.note = home() / _FOLDER / f"{uuid}.json"

    def remember(self) -> set[str]:
        """All files of the table now, and those that an earlier process wrote down."""
        private(_FOLDER)
        files = self._named() | set(_noted(self.note))
        put(self.note, json.dumps(sorted(files)))
        return files

    def delete(self, files: set[str]) -> tuple[int, int]:
        table = metadata.read(self.pipeline.table.catalog, self.name)
        if table is None:
            return 0, 0
        expired = files - self._named()
        there = {each for each in expired if table.files.exists(each)}
        by_others = others.named(table, others.beside(table)) if there else frozenset()
        going = there - by_others if by_others is not None else set()
        table_ = self.lake.load(self.name)
        assert table_ is not None
        its_files, folders = self.lake.own_files(table_)
        deletable_files.delete(its_files, going, folders)
        stay = sum(table.files.exists(each) for each in there)
        self.note.unlink(missing_ok=True)
        return len(expired) - stay, stay

    def _named(self) -> set[str]:
        table = metadata.read(self.pipeline.table.catalog, self.name)
        assert table is not None
        return {table.files.path(each) for each in orphans.named(self.lake, self.pipeline, self.name)}


def _noted(note: Path) -> list[str]:
    try:
        return list(json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return []


def _read(pipeline: Pipeline) -> Metadata:
    table = metadata.read(pipeline.table.catalog, pipeline.table.identifier)
    assert table is not None
    return table
