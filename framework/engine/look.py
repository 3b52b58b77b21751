"""A table's state without Spark: PyIceberg reads the same catalog in some milliseconds. Looks, never changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from framework.engine import protocol
from framework.engine.protocol import Position, Snapshot, TableState
from framework.engine.session import database, warehouse
from framework.plan.model import Catalog, Table

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

_opened: dict[Catalog, Any] = {}


def table(catalog: Catalog, identifier: str) -> IcebergTable | None:
    from pyiceberg.exceptions import NoSuchTableError

    if not database(catalog).exists():
        return None
    try:
        found: IcebergTable = _catalog(catalog).load_table(identifier)
    except NoSuchTableError:
        return None
    return found


def state(table_: Table) -> TableState | None:
    """The table's state, or None where it does not exist or has no snapshot."""
    found = table(table_.catalog, table_.identifier)
    main = found.current_snapshot() if found else None
    if found is None or main is None:
        return None
    said = found.properties.get(protocol.POSITION)
    position = Position.read(said) if said else None
    known = {snapshot.snapshot_id: snapshot for snapshot in found.metadata.snapshots}
    return TableState(
        str(found.metadata.table_uuid),
        main.snapshot_id,
        dict(_ancestors(known, main.snapshot_id, position.snapshot if position else None)),
        position,
        found.properties.get(protocol.OWNER),
    )


def _ancestors(known: dict[int, IcebergSnapshot], snapshot: int | None, until: int | None) -> Iterator[tuple[int, Snapshot]]:
    while snapshot in known:
        found = known[snapshot]
        yield snapshot, Snapshot(snapshot, found.parent_snapshot_id, found.sequence_number or 0)
        if snapshot == until:
            return
        snapshot = found.parent_snapshot_id


def _catalog(catalog: Catalog) -> Any:
    if catalog not in _opened:
        from pyiceberg.catalog.sql import SqlCatalog

        # The name is part of a table's key in the database: another name would see no tables.
        _opened[catalog] = SqlCatalog(catalog.name, uri=f"sqlite:///{database(catalog)}", warehouse=warehouse(catalog))
    return _opened[catalog]
