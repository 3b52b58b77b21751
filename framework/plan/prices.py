"""The prices of storage, requests and processors, and those of the service with which the cost is compared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, kw_only=True)
class TableflowPrices:
    """List prices of Confluent Tableflow, in the currency of the other prices."""

    topic_hour: float
    processed_gb: float
    as_of: date


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices of one day. A gigabyte has 1,073,741,824 bytes, as on the bills of AWS and Confluent, and a month has thirty days."""

    name: str
    currency: str
    storage_gb_month: float
    put_1000: float
    get_1000: float
    catalog_1000: float
    core_hour: float
    as_of: date
    tableflow: TableflowPrices | None = None
