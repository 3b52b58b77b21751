"""A small shop: one pipeline, `trades`, whose table nobody has made yet or PyIceberg makes by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from click.testing import CliRunner, Result

from framework.base.errors import Where
from framework.core.rules import protocol
from framework.core.rules.protocol import Position
from framework.plan import Pipeline
from tests.support.commands import without
from tests.support.project import plan_for

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

NOWHERE = "127.0.0.1:1"  # where no Kafka is
SPECS = """
topic: trades
value: json
columns:
{columns}
{topic}
---
pipeline: trades
from: {{topic: trades}}
{more}
into: {{table: shop.trades, kafka_columns: false{into}}}
"""
COPY = """---
pipeline: copy
from: {table: shop.trades}
into: {table: shop.copy, write: replace}
"""


def specs(columns: str, more: str = "", into: str = "", topic: str = "") -> str:
    indented = "".join(f"  {column}\n" for column in columns.split("; "))
    return SPECS.format(columns=indented, more=more, into=into, topic=topic)


def planned(folder: Path, columns: str, more: str = "", into: str = "", topic: str = "") -> Pipeline:
    return plan_for(folder, NOWHERE, specs(columns, more, into, topic)).pipelines[0]


def pointed(where: Where) -> str:
    """The text of the line from this place on."""
    return Path(where.file).read_text().splitlines()[where.line - 1][where.column - 1 :]


def sluice(*arguments: str) -> Result:
    """Runs a command on the only specs of this folder."""
    from framework.host.cli import main

    (folder,) = Path("specs").iterdir()
    result = CliRunner().invoke(main, [*arguments, "--specs", str(folder)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return without(result, "--specs", str(folder))


def catalog() -> Catalog:
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog("lake", uri="sqlite:///lake.db", warehouse=f"file://{Path.cwd()}/warehouse")


def made_by_hand(owner: str | None, name: str = "trades", spec: str = "", source: str = "") -> None:
    """Makes a table `n bigint, price double` with one row and its position: in the topic `trades`, or in the table `source`."""
    import pyarrow

    catalog().create_namespace_if_not_exists("shop")
    rows = pyarrow.table({"n": pyarrow.array([1], pyarrow.int64()), "price": [1.5]})
    table = catalog().create_table(f"shop.{name}", rows.schema, properties={protocol.OWNER: owner} if owner else {})
    table.append(rows)
    main = table.current_snapshot()
    assert main is not None
    topics, ends = {"trades": "t"}, {"trades/0": 1}
    if source:
        source_table = catalog().load_table(source)
        source_snapshot = source_table.current_snapshot()
        assert source_snapshot is not None
        topics, ends = {source: str(source_table.metadata.table_uuid)}, {f"{source}/0": source_snapshot.sequence_number or 0}
    position = Position(
        attempt="a",
        batch=1,
        cluster="c",
        topics=topics,
        ends=ends,
        snapshot=main.snapshot_id,
        sequence=main.sequence_number or 0,
        spec=spec,
    )
    with table.transaction() as transaction:
        transaction.set_properties({protocol.POSITION: position.text()} if owner else {"x": "y"})


def append(name: str) -> None:
    """Appends one row."""
    table = catalog().load_table(f"shop.{name}")
    table.append(table.scan(limit=1).to_arrow())


OTHER = json.dumps({"pipeline": "other", "cluster": "main", "topics": []})
