"""The facts of a table that conditions judge."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from framework.base import iso_times
from framework.base.errors import SluiceError
from framework.core.rules.work import OTHERS, Work
from framework.operations.alerts.key_ends import KeyEnds
from framework.operations.alerts.memory import Memory
from framework.operations.observe.status import Status
from framework.plan.alert import FollowerFacts, TableFacts, Trouble
from framework.sql.standard import identifier, literal

_OTHER_UNMET = f"unmet {OTHERS}"


def facts_of(status: Status, memory: Memory, ends: KeyEnds) -> TableFacts:
    """The facts of a table, with those of the past that the memory has."""
    pipeline, progress = status.pipeline, status.progress
    time, sums = status.time.timestamp(), sums_of(status)

    def grown(name: str, window: float) -> float | None:
        if sums is None:
            return None
        commit_age = status.age(progress.committed)
        if commit_age is None or commit_age >= window:
            return 0.0  # nothing was committed meanwhile
        growth = memory.grown(pipeline.name, name, sums, time, window)
        others = memory.grown(pipeline.name, _OTHER_UNMET, sums, time, window) if name.startswith("unmet ") else 0.0
        return None if others or others is None else growth  # too many names: nobody knows whose rows these were

    trouble = tuple(Trouble(code=reason.code, message=reason.message, unanswered=reason.unanswered) for reason in status.reasons)
    return TableFacts(
        pipeline=pipeline, state=status.state, late=status.is_late, commit_age=status.age(progress.committed),
        paused_for=status.age(status.paused), trouble=trouble, unanswered=all(reason.unanswered for reason in status.reasons),
        followers=_followers(status), exports=_exports(status), grown=grown,
        counted=lambda where, window: None if sums is None else _counted(status, where, window),
        lasted=lambda name, holds: memory.lasted(f"{pipeline.name} {name}", holds, time),
        keys=lambda: ends.seconds_left(pipeline, time),
    )  # fmt: skip


def _followers(status: Status) -> Mapping[str, FollowerFacts] | None:
    if status.progress.catalog_away:
        return None
    table = status.progress.table_metadata
    refs = table.refs if table else {}
    return {state.follower.title: FollowerFacts(state.rows, refs.get(state.follower.tag)) for state in status.followers}


def _exports(status: Status) -> Mapping[str, float | None]:
    return {state.export.name: state.late(status.time) for state in status.exports if state.export.schedule}


def sums_of(status: Status) -> Mapping[str, float] | None:
    """The sums of a table's batches that conditions ask for; None where they are unknown."""
    if status.progress.catalog_away:
        return None
    done = status.work or Work()
    return {"rows": done.rows, "bad": sum(done.bad.values()), **{f"unmet {name}": rows for name, rows in done.unmet.items()}}


def _counted(status: Status, where: str, window: float) -> int:
    """The rows of the last seconds for which a condition of DuckDB's SQL holds, by their event time."""
    from framework.core.query.bound import INPUT
    from framework.core.query.one_select import ask

    table, column = status.pipeline.table, status.pipeline.event_time
    if status.progress.table_metadata is None or column is None:
        return 0
    names = ".".join(identifier(part) for part in table.identifier.split("."))
    since = literal(iso_times.text(status.time - timedelta(seconds=window)))
    rows = f"with {INPUT} as (select * from {names} where {identifier(column)} >= timestamptz {since})"
    try:
        (row,) = ask((table.catalog,), f"{rows} select count(*) as rows from {INPUT} where ({where})").rows()
    except SluiceError as error:  # without its message, which may quote a value
        hint = f"`sluice query` with the same condition on {table.identifier} says what is wrong"
        raise SluiceError(error.code, f"`where {where}` cannot be judged on {table.identifier}", hint) from None
    return int(row[0])
