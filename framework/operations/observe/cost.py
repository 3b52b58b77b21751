"""The cost of tables: bytes, requests and seconds from what each table keeps of its batches by day, and money by the spec's prices.

*Limit* Counted are batches and what is stored. Compaction, expiry, followers, exports and queries are not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial

from framework.base.errors import SluiceError
from framework.core.iceberg import metadata
from framework.core.rules import daily_work
from framework.core.rules.daily_work import DayWork
from framework.plan import Engine, Pipeline, Plan
from framework.plan.prices import Prices
from framework.systems.catalogs import Stored, client_of

MOST_DAYS = daily_work.KEPT_DAYS
GETS_OF_A_BATCH = 12
"""Requests by which a batch reads the table, about; DECISIONS.md, 2026-11-30, says how they were counted."""
_GB = 1 << 30
_DAYS_OF_A_MONTH = 30
_AT_ONCE = 8  # tables


@dataclass(frozen=True, kw_only=True)
class Money:
    """The price of a table, by its parts."""

    storage: float = 0.0
    requests: float = 0.0
    processors: float = 0.0

    @property
    def total(self) -> float:
        return self.storage + self.requests + self.processors

    def __add__(self, other: Money) -> Money:
        return Money(
            storage=self.storage + other.storage, requests=self.requests + other.requests,
            processors=self.processors + other.processors,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TableCost:
    """The cost of a pipeline's table with its bad rows. `days` are those that are counted, which are fewer than were asked for where the
    table is younger. `stored` is None where there is no table; with `trouble`, nothing is known."""

    pipeline: Pipeline
    days: int
    done: DayWork = field(default_factory=DayWork)
    stored: Stored | None = None
    money: Money | None = None
    trouble: SluiceError | None = None

    @property
    def gets(self) -> int:
        return self.done.batches * GETS_OF_A_BATCH

    @property
    def catalog_requests(self) -> int:
        return self.done.batches * client_of(self.pipeline.table.catalog).batch_requests


@dataclass(frozen=True, kw_only=True)
class TableflowCost:
    """The price of the same topics in Tableflow, without storage. A topic that several pipelines read counts once."""

    topics: int
    read_bytes: int
    price: float


def costs(plan: Plan, pipelines: Sequence[Pipeline], days: int, today: date) -> tuple[TableCost, ...]:
    """The costs of pipelines in the days up to `today`. Asks the catalogs, and lists the folders of the tables."""
    with ThreadPoolExecutor(_AT_ONCE) as workers:
        tables = tuple(workers.map(partial(_cost, days, today), pipelines))
    prices, core_count = prices_of(plan), cores(plan.engine)
    if prices is None:
        return tables
    return tuple(table if table.stored is None else replace(table, money=_money(table, prices, core_count)) for table in tables)


def prices_of(plan: Plan) -> Prices | None:
    documents = plan.documents_of("prices")
    prices: Prices | None = documents[0].value if documents else None
    return prices


def tableflow_cost(prices: Prices, tables: Sequence[TableCost]) -> TableflowCost | None:
    """The price of the tables' topics in Tableflow; None without its prices."""
    listed = prices.tableflow
    if listed is None:
        return None
    days: dict[tuple[str, str], int] = {}
    sizes: dict[frozenset[tuple[str, str]], int] = {}
    for table in (table for table in tables if table.stored is not None):
        topics = frozenset((topic.cluster.name, topic.kafka_name) for topic in table.pipeline.topics)
        sizes[topics] = max(sizes.get(topics, 0), table.done.read_bytes)
        days |= {topic: max(days.get(topic, 0), table.days) for topic in topics}
    read_bytes, counted_topics = 0, set[tuple[str, str]]()
    for topics, size in sorted(sizes.items(), key=lambda item: -len(item[0])):
        if not topics <= counted_topics:  # else pipelines of more topics have read these, too
            read_bytes += size
            counted_topics |= topics
    price = sum(days.values()) * 24 * listed.topic_hour + read_bytes / _GB * listed.processed_gb
    return TableflowCost(topics=len(days), read_bytes=read_bytes, price=price)


def cores(engine: Engine) -> int:
    """The cores of Spark: of a cluster, as far as the spec's settings say."""
    if local := re.fullmatch(r"local(?:\[(\d+|\*)(?:, ?\d+)?\])?", engine.master):
        return len(os.sched_getaffinity(0)) if local[1] == "*" else int(local[1] or 1)
    conf = dict(engine.conf)
    with suppress(ValueError):  # Spark will say what is wrong
        executors = int(conf.get("spark.executor.instances", 1)) * int(conf.get("spark.executor.cores", 1))
        return int(conf.get("spark.cores.max", executors))
    return 1


def _cost(days: int, today: date, pipeline: Pipeline) -> TableCost:
    try:
        own_table, bad_table = (
            metadata.read(pipeline.table.catalog, name) for name in (pipeline.table.identifier, pipeline.table.bad_rows)
        )
        stored = _stored([table for table in (own_table, bad_table) if table])
    except SluiceError as error:
        return TableCost(pipeline=pipeline, days=0, trouble=error)
    except OSError as error:
        hint = "`sluice doctor` tries what the login may do with the files of tables; it must be allowed to list them"
        trouble = SluiceError("no-listing", f"its files cannot be listed: {error}", hint)
        return TableCost(pipeline=pipeline, days=0, trouble=trouble)
    if own_table is None:
        return TableCost(pipeline=pipeline, days=0)
    kept_days = {today - timedelta(days=number) for number in range(MOST_DAYS)}  # a clock may have been wrong
    by_day = {day: done for day, done in daily_work.read(own_table.properties).items() if day in kept_days}
    asked_days = {day: done for day, done in by_day.items() if today - timedelta(days=days) < day}
    age = (today - min(by_day)).days + 1 if by_day else days
    done = sum(asked_days.values(), DayWork())
    return TableCost(pipeline=pipeline, days=max(1, min(days, age)), done=done, stored=stored)


def _stored(tables: Sequence[metadata.Metadata]) -> Stored:
    parts = [table.files.stored([str(table.document["location"])]) for table in tables]
    return Stored(files=sum(part.files for part in parts), bytes=sum(part.bytes for part in parts))


def _money(cost: TableCost, prices: Prices, core_count: int) -> Money:
    stored_bytes = cost.stored.bytes if cost.stored else 0
    requests = cost.done.objects * prices.put_1000 + cost.gets * prices.get_1000 + cost.catalog_requests * prices.catalog_1000
    return Money(
        storage=stored_bytes / _GB * cost.days / _DAYS_OF_A_MONTH * prices.storage_gb_month,
        requests=requests / 1000,
        processors=cost.done.seconds / 3600 * core_count * prices.core_hour,
    )
