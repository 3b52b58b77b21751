"""Runs whose process died with its machine or its server. Dagster would show them as running for ever, and their tables would wait."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter

from framework.processes import began

TAG = "sluice/process"
_WORKING = [DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]


def mark(instance: DagsterInstance, run_id: str) -> None:
    """Tag the run with its process."""
    instance.add_run_tags(run_id, {TAG: identity(os.getpid())})


def end_dead(instance: DagsterInstance) -> Iterator[DagsterRun]:
    """End the runs of this machine whose processes have ended; Dagster then frees their pools."""
    for run in instance.get_runs(RunsFilter(statuses=_WORKING)):
        process = run.tags.get(TAG, "")
        host, _, rest = process.partition(" ")
        if rest and host == socket.gethostname() and identity(int(rest.split()[0])) != process:
            instance.report_run_failed(run, "the process of this run died; its published batches stay")
            yield run


def identity(pid: int) -> str:
    """A process's identity, which differs from a later one with the same pid. Empty if the process has ended."""
    since = began(pid)
    return f"{socket.gethostname()} {pid} {since}" if since else ""
