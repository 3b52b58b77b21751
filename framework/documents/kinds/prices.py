"""The prices of storage, requests and processors, by which `sluice status --cost` says what tables cost in money.

There are no built-in prices, since they differ by region and contract: copy those of your bill, and the day on which you did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from framework.documents.draft import Draft
from framework.language.kind import Kind
from framework.language.options import Document, OptionGroup, option
from framework.language.scalars import Day, Scalar
from framework.plan import PlannedDocument
from framework.plan.prices import Prices as Planned, TableflowPrices

EXAMPLE = """\
prices: eu
currency: EUR
storage_gb_month: 0.023
requests_1000: {put: 0.005, get: 0.0004}
core_hour: 0.05
as_of: 2026-11-01
"""
Currency = Annotated[
    str,
    Scalar(noun="a currency", code="bad-currency", example="EUR", pattern=r"^[A-Z]{3}$(?!\n)",
           rule="its three capital letters, such as `EUR` or `USD`", suggest=lambda text: text.strip().upper()),
]  # fmt: skip


@dataclass(frozen=True)
class Requests(OptionGroup):
    """The price of a thousand requests to the object store and the catalog."""

    put: float = option("Of those that write: PUT, COPY, POST and LIST.", at_least=0, at_most=1_000_000, example="0.005")
    get: float = option("Of those that read: GET and HEAD.", at_least=0, at_most=1_000_000, example="0.0004")
    catalog: float = option(
        "Of those to a catalog, which AWS takes money for.", default=0.0, at_least=0, at_most=1_000_000, example="0.001"
    )


@dataclass(frozen=True)
class Tableflow(OptionGroup):
    """List prices of Confluent Tableflow, with which the cost is compared."""

    topic_hour: float = option("An hour of one topic.", at_least=0, at_most=1_000_000, example="0.1")
    processed_gb: float = option("A gigabyte of messages.", at_least=0, at_most=1_000_000, example="0.04")
    as_of: Day = option("The day on which you read the prices.", example="2026-11-01", aka=["date"])


@dataclass(frozen=True)
class Prices(Document):
    """The prices of storage, requests and processors."""

    currency: Currency = option("The currency of all prices.", example="EUR")
    storage_gb_month: float = option(
        "A gigabyte in the object store for a month.", at_least=0, at_most=1_000_000, example="0.023"
    )
    core_hour: float = option(
        "An hour of one processor core.", at_least=0, at_most=1_000_000, example="0.05", aka=["cpu_hour", "vcpu_hour"]
    )
    as_of: Day = option("The day on which you read the prices.", example="2026-11-01", aka=["date"])
    requests_1000: Requests = option(
        "A thousand requests to the object store and the catalog; default: they cost nothing.",
        default=Requests(put=0.0, get=0.0, catalog=0.0),
        example="{put: 0.005, get: 0.0004}",
    )
    tableflow: Tableflow | None = option(
        "Prices of Confluent Tableflow, in the same currency. Without them there is no comparison.",
        default=None, example="{topic_hour: 0.1, processed_gb: 0.04, as_of: 2026-11-01}",
    )  # fmt: skip


def plan_prices(draft: Draft, documents: tuple[Prices, ...]) -> None:
    for spec in documents[:1]:
        if spec.gaps or spec.requests_1000.gaps or (spec.tableflow and spec.tableflow.gaps):
            continue
        tableflow = None if spec.tableflow is None else _tableflow(spec.tableflow)
        planned = Planned(
            name=spec.name, currency=spec.currency, storage_gb_month=spec.storage_gb_month, put_1000=spec.requests_1000.put,
            get_1000=spec.requests_1000.get, catalog_1000=spec.requests_1000.catalog, core_hour=spec.core_hour, as_of=spec.as_of,
            tableflow=tableflow,
        )  # fmt: skip
        draft.documents.append(
            PlannedDocument(kind="prices", name=spec.name, where=spec.place(), value=planned, says=tuple(_says(planned)))
        )


def _tableflow(spec: Tableflow) -> TableflowPrices:
    return TableflowPrices(topic_hour=spec.topic_hour, processed_gb=spec.processed_gb, as_of=spec.as_of)


def _says(prices: Planned) -> Iterator[str]:
    yield (
        f"in {prices.currency} of {prices.as_of}: {prices.storage_gb_month:g} a GB and month, "
        f"{prices.put_1000:g} and {prices.get_1000:g} for 1,000 writes and reads, {prices.core_hour:g} a core and hour"
    )
    if prices.tableflow:
        listed = prices.tableflow
        yield f"Tableflow of {listed.as_of}: {listed.topic_hour:g} a topic and hour, {listed.processed_gb:g} a GB"


KIND = Kind(Prices, plan_prices, one_only=True)
