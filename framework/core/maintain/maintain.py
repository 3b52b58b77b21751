"""Does one pipeline's maintenance, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from framework.base import amounts
from framework.core.context.context import Context
from framework.core.iceberg import deletable_files, published
from framework.core.iceberg.jvm_state import names, state
from framework.core.iceberg.lake import TableStore
from framework.core.maintain import compact, delete_later, expire, orphans
from framework.core.maintain.due import Due, due
from framework.core.publish import side_tables
from framework.core.publish.sweep import sweep
from framework.core.spark import defects
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from framework.plan import Pipeline
from framework.plan.follower import is_follower_tag
from framework.systems import secret_uses

KILL_POINTS = (
    "rolled_forward",  # bad rows of the last batch are published
    "compacted",  # the larger files are committed
    "settled",  # the position belongs to that commit
    "expired",  # snapshots and their files are gone
)


_LEFT = "the rest is left to the next time"
AFTER_RUN = 2 << 30  # bytes, some half a minute on one core


@dataclass(frozen=True)
class MaintenanceDone:
    """The maintenance that was done on one table. `is_whole`: nothing was left to the next time."""

    identifier: str
    says: tuple[str, ...]
    is_whole: bool = True

    @property
    def line(self) -> str:
        return f"{self.identifier}: {'; '.join(self.says)}"


def is_due(pipeline: Pipeline, moment: datetime) -> bool:
    """Whether a run is followed by maintenance."""
    return any(duty.behind_a_run for duty in due(pipeline, moment))


def after_run(context: Context, pipeline: Pipeline, byte_limit: int = AFTER_RUN) -> Iterator[MaintenanceDone]:
    """Maintains the tables after the batches of a run, which it neither fails nor delays for long."""
    try:
        if is_due(pipeline, context.clock()):
            yield from maintain(context, pipeline, byte_limit)
    except Exception as error:
        says = f"maintenance: {defects.as_sluice_error(pipeline.name, error)}"
        yield MaintenanceDone(pipeline.table.identifier, (says,), is_whole=False)


def maintain(
    context: Context, pipeline: Pipeline, byte_limit: int | None = None, may_leave: bool = False
) -> Iterator[MaintenanceDone]:
    """Does the maintenance that each of the pipeline's tables is due for, and compacts at most about `byte_limit` bytes; without
    it, all, as a person asked for. If another commit comes first, the rest is left to the next time. With `may_leave`,
    a login that may not delete leaves files."""
    by_person = byte_limit is None
    if not due(pipeline, context.clock(), by_person):
        return
    if by_person and not may_leave:
        deletable_files.require_right(pipeline)
    with secret_uses.at_work():
        lake = context.lake(pipeline)
        table = lake.load(pipeline.table.identifier)
        current = state(table)
        if current.position is not None:
            side_tables.roll_forward(lake, pipeline, current.uuid, current.position)
        sweep(lake, pipeline)
        _forget_followers(lake, pipeline, table)
        context.reached("rolled_forward")
        for identifier in [duty.identifier for duty in due(pipeline, context.clock(), by_person)]:
            says = tuple(_steps(context, lake, pipeline, identifier, byte_limit))
            yield MaintenanceDone(identifier, says, is_whole=not says or not says[-1].startswith(_LEFT))


def _forget_followers(lake: TableStore, pipeline: Pipeline, table: Any) -> None:
    """Removes the tags of followers that the spec no longer has, which would keep their snapshots for ever. The tags of catalogs
    that still list the table stay."""
    kept_tags = {
        tag for follower in (*pipeline.also, *published.former_followers(pipeline, names(table))) for tag in follower.tags
    }
    refs = table.refs()
    obsolete_tags = [name for name in names(table) if is_follower_tag(name) and name not in kept_tags and refs[name].isTag()]
    with suppress(CommitRefused, CommitUnknown):  # the next time
        lake.untag(table, obsolete_tags)


def _due(context: Context, pipeline: Pipeline, identifier: str, by_person: bool) -> Due:
    """The maintenance that a table is due for now: work on one table changes what the others are due for."""
    return next(
        (duty for duty in due(pipeline, context.clock(), by_person) if duty.identifier == identifier),
        Due(identifier=identifier, compact=False, why="the table is gone"),
    )


def _steps(context: Context, lake: TableStore, pipeline: Pipeline, identifier: str, byte_limit: int | None) -> Iterator[str]:
    try:
        duty = _due(context, pipeline, identifier, byte_limit is None)
        if duty.compact:
            result = compact.compact(lake, pipeline, duty, byte_limit)
            context.reached("compacted")
            compact.settle(lake, identifier, context.clock())
            context.reached("settled")
            yield (
                f"{amounts.counted(result.before, 'file')} into {result.after}"
                if result.before
                else "no file is worth compacting"
            )
        else:
            yield duty.why
        catalog = pipeline.table.catalog
        if (expirable := _due(context, pipeline, identifier, False).expirable).ids:
            later_than = context.clock() if expirable.are_read else None
            snapshots, files = expire.expire(lake, catalog, identifier, expirable.ids, later_than, may_leave=True)
            context.reached("expired")
            files_text = "" if later_than else f" and {amounts.counted(files, 'file')}"
            yield f"{amounts.counted(snapshots, 'snapshot')}{files_text} are gone"
        if (duty.delete or byte_limit is None) and (count := delete_later.delete(lake, catalog, identifier, context.clock())):
            yield f"{amounts.counted(count, 'file')} of earlier snapshots {'is' if count == 1 else 'are'} gone"
        if byte_limit is None and (count := orphans.delete_orphans(lake, pipeline, identifier, context.clock())):
            yield f"{amounts.counted(count, 'file')} that no commit names {'is' if count == 1 else 'are'} gone"
    except (CommitRefused, CommitUnknown) as error:
        yield f"{_LEFT}: {error}"
