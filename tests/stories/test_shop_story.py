"""The shipped specs of the shop, with Avro and a registry: plain Python computes the same table and weekly file."""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import json
import re
from collections import defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import fastavro
import pytest
import requests
from confluent_kafka import Consumer, TopicPartition

from tests.support.commands import Commands
from tests.support.follower_parts import ran
from tests.support.mail_server import mail_server
from tests.support.registry_project import Registered
from tests.support.stores import STORAGE, store
from tests.support.topic_messages import messages_of

__all__ = ["store"]  # a fixture

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SHIPPED = Path(__file__).resolve().parents[2] / "specs" / "shop" / "sales.yaml"
SECRET = "a-secret-of-the-shop-0123456789abcdef"
MAILED = """---
export: mailed
from: {{table: {namespace}.trades}}
window: {{last: week, by: ordered_at, timezone: Europe/Berlin}}
query: select count(*) as orders from input
file: {{format: csv, to: "s3://sluice/{namespace}_{{window_start:%Y-%m-%d}}.csv"}}
STORAGE
notify: [{{email: {{to: [sales@example.com], link_valid_for: 7d}}}}]
---
mail: main
host: 127.0.0.1
port: PORT
from: shop@example.com
tls: none
"""
MASKED = ("customer_id", "customer_name", "customer_email", "customer_phone")
Row = dict[str, Any]


@pytest.fixture
def shop(trades: Registered, monkeypatch: pytest.MonkeyPatch) -> Registered:
    for name, value in {"VAR_SALES_FORMAT": "avro", "SECRET_PII": SECRET, "SECRET_S3_KEY": "sluice"}.items():
        monkeypatch.setenv(f"SLUICE_{name}", value)
    monkeypatch.setenv("SLUICE_SECRET_S3_SECRET", "only-on-this-machine")
    text = SHIPPED.read_text(encoding="utf-8").replace("{", "{{").replace("}", "}}")
    text = text.replace("partitions: 3", "partitions: 3\nkafka_name: {topic}").replace("shop.sales_orders", "{namespace}.trades")
    trades.template = text
    return trades


def orders_of(shop: Registered) -> list[Row]:
    """Returns the topic's orders, the oldest first, without messages that are not Avro."""
    consumer = Consumer({"bootstrap.servers": shop.bootstrap, "group.id": "story", "auto.offset.reset": "earliest"})
    places = [TopicPartition(shop.topic, number, 0) for number in range(3)]
    consumer.assign(places)
    message_count = sum(consumer.get_watermark_offsets(place)[1] for place in places)
    schemas: dict[int, Any] = {}
    orders = []
    for _ in range(message_count):
        message = consumer.poll(10)
        assert message is not None and message.error() is None
        value = message.value() or b""
        if value[:1] == b"\0":
            id_ = int.from_bytes(value[1:5], "big")
            if id_ not in schemas:
                answer = requests.get(f"{shop.registry}/schemas/ids/{id_}", timeout=20).json()
                schemas[id_] = fastavro.parse_schema(json.loads(answer["schema"]))
            row: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), schemas[id_], None)
            orders.append((message.timestamp()[1], message.partition(), message.offset(), row))
    consumer.close()
    return [row for *_, row in sorted(orders, key=lambda entry: entry[:3])]


def first_of_each(orders: list[Row]) -> list[Row]:
    """Returns the first message of each order."""
    by_id: dict[str, Row] = {}
    for order in orders:
        by_id.setdefault(order["order_id"], order)
    return sorted(by_id.values(), key=lambda row: str(row["order_id"]))


def hashed(value: str) -> str:
    """Returns the hash that `mask` documents: an HMAC with a key derived from the secret."""
    key = hmac.digest(SECRET.encode(), b"sluice hmac", hashlib.sha256)
    return hmac.digest(key, value.encode(), hashlib.sha256)[:16].hex()


