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
from framework.core.iceberg.main_line import number
from framework.core.iceberg.metadata import Metadata
from framework.plan import PUBLISHED, Follower, Pipeline
from framework.systems.catalogs import ListedMetadata

_OURS = "sluice."  # the prefix of properties that only the table itself has
_FILE = "published-"
_PUBLISHED_BY = "published-by"  # in the summary of a snapshot that others see
_LEFT_OUT = ("metadata-log", "statistics", "partition-statistics")
_ADDED = {
    "gc.enabled": "false",  # no engine expires snapshots or deletes files of it
    # A catalog that writes metadata files itself does not leave them in the table's folder for ever.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}


def document(table: Metadata, tip: int) -> Mapping[str, Any]:
    """The table's metadata as other catalogs see it: one snapshot and its ancestors."""
    snapshots = [_without_ours(snapshot) for snapshot in reversed(list(table.ancestors(tip)))]
    ids = {snapshot["snapshot-id"] for snapshot in snapshots}
    log = [entry for entry in table.document.get("snapshot-log") or () if entry["snapshot-id"] in ids]
    if not log or log[-1]["snapshot-id"] != tip:
        log.append({"snapshot-id": tip, "timestamp-ms": table.document["last-updated-ms"]})
    rows = [
        snapshot["first-row-id"] + snapshot["added-rows"] for snapshot in snapshots if snapshot.get("first-row-id") is not None
    ]
    return {
        **{name: value for name, value in table.document.items() if name not in _LEFT_OUT},
        # The table's own number counts staged snapshots, too, which a catalog would then refuse to add later.
        "last-sequence-number": max(map(number, snapshots)),
        **({"next-row-id": max(rows, default=0)} if "next-row-id" in table.document else {}),
        "current-snapshot-id": tip,
        "refs": {"main": {"snapshot-id": tip, "type": "branch"}},
        "snapshots": snapshots,
        "snapshot-log": log,
        "properties": {**properties(table), **_ADDED},
    }


def properties(table: Metadata) -> Mapping[str, str]:
    """The table's properties without those that only the table itself has."""
    return {name: value for name, value in table.properties.items() if not name.startswith(_OURS)}


def is_table_itself(listing: Metadata) -> bool:
    """Whether this metadata is the table's own, not a listing of it in another catalog."""
    return len(properties(listing)) < len(listing.properties)


def write(table: Metadata, content: Mapping[str, Any], follower: Follower) -> ListedMetadata:
    """Writes a new metadata file next to the table's own metadata files."""
    number = content["last-sequence-number"]
    location = f"{_folder(table)}/{_prefix(follower)}{number:08}-{uuid.uuid4().hex[:12]}.metadata.json"
    table.files.write(location, json.dumps(content).encode())
    return ListedMetadata(location, content, table.files)


def is_own(table: Metadata, follower: Follower, location: str) -> bool:
    """Whether a metadata file is one that was written for this follower."""
    start = table.files.path(f"{_folder(table)}/{_prefix(follower)}")
    return table.files.path(location).startswith(start)


def files(table: Metadata, follower: Follower, listing: Metadata | None = None) -> list[str]:
    """The metadata files that were written for this follower, the oldest first, and those that the other catalog wrote, as far as its
    log goes back and they show nothing else."""
    own_files = sorted(location for location in table.files.older(_folder(table), start=_prefix(follower)))
    log = [*(entry["metadata-file"] for entry in listing.document.get("metadata-log") or ()), listing.file] if listing else []
    return [*own_files, *(location for location in log if location not in own_files and _shows_only(table, location))]


def _shows_only(table: Metadata, location: str) -> bool:
    try:
        document = table.files.metadata(location)
    except (OSError, ValueError):
        return False
    return document.get("table-uuid") == table.uuid and all(map(is_shown, document.get("snapshots") or ()))


def is_shown(snapshot: Mapping[str, Any]) -> bool:
    """Whether a snapshot in another catalog's metadata is one that was published there."""
    return _PUBLISHED_BY in metadata.summary(snapshot)


def delete(table: Metadata, file: str) -> None:
    deletable_files.delete(table.files, [file], table.files.folders(_folder(table)))


def former_followers(pipeline: Pipeline, refs: Iterable[str]) -> Iterator[Follower]:
    """The followers that list the table in other catalogs, by its tags, and that the spec no longer names."""
    current_tags = {tag for follower in pipeline.published for tag in follower.tags}
    for tag in refs:
        if tag.startswith(PUBLISHED) and tag not in current_tags and not tag.endswith("-before"):
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
