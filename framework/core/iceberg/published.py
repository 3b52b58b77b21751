"""Listings of a table in other catalogs: metadata files of their own, which name main alone.

Guarantee: whoever reads the table there sees no staged rows, and can neither expire its snapshots nor delete its files.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from framework.core.iceberg import deletable_files, metadata
from framework.core.iceberg.metadata import Metadata
from framework.plan import PUBLISHED, Follower, Pipeline
from framework.systems.catalogs import Current

_OURS = "sluice."  # how the names of properties begin that only the table itself has
_FILE = "published-"
_PUBLISHED_BY = "published-by"  # in the summary of a snapshot that others see
_LEFT_OUT = ("metadata-log", "statistics", "partition-statistics")
_ADDED = {
    "gc.enabled": "false",  # no engine expires snapshots or deletes files of it
    # A catalog that writes metadata files itself does not leave them in the table's folder for ever.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}


def document(table: Metadata, snapshot: int) -> Mapping[str, Any]:
    """The table's metadata as others see it: one snapshot with what it comes from."""
    snapshots = [_without_ours(each) for each in reversed(list(table.ancestors(snapshot)))]
    ids = {each["snapshot-id"] for each in snapshots}
    log = [each for each in table.document.get("snapshot-log") or () if each["snapshot-id"] in ids]
    if not log or log[-1]["snapshot-id"] != snapshot:
        log.append({"snapshot-id": snapshot, "timestamp-ms": table.document["last-updated-ms"]})
    rows = [each["first-row-id"] + each["added-rows"] for each in snapshots if each.get("first-row-id") is not None]
    return {
        **{name: value for name, value in table.document.items() if name not in _LEFT_OUT},
        # Those of the table itself count what is staged, too, which a catalog would then refuse to add later.
        "last-sequence-number": max(each.get("sequence-number") or 0 for each in snapshots),
        **({"next-row-id": max(rows, default=0)} if "next-row-id" in table.document else {}),
        "current-snapshot-id": snapshot,
        "refs": {"main": {"snapshot-id": snapshot, "type": "branch"}},
        "snapshots": snapshots,
        "snapshot-log": log,
        "properties": {**properties(table), **_ADDED},
    }


def properties(table: Metadata) -> Mapping[str, str]:
    """Without those that only the table itself has."""
    return {name: value for name, value in table.properties.items() if not name.startswith(_OURS)}


def is_table_itself(there: Metadata) -> bool:
    """Whether this is not what others see of a table."""
    return len(properties(there)) < len(there.properties)


def write(table: Metadata, listed: Mapping[str, Any], follower: Follower) -> Current:
    """A new metadata file beside those of the table itself."""
    number = listed["last-sequence-number"]
    location = f"{_folder(table)}/{_prefix(follower)}{number:08}-{uuid.uuid4().hex[:12]}.metadata.json"
    table.files.write(location, json.dumps(listed).encode())
    return Current(location, listed, table.files)


def is_own(table: Metadata, follower: Follower, location: str) -> bool:
    """Whether a metadata file is one that was written for this follower."""
    start = table.files.path(f"{_folder(table)}/{_prefix(follower)}")
    return table.files.path(location).startswith(start)


def files(table: Metadata, follower: Follower, there: Metadata | None = None) -> list[str]:
    """The metadata files that were written for it, the oldest first; and those that the other catalog wrote, as far as its log goes back
    and they show nothing else."""
    listed = sorted(each for each in table.files.older(_folder(table), start=_prefix(follower)))
    log = [*(each["metadata-file"] for each in there.document.get("metadata-log") or ()), there.file] if there else []
    return [*listed, *(each for each in log if each not in listed and _shows_only(table, each))]


def _shows_only(table: Metadata, location: str) -> bool:
    try:
        document = table.files.metadata(location)
    except (OSError, ValueError):
        return False
    return document.get("table-uuid") == table.uuid and all(map(is_shown, document.get("snapshots") or ()))


def is_shown(snapshot: Mapping[str, Any]) -> bool:
    """Whether a snapshot in metadata of others is one that they were given."""
    return _PUBLISHED_BY in metadata.summary(snapshot)


def delete(table: Metadata, file: str) -> None:
    deletable_files.delete(table.files, [file], table.files.folders(_folder(table)))


def left(pipeline: Pipeline, refs: Iterable[str]) -> Iterator[Follower]:
    """Of other catalogs that list the table, by its tags, and that the spec no longer names."""
    there = {tag for each in pipeline.published for tag in each.tags}
    for tag in refs:
        if tag.startswith(PUBLISHED) and tag not in there and not tag.endswith("-before"):
            name = tag.removeprefix(PUBLISHED)
            yield Follower(
                type="catalog", name=name, where=pipeline.table.places["table"], says=(), options=None, latest_only=True
            )


def _folder(table: Metadata) -> str:
    return f"{str(table.document['location']).rstrip('/')}/metadata"


def _prefix(follower: Follower) -> str:
    return f"{_FILE}{hashlib.sha256(follower.name.encode()).hexdigest()[:8]}-"


def _without_ours(snapshot: Mapping[str, Any]) -> Mapping[str, Any]:
    summary = {name: value for name, value in metadata.summary(snapshot).items() if not name.startswith(_OURS)}
    return {**snapshot, "summary": {**summary, _PUBLISHED_BY: "sluice"}}