def landed(order: Row) -> Row:
    """Returns the masked row of an order."""
    product, customer = order["product"], order["customer"]
    return {
        **{name: order[name] for name in ("order_id", "channel", "ordered_at", "quantity", "unit_price", "currency")},
        **{f"product_{name}": product[name] for name in ("id", "name", "category")},
        "customer_id": hashed(customer["id"]),
        "customer_name": "***",
        "customer_email": hashed(customer["email"]),
        "customer_phone": f"***{customer['phone'][-2:]}",
        "customer_country": customer["country"],
        "amount": order["quantity"] * order["unit_price"],
    }


def last_week(orders: list[Row]) -> list[list[str]]:
    """Returns the rows of the weekly file."""
    zone = ZoneInfo("Europe/Berlin")
    today = datetime.now(zone).date()
    monday = today - timedelta(days=today.weekday() + 7)
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for order in orders:
        day = order["ordered_at"].astimezone(zone).date()
        if monday <= day < monday + timedelta(days=7):
            groups[order["channel"], order["customer"]["country"], order["product"]["category"]].append(order)
    return [
        [
            *group, str(len(rows)), str(len({row["customer"]["id"] for row in rows})), str(sum(row["quantity"] for row in rows)),
            str(sum((row["quantity"] * row["unit_price"] for row in rows), Decimal(0))), "EUR",
        ]
        for group, rows in sorted(groups.items())
    ]  # fmt: skip


def test_table_and_weekly_file_equal_plain_python(shop: Registered, store: str) -> None:
    commands = Commands()
    with mail_server() as (box, port):
        shop.template += MAILED.replace("STORAGE", (STORAGE % store).replace("{", "{{").replace("}", "}}")).replace(
            "PORT", str(port)
        )
        specs = str(Path(shop.pipeline.where.file).parent)
        commands.always = ("--specs", specs)
        for seed in ("7", "8"):
            commands.ok("generate", "sales_orders", "--count", "1500", "--seed", seed)
            shop.produce([{"value": b"not avro"}])
            shop.run()
        commands.ok(
            "generate", "sales_orders", "--count", "300", "--seed", "7"
        )  # a part of the first ones again, after all others
        shop.run()
        assert len(orders_of(shop)) == 3300
        orders = first_of_each(orders_of(shop))
        assert 2800 < len(orders) < 2900, "of 3,000 some 5 % come twice, and then 300 again"
        expected = list(map(landed, orders))
        rows_ = [{name: row[name] for name in expected[0]} for row in shop.rows()]
        assert sorted(rows_, key=lambda row: str(row["order_id"])) == expected
        assert [row["code"] for row in shop.rows(bad=True)] == ["undecodable", "undecodable"]

        output = commands.ok("export", "weekly_sales")
        file = re.search(r"exports/weekly_sales_[\d-]+\.csv", output)
        assert file is not None, output
        head, *rows = csv.reader(io.StringIO(Path(file[0]).read_text(encoding="utf-8-sig")))
        assert head == ["channel", "country", "category", "orders", "customers", "items", "amount", "currency"]
        assert rows == last_week(orders)
        assert len(rows) == 4 * 5 * 3

        assert "mailed to sales@example.com" in output
        assert "mailed to sales@example.com" in commands.ok("export", "mailed")
    weekly, mail = box.mails
    assert re.fullmatch(r"Weekly sales \d\d \w+", str(weekly["Subject"]))
    (attached,) = weekly.iter_attachments()
    assert attached.get_payload(decode=True) == Path(file[0]).read_bytes()

    ran(shop)
    clean = {row["order_id"]: row for _, row in messages_of(shop.bootstrap, "clean_orders")}
    assert clean.keys() == {order["order_id"] for order in orders}
    for order in expected:
        row = clean[order["order_id"]]
        assert {name: row[name] for name in MASKED} == {name: order[name] for name in MASKED}

    body = mail.get_body()
    assert body is not None
    (link,) = re.findall(r"http://\S+", body.get_content())
    fetched = requests.get(link, timeout=20)
    assert fetched.content.decode("utf-8-sig").split() == ["orders", str(sum(int(row[3]) for row in rows))]
