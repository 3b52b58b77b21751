"""Metadata of tables, as their files have it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol
from framework.systems.catalogs._local_files import LocalFiles


def snapshot(number: int, time: datetime, parent: int | None = None, id_: int | None = None) -> dict[str, Any]:
    """A batch's snapshot, which follows that of the number before."""
    position = {"attempt": "a", "batch": number, "cluster": "c", "topics": {"t": "i"}, "ends": {"t/0": number}, "sequence": 0}
    summary = {"operation": "append", protocol.POSITION: json.dumps({**position, "snapshot": 0})}
    parent_id = parent or number - 1
    return {
        "snapshot-id": id_ or number, "sequence-number": number, "timestamp-ms": int(time.timestamp() * 1000), "summary": summary,
        **({"parent-snapshot-id": parent_id} if parent_id else {}),
    }  # fmt: skip


def table_of(
    snapshots: Iterable[Mapping[str, Any]],
    refs: Mapping[str, Mapping[str, Any]] | None = None,
    main: int | None = None,
    properties: Mapping[str, str] | None = None,
) -> Metadata:
    """A table with these snapshots, of which the last one is main, unless `main` is another one."""
    entries = list(snapshots)
    tip = main or entries[-1]["snapshot-id"]
    all_refs = {"main": {"snapshot-id": tip, "type": "branch"}, **(refs or {})}
    document = {
        "table-uuid": "u", "properties": dict(properties or {}), "current-snapshot-id": tip, "refs": all_refs, "snapshots": entries,
    }  # fmt: skip
    return Metadata("", document, LocalFiles("file:///"))
