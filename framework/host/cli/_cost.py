"""The cost of tables, as columns, lines and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from framework.base.amounts import counted, size
from framework.base.clock import utc_now
from framework.host.cli import _grid
from framework.host.cli._grid import GridColumn, grid
from framework.host.cli._specs import hinted, hinted_in
from framework.operations.observe.cost import GETS_OF_A_BATCH, Money, TableCost, TableflowCost, costs, prices_of, tableflow_cost

if TYPE_CHECKING:
    from framework.plan import Pipeline, Plan
    from framework.plan.prices import Prices

_COLUMNS = (
    GridColumn("table", folds=True), GridColumn("stored", right=True), GridColumn("files", 4, right=True),
    GridColumn("messages", 2, right=True), GridColumn("read", 3, right=True), GridColumn("written", 1, right=True),
    GridColumn("puts", right=True), GridColumn("gets", 5, right=True), GridColumn("catalog", 6, right=True),
    GridColumn("batches", 2, right=True), GridColumn("seconds", right=True),
)  # fmt: skip
_LEGEND = (
    "stored: all files of a table and its bad rows now, also of older versions",
    f"puts, gets: requests of batches to the store; gets are about {GETS_OF_A_BATCH} a batch",
    "catalog: requests of batches to the catalog's server",
    "seconds: of batches; compaction, followers, exports and queries do not count",
)
_NO_PRICES = "no money: write a document `prices` (`sluice docs` has its options)"


def show(plan: Plan, pipelines: Sequence[Pipeline], days: int, as_json: bool) -> int:
    """Prints the costs in the last days. Returns the exit status."""
    today = utc_now().date()
    report = CostReport(tables=costs(plan, pipelines, days, today), days=days, today=today, prices=prices_of(plan))
    if as_json:
        click.echo(json.dumps(hinted_in(report.document(plan.environment)), indent=2, ensure_ascii=False))
    else:
        console = _grid.console()
        console.print(report.block(console.width))
    return 1 if any(table.trouble for table in report.tables) else 0


@dataclass(frozen=True, kw_only=True)
class CostReport:
    """The costs of tables in the days up to `today`."""

    tables: Sequence[TableCost]
    days: int
    today: date
    prices: Prices | None

    @property
    def money(self) -> Money:
        return sum((table.money for table in self.tables if table.money), Money())

    @property
    def tableflow(self) -> TableflowCost | None:
        return tableflow_cost(self.prices, self.tables) if self.prices else None

    def block(self, width: int) -> Group:
        money = (GridColumn(self.prices.currency, right=True),) if self.prices else ()
        rows = [self._row(table) for table in self.tables]
        parts: list[RenderableType] = [grid((*_COLUMNS, *money), rows, width), Text()]
        parts += [Text(line, style="dim") for line in (*self._head(), *_LEGEND)]
        parts += [Text(line) for line in self._money()]
        for table in self.tables:
            if table.trouble:
                parts.append(Text(f"\n{table.pipeline.name}: {table.trouble.code}: {table.trouble.message}", style="red"))
                parts.append(Text(hinted(f"  hint: {table.trouble.hint}")))
        return Group(*parts)

    def document(self, environment: str) -> dict[str, Any]:
        prices, tableflow = self.prices, self.tableflow
        return {
            "environment": environment, "to": str(self.today), "days": self.days,
            "tables": [_table_document(table) for table in self.tables],
            "prices": prices and {"name": prices.name, "currency": prices.currency, "as_of": str(prices.as_of)},
            "money": _money_document(self.money) if prices else None,
            "tableflow": tableflow and prices and prices.tableflow and {
                "topics": tableflow.topics, "read_bytes": tableflow.read_bytes, "price": round(tableflow.price, 4),
                "as_of": str(prices.tableflow.as_of),
            },
        }  # fmt: skip

    def _head(self) -> Iterator[str]:
        yield f"{counted(self.days, 'day')} up to {self.today} (UTC), or those since a table began to count"

    def _row(self, table: TableCost) -> tuple[str, ...]:
        name = table.pipeline.table.identifier
        if table.stored is None:
            cells = ("?" if table.trouble else "–",) * (len(_COLUMNS) - 1)
            return (name, *cells, *(cells[:1] if self.prices else ()))
        done, young = table.done, f" ({counted(table.days, 'day')})" if table.days < self.days else ""
        numbers = (table.stored.files, done.read)
        return (
            f"{name}{young}", size(table.stored.bytes), *(f"{number:,}" for number in numbers), size(done.read_bytes), size(done.bytes),
            *(f"{number:,}" for number in (done.objects, table.gets, table.catalog_requests, done.batches)), f"{done.seconds:,.0f}",
            *([amount(table.money.total)] if table.money else []),
        )  # fmt: skip

    def _money(self) -> Iterator[str]:
        prices, money, tableflow = self.prices, self.money, self.tableflow
        if prices is None:
            yield hinted(_NO_PRICES)
            return
        yield (
            f"{amount(money.total)} {prices.currency}: storage {amount(money.storage)}, requests {amount(money.requests)}, "
            f"processors {amount(money.processors)}; prices of {prices.as_of}"
        )
        if tableflow and prices.tableflow:
            amount_of = f"{counted(tableflow.topics, 'topic')} and {size(tableflow.read_bytes)} of messages, without storage"
            yield f"{amount(tableflow.price)} {prices.currency} in Tableflow: {amount_of}; prices of {prices.tableflow.as_of}"


def amount(money: float) -> str:
    """An amount of money: with more digits where it is little."""
    return f"{money:.4f}" if 0.00005 <= money < 1 else f"{money:,.2f}"


def _table_document(table: TableCost) -> dict[str, Any]:
    done, stored = table.done, table.stored
    numbers = {
        "messages": done.read, "read_bytes": done.read_bytes, "written_bytes": done.bytes, "written_files": done.files,
        "puts": done.objects, "gets": table.gets, "catalog_requests": table.catalog_requests, "batches": done.batches,
        "seconds": round(done.seconds, 3),
    }  # fmt: skip
    return {
        "pipeline": table.pipeline.name, "table": table.pipeline.table.identifier, "days": table.days,
        "stored_bytes": stored and stored.bytes, "stored_files": stored and stored.files,
        **(dict.fromkeys(numbers) if table.trouble else numbers), "money": table.money and _money_document(table.money),
        "code": table.trouble and table.trouble.code, "message": table.trouble and table.trouble.message,
        "hint": table.trouble and table.trouble.hint,
    }  # fmt: skip


def _money_document(money: Money) -> dict[str, float]:
    return {
        "storage": round(money.storage, 4), "requests": round(money.requests, 4), "processors": round(money.processors, 4),
        "total": round(money.total, 4),
    }  # fmt: skip
