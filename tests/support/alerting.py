"""Specs of two tables with a mail server and an alert, and pipelines that are paused since some time."""

from __future__ import annotations

from datetime import datetime

from framework.base import iso_times
from framework.core.rules import journal

ORDERS = """
topic: orders
value: json
columns: {id: int}
---
pipeline: orders
from: {topic: orders}
tags: {tier: gold}
into: {table: shop.orders}
---
pipeline: copy
from: {topic: orders}
into: {table: shop.copy}
"""


def mail_by(port: int) -> str:
    """A document of a mail server on this machine."""
    return f"---\nmail: main\nhost: 127.0.0.1\nport: {port}\nfrom: sluice@example.com\ntls: none\n"


def alert(when: str, more: str = "", notify: str = "[{email: {to: [ops@example.com]}}]", name: str = "stopped") -> str:
    """A document of an alert, with `more` options."""
    return f"---\nalert: {name}\nwhen: {when}\nnotify: {notify}\n{more}\n"


def pause(*names: str, since: datetime) -> None:
    for name in names:
        record = journal.pause(name)
        file = journal.file(name)
        file.write_text(file.read_text().replace(str(record.paused), iso_times.text(since.replace(microsecond=0))))
