"""Commits of other programs to tables of pipelines, in Dagster: each is an observation of the table.

*Limit* The sensor's cursor has how far each table was seen. What was committed before the first look, what expired between two, and all
but the newest twenty commits of a look are not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from dagster import AssetObservation, DagsterInstance

from framework.core.iceberg.metadata import Metadata
from framework.host.assets.keys import AssetKeys
from framework.operations.observe.status import Status
from framework.operations.rebuild.estimate import ForeignCommit, foreign_commits

_MOST = 20  # commits of a table at one look


def observe(instance: DagsterInstance, keys: AssetKeys, statuses: Iterable[Status], cursor: str | None) -> str:
    """Observes the commits since the last look, the oldest first. Returns the next cursor."""
    looks = _read(cursor)
    current_looks: dict[str, tuple[str, int]] = {}
    for status in statuses:
        name, table = status.pipeline.name, status.progress.table_metadata
        if table is None:  # a catalog that does not answer is asked again
            current_looks |= {name: looks[name]} if name in looks else {}
            continue
        uuid, sequence = looks.get(name, ("", 0))
        for commit in reversed(_since(table, sequence)[:_MOST] if uuid == table.uuid else []):
            instance.report_runless_asset_event(_observation(keys, status, commit))
        current_looks[name] = table.uuid, _sequence(table.main)
    return json.dumps(current_looks)


def _since(table: Metadata, sequence: int) -> list[ForeignCommit]:
    """The commits that main has since the one of this number, the newest first. Main's number counts, not the table's: another program may
    write to a branch first. A summary of another program that cannot be read is none: no other table waits for it."""
    with suppress(ValueError, TypeError, KeyError):
        return [commit for commit in foreign_commits(table) if _sequence(table.snapshots[commit.snapshot]) > sequence]
    return []


def _sequence(snapshot: Mapping[str, Any] | None) -> int:
    return int(snapshot.get("sequence-number", 0)) if snapshot else 0


def _observation(keys: AssetKeys, status: Status, commit: ForeignCommit) -> AssetObservation:
    entries: dict[str, Any] = {
        "commit_of": commit.author, "operation": commit.operation, "snapshot": str(commit.snapshot), "added_rows": commit.added,
        "deleted_rows": commit.deleted,
    }  # fmt: skip
    return AssetObservation(keys.table(status.pipeline), metadata=entries, description=commit.words)


def _read(cursor: str | None) -> dict[str, tuple[str, int]]:
    """The uuid of each pipeline's table, and the sequence number up to which it was seen."""
    with suppress(ValueError, TypeError, AttributeError):
        return {name: (str(uuid), int(sequence)) for name, (uuid, sequence) in json.loads(cursor or "{}").items()}
    return {}
