"""The facts of a table that conditions judge."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from framework.base import iso_times
from framework.core.rules import work
from framework.operations.alerts.memory import Memory
from framework.operations.observe.status import Status
from framework.plan.alert import TableFacts
from framework.sql.standard import identifier, literal


def facts_of(status: Status, memory: Memory) -> TableFacts:
    """The facts of a table, with those of the past that the memory has."""
    pipeline, progress = status.pipeline, status.progress
    time, sums = status.time.timestamp(), sums_of(status)

    def grown(name: str, window: float) -> float | None:
        if sums is None:
            return None
        commit_age = status.age(progress.committed)
        if commit_age is None or commit_age >= window:
            return 0.0  # nothing was committed meanwhile
        return memory.grown(pipeline.name, name, sums, time, window)

    is_late = None if status.fresh is False and progress.lag is None else status.fresh is False
    return TableFacts(
        pipeline=pipeline, time=status.time, state=status.state, late=is_late, commit_age=status.age(progress.committed),
        paused_for=status.age(status.paused), trouble=tuple((reason.code, reason.message) for reason in status.reasons),
        unanswered=all(reason.unanswered for reason in status.reasons),
        followers={follower.follower.title: follower.rows for follower in status.followers}, grown=grown,
        counted=lambda where, window: None if sums is None else _counted(status, where, window),
        lasted=lambda name, holds: memory.lasted(f"{pipeline.name} {name}", holds, time),
    )  # fmt: skip


def sums_of(status: Status) -> Mapping[str, float] | None:
    """The sums of a table's batches that conditions ask for; None where they are unknown."""
    if status.progress.catalog_away:
        return None
    table = status.progress.table_metadata
    done = work.read(table.properties) if table else work.Work()
    return {"rows": done.rows, "bad": sum(done.bad.values()), **{f"unmet {name}": rows for name, rows in done.unmet.items()}}


def _counted(status: Status, where: str, window: float) -> int:
    """The rows of the last seconds for which a condition of DuckDB's SQL holds, by their event time."""
    from framework.core.query.one_select import ask

    table, column = status.pipeline.table, status.pipeline.event_time
    if status.progress.table_metadata is None or column is None:
        return 0
    names = ".".join(identifier(part) for part in table.identifier.split("."))
    since = literal(iso_times.text(status.time - timedelta(seconds=window)))
    select = f"select count(*) as rows from {names} where ({where}) and {identifier(column)} >= timestamptz {since}"
    (row,) = ask((table.catalog,), select).rows()
    return int(row[0])
