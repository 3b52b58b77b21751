"""The changes that make a table of a REST catalog the same as another catalog's.

Guarantee: it is refused if the table's rows, columns, partitioning or order were changed since they were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]
_MAIN = {"ref-name": "main", "type": "branch"}


def requirements(document: Document) -> list[Document]:
    return [
        {"type": "assert-table-uuid", "uuid": document["table-uuid"]},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": document["current-snapshot-id"]},
        {"type": "assert-current-schema-id", "current-schema-id": document["current-schema-id"]},
        {"type": "assert-default-spec-id", "default-spec-id": document["default-spec-id"]},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": document["default-sort-order-id"]},
    ]


def between(document: Document, target: Document) -> list[Document]:
    main = next(snapshot for snapshot in target["snapshots"] if snapshot["snapshot-id"] == target["current-snapshot-id"])
    format_ = target["format-version"]
    upgrade = [{"action": "upgrade-format-version", "format-version": format_}] if document["format-version"] != format_ else []
    # A snapshot of the older format has no number of its first row, and the newer format takes none without.
    upgrade_first = main.get("first-row-id") is not None
    changes = [*_of_form(document, target), *_of_snapshots(document, target, main)]
    return [*upgrade, *changes] if upgrade_first else [*changes, *upgrade]


def _of_form(document: Document, target: Document) -> Iterator[Document]:
    for schema in _new(document, target, "schemas", "schema-id"):
        yield {"action": "add-schema", "schema": schema, "last-column-id": target["last-column-id"]}
    if document["current-schema-id"] != target["current-schema-id"]:
        yield {"action": "set-current-schema", "schema-id": target["current-schema-id"]}
    for spec in _new(document, target, "partition-specs", "spec-id"):
        yield {"action": "add-spec", "spec": spec}
    if document["default-spec-id"] != target["default-spec-id"]:
        yield {"action": "set-default-spec", "spec-id": target["default-spec-id"]}
    for order in _new(document, target, "sort-orders", "order-id"):
        yield {"action": "add-sort-order", "sort-order": order}
    if document["default-sort-order-id"] != target["default-sort-order-id"]:
        yield {"action": "set-default-sort-order", "sort-order-id": target["default-sort-order-id"]}
    current = document.get("properties") or {}
    changed = {name: value for name, value in target["properties"].items() if current.get(name) != value}
    if changed:
        yield {"action": "set-properties", "updates": changed}


def _of_snapshots(document: Document, target: Document, main: Document) -> Iterator[Document]:
    """Adds main's ancestors, except those that the catalog refuses as older than its newest snapshot, and removes expired snapshots."""
    new_snapshots = [
        snapshot
        for snapshot in _new(document, target, "snapshots", "snapshot-id")
        if snapshot is main or _is_taken(document, snapshot, main.get("first-row-id") is not None)
    ]
    for snapshot in sorted(new_snapshots, key=lambda snapshot: snapshot["sequence-number"]):
        yield {"action": "add-snapshot", "snapshot": snapshot}
    if document["current-snapshot-id"] != target["current-snapshot-id"]:
        yield {"action": "set-snapshot-ref", **_MAIN, "snapshot-id": target["current-snapshot-id"]}
    target_ids = {snapshot["snapshot-id"] for snapshot in target["snapshots"]}
    for snapshot_id in (
        snapshot["snapshot-id"] for snapshot in document["snapshots"] if snapshot["snapshot-id"] not in target_ids
    ):
        yield {"action": "remove-snapshots", "snapshot-ids": [snapshot_id]}  # some servers take one at a time


def _is_taken(document: Document, snapshot: Document, main_is_numbered: bool) -> bool:
    numbered = not main_is_numbered or snapshot.get("first-row-id") is not None
    return bool(numbered and snapshot["sequence-number"] > document["last-sequence-number"])


def _new(document: Document, target: Document, list_name: str, key: str) -> list[Document]:
    existing_keys = {item[key] for item in document.get(list_name) or ()}
    return [item for item in target.get(list_name) or () if item[key] not in existing_keys]
