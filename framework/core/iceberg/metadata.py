"""A table's metadata, read from its JSON file: the catalog has the current one. That is all that commands like `status` need, and loading
an Iceberg library takes longer than the rest of such a command.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property, lru_cache
from io import BytesIO
from typing import Any

from framework.base.errors import CatalogAway, SetupError, SluiceError
from framework.core.rules import protocol, recorded_moves
from framework.core.rules.protocol import Position
from framework.plan import Catalog
from framework.plan.follower import is_follower_tag
from framework.systems import catalogs
from framework.systems.catalogs import TableFiles

_ATTEMPTED = re.compile(r".+_[0-9a-f]{32}")  # a branch of an attempt
_DELETED = 2  # the status of a manifest's entry for a deleted file


@dataclass(frozen=True)
class Metadata:
    """One metadata file: a table at one moment."""

    file: str
    document: Mapping[str, Any]
    files: TableFiles

    @property
    def uuid(self) -> str:
        return str(self.document["table-uuid"])

    @property
    def properties(self) -> Mapping[str, str]:
        return self.document.get("properties") or {}

    @property
    def position(self) -> Position | None:
        """The offsets that the table has loaded, as it says itself; None if it is nobody's that loads."""
        text = self.properties.get(protocol.POSITION)
        return Position.read(text) if text else None

    @property
    def schema(self) -> Mapping[str, Any]:
        return _by_id(self.document["schemas"], "schema-id", self.document["current-schema-id"])

    def columns_of(self, snapshot: Mapping[str, Any]) -> frozenset[str]:
        """The columns that the table had at a snapshot, which readers of the snapshot see; columns may have been added since."""
        schema = self.schema
        if "schema-id" in snapshot:
            schema = _by_id(self.document["schemas"], "schema-id", snapshot["schema-id"])
        return frozenset(field["name"] for field in schema["fields"])

    @property
    def partitions(self) -> Mapping[str, Any]:
        return _by_id(self.document["partition-specs"], "spec-id", self.document["default-spec-id"])

    @property
    def order(self) -> Mapping[str, Any]:
        return _by_id(self.document["sort-orders"], "order-id", self.document["default-sort-order-id"])

    @cached_property
    def snapshots(self) -> Mapping[int, Mapping[str, Any]]:
        return {snapshot["snapshot-id"]: snapshot for snapshot in self.document.get("snapshots") or ()}

    @property
    def main(self) -> Mapping[str, Any] | None:
        return self.snapshots.get(self.document.get("current-snapshot-id") or -1)

    @property
    def refs(self) -> Mapping[str, int]:
        """Branches and tags, and the snapshot of each."""
        return {name: ref["snapshot-id"] for name, ref in (self.document.get("refs") or {}).items()}

    def is_branch(self, name: str) -> bool:
        """Whether a name of `refs` is a branch, not a tag."""
        return str(self.document["refs"][name]["type"]) == "branch"

    @cached_property
    def states(self) -> frozenset[str]:
        """The branches of states that the table keeps; none of another program's, whatever its name."""
        if protocol.OF in self.properties:  # a table of bad rows keeps none
            return frozenset()
        candidates = [name for name in self.refs if protocol.is_state(name) and self.is_branch(name)]
        return frozenset(name for name in candidates if protocol.is_state_line(self._line(self.refs[name])))

    @cached_property
    def diverged(self) -> Mapping[str, int]:
        """The tags and branches of other programs with commits that main does not have, and how many these are."""
        ours = {protocol.TAG, protocol.EMPTY, *self.states}
        other_refs = [
            name for name in self.refs if name not in ours and not is_follower_tag(name) and not _ATTEMPTED.fullmatch(name)
        ]
        main = {snapshot["snapshot-id"] for snapshot in self.ancestors()} if other_refs else set()
        counts = {name: self._own_commits(self.refs[name], main) for name in other_refs}
        return {name: count for name, count in counts.items() if count}

    def _own_commits(self, tip: int, main: Set[int]) -> int:
        """The number of commits from `tip` down to one of main or of Sluice: main no longer has its snapshots that have expired."""
        own_snapshots = itertools.takewhile(
            lambda snapshot: snapshot["snapshot-id"] not in main and not _is_ours(snapshot), self.ancestors(tip)
        )
        return sum(1 for _ in own_snapshots)

    def _line(self, tip: int) -> Iterator[tuple[Mapping[str, str], int | None]]:
        return ((summary(snapshot), snapshot.get("parent-snapshot-id")) for snapshot in self.ancestors(tip))

    def ancestors(self, tip: int | None = None) -> Iterator[Mapping[str, Any]]:
        """The snapshots from main, or from `tip`, back to the oldest that the table still has."""
        snapshot = self.main if tip is None else self.snapshots.get(tip)
        while snapshot is not None:
            yield snapshot
            snapshot = self.snapshots.get(snapshot.get("parent-snapshot-id") or -1)

    @cached_property
    def _published(self) -> Mapping[int, datetime]:
        """The time when main first moved to each snapshot. Later entries of the log are rollbacks to it, and the first entry may have
        expired."""
        rollbacks: dict[int, datetime] = {}
        for move in recorded_moves.recorded(self.properties):
            if move.main_before != move.main_after:
                rollbacks.setdefault(move.main_after, move.time)
        times: dict[int, datetime] = {}
        for entry in self.document.get("snapshot-log") or ():
            snapshot, time = entry["snapshot-id"], _time(entry["timestamp-ms"])
            if snapshot not in rollbacks or time < rollbacks[snapshot]:
                times.setdefault(snapshot, time)
        return times

    def published(self, snapshot: Mapping[str, Any]) -> datetime:
        """The moment a snapshot was published. It was written before that, by as long as its batch was checked."""
        time = self._published.get(snapshot["snapshot-id"])
        return _time(snapshot["timestamp-ms"]) if time is None else time

    def became_main(self, snapshot: Mapping[str, Any]) -> datetime:
        """The last time that main moved to a snapshot, also back to it."""
        log = self.document.get("snapshot-log") or ()
        times = [_time(entry["timestamp-ms"]) for entry in log if entry["snapshot-id"] == snapshot["snapshot-id"]]
        return times[-1] if times else self.published(snapshot)


