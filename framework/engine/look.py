"""A table's state without Spark: PyIceberg reads the same catalog in some milliseconds. Looks, never changes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from framework.engine import attempts, protocol
from framework.engine.existing import existing as read_existing
from framework.engine.protocol import Position, Snapshot, TableState
from framework.engine.session import database, warehouse
from framework.errors import UnreachableError
from framework.plan.change import Existing
from framework.plan.model import Catalog, Table

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

_opened: dict[tuple[str, str, str], Any] = {}
_LARGE = 100_000  # messages of a batch that says how fast batches are: a smaller one is mostly what comes before and after
_RECENT = 20  # snapshots


def table(catalog: Catalog, identifier: str) -> IcebergTable | None:
    """The table as it is now, or None."""
    if not database(catalog).exists():
        return None
    from pyiceberg.exceptions import NoSuchTableError

    try:
        found: IcebergTable = _catalog(catalog).load_table(identifier)
    except NoSuchTableError:
        return None
    except Exception as error:  # whatever a broken catalog makes of PyIceberg, SQLAlchemy or the file system
        said = (str(error) or type(error).__name__).splitlines()[0]
        hint = f"see `uri` and `warehouse` of the catalog `{catalog.name}`"
        raise UnreachableError("catalog-unreachable", f"the catalog `{catalog.name}` cannot be read: {said}", hint) from None
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


def existing(table_: Table) -> Existing | None:
    """What the table is, apart from its rows; None where it does not exist."""
    found = table(table_.catalog, table_.identifier)
    if found is None:
        return None
    return read_existing(
        found.schema().model_dump_json(),
        found.spec().model_dump_json(),
        found.sort_order().model_dump_json(),
        found.format_version,
        found.properties.get(protocol.OWNER),
    )


def speed(table_: Table) -> float | None:
    """Messages a second of the fastest of the last batches, from the beginning of an attempt until it was staged; None where
    none was large."""
    found = table(table_.catalog, table_.identifier)
    main = found.current_snapshot() if found else None
    if found is None or main is None:
        return None
    known = {snapshot.snapshot_id: snapshot for snapshot in found.metadata.snapshots}
    recent = (snapshot for _, snapshot in islice(_ancestors(known, main.snapshot_id, None), _RECENT))
    told = [(snapshot, Position.read(snapshot.position)) for snapshot in recent if snapshot.position]
    speeds = []
    for (snapshot, to), (_, from_) in pairwise(told):
        messages = sum(end - from_.ends.get(partition, end) for partition, end in to.ends.items())
        seconds = known[snapshot.id].timestamp_ms / 1000 - attempts.began(snapshot.attempt) if snapshot.attempt else 0.0
        if messages >= _LARGE and seconds > 0:
            speeds.append(messages / seconds)
    return max(speeds, default=None)


def _ancestors(known: dict[int, IcebergSnapshot], snapshot: int | None, until: int | None) -> Iterator[tuple[int, Snapshot]]:
    while snapshot in known:
        found = known[snapshot]
        said = found.summary.additional_properties if found.summary else {}
        yield snapshot, Snapshot(
            snapshot, found.parent_snapshot_id, found.sequence_number or 0, said.get(protocol.ATTEMPT), said.get(protocol.POSITION)
        )  # fmt: skip
        if snapshot == until:
            return
        snapshot = found.parent_snapshot_id


def _catalog(catalog: Catalog) -> Any:
    # The name is part of a table's key in the database: another name would see no tables.
    key = (catalog.name, f"sqlite:///{database(catalog)}", warehouse(catalog))
    if key not in _opened:
        from pyiceberg.catalog.sql import SqlCatalog

        _opened[key] = SqlCatalog(key[0], uri=key[1], warehouse=key[2])
    return _opened[key]
