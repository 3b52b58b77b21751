"""Tables for readers by HTTP, made without a JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest

from framework.core.rules import protocol
from framework.host.plans import make
from framework.plan import Plan
from framework.systems import catalogs
from tests.support.spec_parts import ORDERS

LOCAL = "catalog: lake\ntype: sql\nuri: sqlite:///lake.db\nwarehouse: warehouse\n"
ROWS = pyarrow.table({"id": pyarrow.array([1, 2, 3], pyarrow.int64())})
CLIENT, SECRET = "reader", "a secret of readers"


def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, catalog: str = LOCAL) -> Plan:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir(exist_ok=True)
    (tmp_path / "specs" / "a.yaml").write_text(ORDERS.format(catalog=catalog), encoding="utf-8")
    return make(tmp_path / "specs")


def fill(plan: Plan) -> Any:
    """Writes a table with rows, a staged branch and a property of Sluice, and a table of bad rows, without a JVM."""
    catalog = catalogs.client_of(plan.catalogs[0])
    catalog.prepare()
    by_pyiceberg = catalog._by_pyiceberg()  # type: ignore[attr-defined]
    by_pyiceberg.create_namespace("shop")
    table = by_pyiceberg.create_table("shop.orders", ROWS.schema, properties={protocol.POSITION: "secret offsets"})
    table.append(ROWS)
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "sluice_staged").commit()
    bad = by_pyiceberg.create_table("shop.orders__bad_rows", ROWS.schema, properties={protocol.OF: "x"})
    bad.append(ROWS)
    return table