def read(catalog: Catalog, identifier: str) -> Metadata | None:
    """The table's current metadata; None where there is no such table."""
    try:
        current = catalogs.client_of(catalog).current(identifier)
        if current is None:
            return None
        if not current.document["table-uuid"] or not current.document["schemas"]:
            raise ValueError(f"{current.location} is no metadata of a table")
    except Exception as error:  # a broken catalog raises errors of its library or of the file system
        raise unreachable(catalog, error) from None
    return Metadata(current.location, current.document, current.files)


def names(catalog: Catalog) -> tuple[str, ...]:
    """The names of all tables of a catalog."""
    try:
        return catalogs.client_of(catalog).tables()
    except Exception as error:
        raise unreachable(catalog, error) from None


def probe(catalog: Catalog, identifier: str) -> None:
    """Tries without a change whether a table may be created and changed. Raises an error with what is missing."""
    try:
        catalogs.client_of(catalog).probe(identifier)
    except Exception as error:
        raise unreachable(catalog, error, "does not allow this") from None


def unreachable(catalog: Catalog, error: Exception, predicate: str = "cannot be read") -> SluiceError:
    """The error for a catalog that failed. An error of the setup, such as a missing secret, is returned as it is."""
    if isinstance(error, SetupError):
        return error
    error_text = (str(error) or type(error).__name__).splitlines()[0]
    hint = error.hint if isinstance(error, catalogs.RequestFailed) else ""
    fields = dataclasses.fields(catalog.options)
    options = " and ".join(
        f"`{field.name}`" for field in fields if "option" in field.metadata and getattr(catalog.options, field.name)
    )
    hint = hint or f"see {options} of the catalog `{catalog.name}`"
    is_of_one = isinstance(error, catalogs.RequestFailed) and not error.of_all
    system = "" if is_of_one else f"the catalog `{catalog.name}`"
    return CatalogAway("catalog-unreachable", f"the catalog `{catalog.name}` {predicate}: {error_text}", hint, system)


@dataclass(frozen=True)
class DataFile:
    """A file of rows."""

    location: str
    rows: int
    bytes: int


def data_files(table: Metadata, snapshot: Mapping[str, Any]) -> tuple[DataFile, ...]:
    """The data files of a snapshot, without its delete files. *Cost*: reads its manifests."""
    manifests = [
        record["manifest_path"] for record in records(table.files, snapshot["manifest-list"]) if not record.get("content")
    ]
    entries = (entry for manifest in manifests for entry in records(table.files, manifest) if entry["status"] != _DELETED)
    files = (entry["data_file"] for entry in entries)
    return tuple(
        DataFile(data_file["file_path"], data_file["record_count"], data_file["file_size_in_bytes"]) for data_file in files
    )


def newest_time(table: Metadata, column: str) -> datetime | None:
    """The newest time in a column, by the bounds of the table's files; None where they have none. *Cost*: reads every manifest,
    each once per process."""
    field = next(
        (candidate for candidate in table.schema["fields"] if candidate["name"] == column and candidate["type"] == "timestamptz"),
        None,
    )
    main = table.main
    if field is None or main is None or "manifest-list" not in main:
        return None
    manifests = [record["manifest_path"] for record in records(table.files, main["manifest-list"]) if not record.get("content")]
    bounds = [_latest_bound(table.files, manifest, field["id"]) for manifest in manifests]
    latest = max((bound for bound in bounds if bound is not None), default=None)
    return None if latest is None else datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=latest)


@lru_cache(maxsize=10_000)
def _latest_bound(files: TableFiles, manifest: str, field: int) -> int | None:
    latest = None
    for entry in records(files, manifest):
        bounds = entry["data_file"]["upper_bounds"] or ()
        for bound in (
            column_bound["value"] for column_bound in bounds if column_bound["key"] == field and entry["status"] != _DELETED
        ):
            micros = int.from_bytes(bound, "little", signed=True)
            latest = micros if latest is None else max(latest, micros)
    return latest


def records(files: TableFiles, location: str) -> list[Any]:
    """The records of an Avro file, such as Iceberg's manifests."""
    import fastavro

    try:
        return list(fastavro.reader(BytesIO(files.read(location))))
    except (EOFError, IndexError, KeyError, struct.error, zlib.error) as error:
        raise ValueError(f"{location} is damaged: {error}") from None


def summary(snapshot: Mapping[str, Any] | None) -> Mapping[str, str]:
    return (snapshot or {}).get("summary") or {}


def _is_ours(snapshot: Mapping[str, Any]) -> bool:
    return any(name.startswith("sluice.") for name in summary(snapshot))


def rows(snapshot_summary: Mapping[str, str]) -> int:
    """The number of rows of a snapshot, by its summary: rows that are marked deleted are still in files."""
    return int(snapshot_summary.get("total-records", 0)) - int(snapshot_summary.get("total-position-deletes", 0))


def _time(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)


def _by_id(entries: Any, key: str, id_: int) -> Mapping[str, Any]:
    entry: Mapping[str, Any] = next(candidate for candidate in entries if candidate[key] == id_)
    return entry
