"""The changes that make a table of a REST catalog the same as another catalog's.

Guarantee: it is refused if the table's rows, columns, partitioning or order were changed since they were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]
_MAIN = {"ref-name": "main", "type": "branch"}


def requirements(there: Document) -> list[Document]:
    return [
        {"type": "assert-table-uuid", "uuid": there["table-uuid"]},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": there["current-snapshot-id"]},
        {"type": "assert-current-schema-id", "current-schema-id": there["current-schema-id"]},
        {"type": "assert-default-spec-id", "default-spec-id": there["default-spec-id"]},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": there["default-sort-order-id"]},
    ]


def between(there: Document, wanted: Document) -> list[Document]:
    main = next(each for each in wanted["snapshots"] if each["snapshot-id"] == wanted["current-snapshot-id"])
    format_ = wanted["format-version"]
    upgrade = [{"action": "upgrade-format-version", "format-version": format_}] if there["format-version"] != format_ else []
    # A snapshot of the older format has no number of its first row, and the newer format takes none without.
    first = main.get("first-row-id") is not None
    changes = [*_of_form(there, wanted), *_of_snapshots(there, wanted, main)]
    return [*upgrade, *changes] if first else [*changes, *upgrade]


def _of_form(there: Document, wanted: Document) -> Iterator[Document]:
    for schema in _new(there, wanted, "schemas", "schema-id"):
        yield {"action": "add-schema", "schema": schema, "last-column-id": wanted["last-column-id"]}
    if there["current-schema-id"] != wanted["current-schema-id"]:
        yield {"action": "set-current-schema", "schema-id": wanted["current-schema-id"]}
    for spec in _new(there, wanted, "partition-specs", "spec-id"):
        yield {"action": "add-spec", "spec": spec}
    if there["default-spec-id"] != wanted["default-spec-id"]:
        yield {"action": "set-default-spec", "spec-id": wanted["default-spec-id"]}
    for order in _new(there, wanted, "sort-orders", "order-id"):
        yield {"action": "add-sort-order", "sort-order": order}
    if there["default-sort-order-id"] != wanted["default-sort-order-id"]:
        yield {"action": "set-default-sort-order", "sort-order-id": wanted["default-sort-order-id"]}
    current = there.get("properties") or {}
    changed = {name: value for name, value in wanted["properties"].items() if current.get(name) != value}
    if changed:
        yield {"action": "set-properties", "updates": changed}


def _of_snapshots(there: Document, wanted: Document, main: Document) -> Iterator[Document]:
    """Main's ancestors are added as far as the catalog takes them: nothing older than what it has had."""
    new = [
        each
        for each in _new(there, wanted, "snapshots", "snapshot-id")
        if each is main or _is_taken(there, each, main.get("first-row-id") is not None)
    ]
    for snapshot in sorted(new, key=lambda each: each["sequence-number"]):
        yield {"action": "add-snapshot", "snapshot": snapshot}
    if there["current-snapshot-id"] != wanted["current-snapshot-id"]:
        yield {"action": "set-snapshot-ref", **_MAIN, "snapshot-id": wanted["current-snapshot-id"]}
    kept = {each["snapshot-id"] for each in wanted["snapshots"]}
    for gone in (each["snapshot-id"] for each in there["snapshots"] if each["snapshot-id"] not in kept):
        yield {"action": "remove-snapshots", "snapshot-ids": [gone]}  # some servers take one at a time


def _is_taken(there: Document, snapshot: Document, main_is_numbered: bool) -> bool:
    numbered = not main_is_numbered or snapshot.get("first-row-id") is not None
    return bool(numbered and snapshot["sequence-number"] > there["last-sequence-number"])


def _new(there: Document, wanted: Document, what: str, key: str) -> list[Document]:
    existing = {each[key] for each in there.get(what) or ()}
    return [each for each in wanted.get(what) or () if each[key] not in existing]
