"""When a pipeline runs, how large its batches are, and when its tables are maintained."""

from __future__ import annotations

from collections.abc import Iterator

from framework.base.errors import Problem
from framework.documents.pipeline.written import Pipeline as WrittenPipeline, Run as WrittenRun
from framework.plan import Maintain, Run, Source, Thin

BATCH_ROWS = 1_000_000
CHECK_EVERY = 10  # seconds between two checks for new data


def run(spec: WrittenPipeline) -> Run:
    if isinstance(spec.run, WrittenRun):
        return Run(every=spec.run.every, cron=spec.run.cron, timezone=spec.run.timezone, after=spec.batch.after)
    return Run(every=CHECK_EVERY, on_new_data=True) if spec.run == "on_new_data" else Run()


def problems(spec: WrittenPipeline, source: Source | None) -> Iterator[Problem]:
    if spec.batch.after is None:
        return
    why = "what waits in a table is not counted in bytes" if source and source.tables else ""
    if isinstance(spec.run, str):
        why = "`on_new_data` begins a batch soon anyway" if spec.run == "on_new_data" else "only a person starts a run"
    if why:
        yield Problem(spec.batch.key_place("after"), "unused-key", f"`after` has no effect: {why}", "remove it")


def maintain(spec: WrittenPipeline) -> Maintain:
    written, thin = spec.maintain, spec.maintain.thin
    return Maintain(
        compact_to=written.compact_to,
        compact_every=written.compact_every,
        keep_snapshots_for=written.keep_snapshots_for,
        keep_at_least=written.keep_at_least,
        thin=Thin(all_for=thin.all_for, then_every=thin.then_every, for_=thin.for_, then_every_hour=thin.then_every_hour),
        adapts=written.node.get("thin") is None,
        orphans_after=written.orphans_after,
    )
