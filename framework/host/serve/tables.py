"""The tables of a catalog as readers see them: only main, and no tables of bad rows or of other owners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from framework.core.iceberg import metadata, published
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol
from framework.plan import Catalog
from framework.systems import catalogs


@dataclass(frozen=True)
class Tables:
    """The tables of one catalog."""

    catalog: Catalog
    hidden: frozenset[str]  # names

    def names(self, namespace: str | None = None) -> Iterator[tuple[str, str]]:
        """The namespace and the name of each table."""
        for identifier in sorted(set(metadata.names(self.catalog)) - self.hidden):
            table_namespace, _, name = identifier.rpartition(".")
            if namespace in (None, table_namespace):
                yield table_namespace, name

    def loaded(self, namespace: str, name: str, vended: bool) -> Mapping[str, Any] | None:
        """The answer to a reader about a table; None if readers see no such table."""
        identifier = f"{namespace}.{name}"
        table = None if identifier in self.hidden else metadata.read(self.catalog, identifier)
        if table is None or protocol.OF in table.properties:
            return None
        access = self._access(table) if vended else {}
        location = str(table.document["location"])
        return {
            "metadata-location": table.file,
            "metadata": _document(table),
            "config": {**catalogs.client_of(self.catalog).for_readers(), **access},
            **({"storage-credentials": [{"prefix": location, "config": access}]} if access else {}),
        }

    def _access(self, table: Metadata) -> Mapping[str, str]:
        return catalogs.client_of(self.catalog).keys_for(str(table.document["location"]))


def _document(table: Metadata) -> Mapping[str, Any]:
    if table.main is not None:
        return published.document(table, table.main["snapshot-id"])
    nothing: Mapping[str, Any] = {"refs": {}, "snapshots": [], "snapshot-log": [], "metadata-log": []}
    return {**table.document, **nothing, "properties": published.properties(table)}
