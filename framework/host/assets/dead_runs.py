"""Runs whose process died with its machine or its server. Dagster would show them as running for ever, and their tables would wait."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Iterator
from contextlib import suppress

from dagster import DagsterEventType, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from framework.machine.processes import began

TAG = "sluice/process"
_WORKING = [DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]


def mark(instance: DagsterInstance, run_id: str) -> None:
    """Tag the run with the process that executes it. That of a step ends before, where an executor has started one for each step."""
    parent = multiprocessing.parent_process()
    near_pids = {os.getpid(), parent.pid if parent else None}
    process = next((pid for pid in _told(instance, run_id) if pid in near_pids), None)
    if process and (process_identity := identity(process)):
        instance.add_run_tags(run_id, {TAG: f"{run_id} {process_identity}"})  # Dagster copies tags to a run that repeats this one


def _told(instance: DagsterInstance, run_id: str) -> Iterator[int]:
    """The processes that Dagster names in the events of a run: first the one that executes it, then those of steps."""
    for record in instance.get_records_for_run(run_id, of_type=DagsterEventType.ENGINE_EVENT).records:
        event = record.event_log_entry.dagster_event
        pid = event.engine_event_data.metadata.get("pid") if event else None
        if pid is not None:
            yield int(str(pid.value))


def end_dead(instance: DagsterInstance) -> Iterator[DagsterRun]:
    """End the runs of this machine whose processes have ended; Dagster then frees their pools."""
    for run in instance.get_runs(RunsFilter(statuses=_WORKING)):
        tagged_run, _, process = run.tags.get(TAG, "").partition(" ")
        dead = tagged_run == run.run_id and process.startswith(_here()) and identity(int(process.split()[2])) != process
        # Read again: a run that ended well meanwhile has no process either.
        if dead and (current_run := instance.get_run_by_id(run.run_id)) and current_run.status in _WORKING:
            instance.report_run_failed(run, "the process of this run died; its published batches stay")
            yield run


def identity(pid: int) -> str:
    """A process's identity, which differs from a later one with the same pid. Empty if the process has ended."""
    since = began(pid)
    return f"{_here()}{pid} {since}" if since else ""


def _here() -> str:
    """Where a pid means what it means here: containers of one machine may have its host name, and pids of their own."""
    with suppress(OSError):
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')} "
    return f"{socket.gethostname()} - "
