"""`sluice topics`, `sluice send` and `sluice peek`, with a real Kafka and without one."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from framework.core.kafka.newest_messages import KafkaMessage
from framework.core.schemas.decode import MessageReader
from framework.host.cli import main
from framework.host.plans import make
from framework.machine.processes import began
from framework.messages.encoding.json_text import Decoded, in_one_line, indented
from framework.messages.formats import DeclaredColumns, OneColumn, find
from tests.support.commands import Commands
from tests.support.project import wait_for_partitions
from tests.support.selection import few
from tests.support.shop import NOWHERE
from tests.support.spec_parts import LAKE
from tests.support.time_limits import bar

ROOT = Path(__file__).resolve().parents[2]
SPECS = """
cluster: main
bootstrap: "{bootstrap}"
---
{lake}---
topic: orders
kafka_name: {name}_orders
partitions: 3
key: {{format: string, as: owner}}
headers: {{source: string}}
value: json
columns: {{id: bigint}}
generate: {{rate: 10/s, columns: {{owner: {{pattern: "[a-z]"}}, id: {{between: [1, 9]}}}}}}
---
topic: lines
kafka_name: {name}_lines
partitions: 1
key: {{format: long, as: number}}
value: string
---
topic: blobs
kafka_name: {name}_blobs
key: {{format: json, columns: {{a: int}}}}
value: bytes
---
pipeline: orders
from: {{topic: orders}}
into: {{table: shop.orders}}
"""


def project(folder: Path, bootstrap: str = NOWHERE, name: str = "raw") -> Path:
    (folder / "specs").mkdir()
    (folder / "specs" / "a.yaml").write_text(SPECS.format(lake=LAKE, bootstrap=bootstrap, name=name))
    return folder / "specs"


class Shop(Commands):
    """Specs whose topics have unique names in Kafka."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.name = f"t{uuid.uuid4().hex[:8]}"
        self.bootstrap = bootstrap
        self.specs = project(folder, bootstrap, self.name)
        self.always = ("--specs", str(self.specs))
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def peeked(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.ok("peek", *arguments, "--json").splitlines()]


@pytest.fixture
def shop(tmp_path: Path, kafka: str) -> Iterator[Shop]:
    new_shop = Shop(tmp_path, kafka)
    yield new_shop
    names = [f"{new_shop.name}_{topic}" for topic in ("orders", "lines", "blobs")]
    for future in new_shop.admin.delete_topics(names).values():
        future.exception()


# What a message holds


@pytest.mark.parametrize(
    ("format_", "data", "decoded"),
    [
        ("string", "ü".encode(), Decoded("ü", '"ü"')),
        ("string", b"\xff\x00", Decoded("0xff00", None)),
        ("long", struct.pack(">q", -5), Decoded("-5", "-5")),
        ("long", b"five", Decoded("five", None)),
        ("bytes", b"hi", Decoded("0x6869", '"6869"')),
        ("bytes", b"", Decoded("0x", '""')),
        ("json", b' {"a": 1.10}\n', Decoded(' {"a": 1.10}\n', '{"a": 1.10}')),
        ("json", b"[1", Decoded("[1", None)),
        ("json", b"NaN", Decoded("NaN", None)),
        ("json", b"[" * 100_000, Decoded("[" * 100_000, None)),
    ],
)
def test_bytes_are_shown_by_their_format(format_: str, data: bytes, decoded: Decoded) -> None:
    decoder = find("key", format_)
    assert isinstance(decoder, DeclaredColumns | OneColumn)
    assert decoder.decoded(data) == decoded


def test_json_keeps_every_digit() -> None:
    text = '{"a":1.1000000000000000001,"b" : [ ],"c":[1,{"d":{}}],\n"e":"x, \\": y","f":' + "9" * 5000 + "}"
    assert in_one_line(text).startswith('{"a": 1.1000000000000000001, "b": [], "c": [1, {"d": {}}], "e": "x, \\": y", "f": 999')
    lines = indented(text)
    assert lines[:7] == ["{", '  "a": 1.1000000000000000001,', '  "b": [],', '  "c": [', "    1,", "    {", '      "d": {}']
    assert lines[7:10] == ["    }", "  ],", '  "e": "x, \\": y",']
    assert "".join(lines).replace(" ", "") == in_one_line(text).replace(" ", "")
    assert indented("{}") == ["{}"]
    assert indented("3") == ["3"]


@pytest.mark.parametrize(
    ("topic", "value", "parts", "reason"),
    [
        ("orders", b'{"id": "no number, which takes a closer look"}', {}, None),
        ("orders", b'{"id": ' + b"9" * 5000 + b"}", {}, None),
        ("orders", b'{"id": ' + b"[" * 2000 + b"]" * 2000 + b"}", {}, None),
        ("orders", None, {}, ("null_value", "the message has no value")),
        ("orders", b" ", {}, ("undecodable", "the value is empty")),
        ("orders", b"nope", {}, ("undecodable", "the value is not JSON")),
        ("orders", b'{"id": NaN}', {}, ("undecodable", "the value is not JSON")),
        ("orders", b"\xff", {}, ("undecodable", "the value is not UTF-8 text")),
        ("orders", b"[1]", {}, ("undecodable", "the value is no JSON object but a list")),
        ("orders", b"1.5", {}, ("undecodable", "the value is no JSON object but a number")),
        ("orders", b"true", {}, ("undecodable", "the value is no JSON object but true or false")),
        ("orders", b"null", {}, ("undecodable", "the value is no JSON object but null")),
        ("orders", b"{} {}", {}, ("undecodable", "the value has more text behind the JSON object")),
        ("orders", b"{}", {"key": b"\xff"}, ("undecodable_key", "the key is not UTF-8 text")),
        ("orders", b"{}", {"headers": (("source", b"\xff"),)}, ("undecodable_header", "the header `source` is not UTF-8 text")),
        ("orders", b"{}", {"headers": (("source", b"\xff"), ("source", b"ok"), ("other", b"\xff"))}, None),
        ("lines", b"any text", {"key": b"12345678"}, None),
        ("lines", b"any text", {"key": b"five"}, ("undecodable_key", "the key is not a number of 8 bytes")),
        ("lines", b"\xff", {}, ("undecodable", "the value is not UTF-8 text")),
        ("blobs", b"\xff", {"key": b'{"a": 1}'}, None),
        ("blobs", b"\xff", {"key": b"1"}, ("undecodable_key", "the key is no JSON object but a number")),
        ("blobs", None, {}, ("null_value", "the message has no value")),
    ],
)
def test_obvious_bad_rows_are_marked(
    topic: str, value: bytes | None, parts: dict[str, Any], reason: tuple[str, str] | None, tmp_path: Path
) -> None:
    plan = make(project(tmp_path))
    declared_topic = next(candidate for candidate in plan.topics if candidate.name == topic)
    message = KafkaMessage(
        partition=0, offset=0, timestamp=None, key=parts.get("key"), value=value, headers=parts.get("headers", ())
    )
    assert MessageReader(topic=declared_topic, secrets=plan.secrets).decode_message(message).bad_reason == reason


# Without a Kafka


@pytest.mark.parametrize(
    "words",
    [
        *(
            ("topics",),
            ("topics", "create", "orders"),
            ("topics", "delete", "blobs"),
            ("peek", "orders"),
            ("peek", "orders", "--follow"),
            ("send", "orders", "{}"),
        ),
        ("generate", "orders"),
    ],
)
@pytest.mark.timed
def test_an_unreachable_kafka_is_an_error(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = project(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))  # in which no Kafka runs
    began = time.monotonic()
    result = CliRunner().invoke(main, [*words, "--specs", str(specs)])
    assert time.monotonic() - began < bar(5)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"kafka-unreachable: Kafka at {NOWHERE} does not answer\n  hint: is it running?")


def test_a_kafka_of_this_machine_at_another_port_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = project(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    place = tmp_path / "home" / "services" / "kafka"
    place.mkdir(parents=True)
    running = {"pid": os.getpid(), "began": began(os.getpid()), "ports": [19492, 19493]}
    (place / "pid").write_text(json.dumps(running))
    result = CliRunner().invoke(main, ["topics", "--specs", str(specs)])
    hint = f"Kafka runs on this machine at 127.0.0.1:19492, and the cluster `main` says {NOWHERE}: correct its `bootstrap`"
    assert (result.exit_code, result.stderr) == (1, f"kafka-unreachable: Kafka at {NOWHERE} does not answer\n  hint: {hint}\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("peek", "order"), "unknown-topic: there is no topic `order`\n  hint: did you mean `orders`?"),
        (("topics", "create", "line"), "did you mean `lines`?"),
        (("topics", "delete", "orders", "line"), "did you mean `lines`?"),
        (("send", "raw_order", "{}"), "did you mean `raw_orders`?"),
        (
            ("send", "orders", "nope"),
            "not-its-format: `orders` takes one JSON object, and the value is not JSON\n  hint: --raw sends",
        ),
        (("send", "orders", "[1]"), "the value is no JSON object but a list"),
        (("send", "lines", "x", "--key", "five"), "the keys of `lines` are long, and the key is not a whole number of 8 bytes"),
        (("send", "lines", "x", "--key", str(2**63)), "is not a whole number of 8 bytes"),
        (("send", "blobs", "x", "--key", "[]"), "the keys of `blobs` are json, and the key is no JSON object but a list"),
    ],
)
def test_wrong_values_are_refused_before_kafka_is_asked(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [*words, "--specs", str(project(tmp_path))])
    assert result.exit_code == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("send", "orders", "{}", "--header", "source"), "`source` is no header: write name=value"),
        (("topics", "--json", "create", "orders"), "write --json after `create`, if it takes it"),
        (("topics", "--env", "local", "create", "orders"), "write --env after `create`"),
        (("peek", "orders", "--follow", "--from", "earliest", "--count", "3"), "--count has no effect here"),
    ],
)
def test_options_without_effect_are_wrong_usage(words: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, message in result.stderr) == (2, True), result.output


# With a Kafka


@pytest.mark.kafka
def test_topics_are_listed_and_created(shop: Shop) -> None:
    listed = json.loads(shop.ok("topics", "--json"))["topics"]
    assert [(row["topic"], row["there"], row["partitions"], row["messages"]) for row in listed] == [
        ("orders", False, None, None), ("lines", False, None, None), ("blobs", False, None, None)
    ]  # fmt: skip
    assert "orders: `sluice topics create orders` creates it" in shop.ok("topics")
    assert shop.ok("topics", "create", "orders") == f"orders: created {shop.name}_orders in Kafka, 3 partitions\n"
    assert shop.ok("topics", "create", f"{shop.name}_orders") == f"orders: {shop.name}_orders exists already, 3 partitions\n"
    shop.ok("topics", "create", "lines")
    shop.ok("send", "orders", "{}", "--partition", "1")

    orders, lines, _ = json.loads(shop.ok("topics", "--json"))["topics"]
    assert (orders["there"], orders["messages"], orders["read_by"], lines["read_by"]) == (True, 1, ["orders"], [])
    assert [(partition["partition"], partition["start"], partition["end"]) for partition in orders["partitions"]] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 0, 0),
    ]
    assert all(partition["leader"] in partition["replicas"] == partition["in_sync"] for partition in orders["partitions"])
    header, first_line, second_line, third_line, _ = shop.ok("topics").splitlines()
    assert header.split()[:4] == ["topic", "in", "Kafka", "there"]
    broker = str(orders["partitions"][0]["leader"])
    assert first_line.split() == ["orders", f"{shop.name}_orders", "yes", "3", broker, "1", "1", "1", "orders"]
    assert second_line.split()[-1] == "nobody"
    assert third_line.split() == ["blobs", f"{shop.name}_blobs", "no", "nobody"]

    shop.admin.create_partitions([NewPartitions(f"{shop.name}_lines", 2)])[f"{shop.name}_lines"].result()
    wait_for_partitions(shop.admin, f"{shop.name}_lines", 2)
    differs = shop.refused("topics", "create", "lines")
    assert "lines exists already, 2 partitions\n" in differs
    assert "partitions-differ: the spec says 1 partition, Kafka has 2\n  hint: Kafka cannot remove partitions" in differs
    assert "lines: the spec says 1 partition, Kafka has 2\n" in shop.ok("topics")


@pytest.mark.kafka
def test_several_topics_are_created_at_once_and_each_problem_is_told(shop: Shop) -> None:
    created = shop.ok("topics", "create", "orders", "lines", "orders")
    assert created == (
        f"orders: created {shop.name}_orders in Kafka, 3 partitions\nlines: created {shop.name}_lines in Kafka, 1 partition\n"
    )
    assert "there is no topic `linez`" in shop.refused("topics", "create", "blobs", "linez")
    assert f"{shop.name}_blobs" not in shop.admin.list_topics(timeout=10).topics
    shop.admin.create_partitions([NewPartitions(f"{shop.name}_lines", 2)])[f"{shop.name}_lines"].result()
    wait_for_partitions(shop.admin, f"{shop.name}_lines", 2)
    differs = shop.refused("topics", "create", "lines", "blobs")
    assert f"blobs: created {shop.name}_blobs in Kafka" in differs
    assert "partitions-differ: the spec says 1 partition, Kafka has 2" in differs


@pytest.mark.kafka
def test_a_topic_is_deleted_after_a_question(shop: Shop) -> None:
    shop.ok("topics", "create", "lines", "blobs")
    shop.ok("send", "lines", "one")
    question = shop.run("topics", "delete", "lines", "blobs", given=b"n\n")
    assert question.exit_code == 1
    assert f"  topic {shop.name}_lines at {shop.bootstrap}: 1 message in 1 partition\n" in question.output
    assert "Delete these 2 topics? [y/N]" in question.output
    assert {f"{shop.name}_lines", f"{shop.name}_blobs"} <= set(shop.admin.list_topics(timeout=10).topics)
    assert "there is no topic `linez`" in shop.refused("topics", "delete", "blobs", "linez", "--yes")
    assert f"{shop.name}_blobs" in shop.admin.list_topics(timeout=10).topics
    deleted = shop.ok("topics", "delete", "lines", "blobs", "--yes")
    assert f"lines: deleted {shop.name}_lines in Kafka\nblobs: deleted {shop.name}_blobs in Kafka\n" in deleted
    assert not {f"{shop.name}_lines", f"{shop.name}_blobs"} & set(shop.admin.list_topics(timeout=10).topics)
    assert shop.ok("topics", "delete", "lines", "--yes") == f"lines: there is no {shop.name}_lines in Kafka\n"


@pytest.mark.kafka
def test_a_topic_that_a_pipeline_reads_or_fills_is_deleted_only_by_force(shop: Shop) -> None:
    spec = next(shop.specs.glob("*.yaml"))
    spec.write_text(spec.read_text().replace("into: {table: shop.orders}", "into: {table: shop.orders}\nalso: [{topic: lines}]"))
    shop.ok("topics", "create", "orders", "lines", "blobs")
    shop.ok("send", "orders", "-", given=b'{"id": 1}\n{"id": 2}\n')
    output = shop.refused("topics", "delete", "blobs", "orders", "--yes")
    assert f"topic-is-used: the topic {shop.name}_orders has 2 messages in 3 partitions: `orders` reads it, 2 messages" in output
    assert "not loaded yet\n  hint: `sluice topics delete orders --force" in output
    assert f"the topic {shop.name}_lines has 0 messages in 1 partition: `orders` fills it" in shop.refused(
        "topics", "delete", "lines"
    )
    assert f"{shop.name}_blobs" in shop.admin.list_topics(timeout=10).topics, "nothing is deleted if one is refused"
    forced = shop.ok("topics", "delete", "orders", "lines", "--force", "--yes")
    assert "    orders reads it: 2 messages not loaded yet; its rows stay, and its next run is refused until" in forced
    assert "    orders fills it: rows that were sent are not sent again" in forced
    assert f"orders: deleted {shop.name}_orders in Kafka" in forced


LOGIN = 'protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: me, password: "${secret:it}"'


@pytest.mark.kafka
@pytest.mark.parametrize("login", few(["protocol: SSL", LOGIN]))
def test_a_rejected_login_is_not_reported_as_an_unreachable_kafka(
    shop: Shop, login: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_SECRET_IT", "wrong")
    shop.ok("topics", "create", "orders")
    spec = next(path for path in shop.specs.rglob("*.yaml") if "bootstrap" in path.read_text())
    spec.write_text(spec.read_text().replace("\n---", f"\nsecurity: {{{login}}}\n---", 1))
    peeked = shop.refused("peek", "orders")
    assert "kafka-refused: Kafka at 127.0.0.1:" in peeked
    for output in (peeked, shop.ok("plan", "orders"), shop.refused("status")):
        assert " rejected the login: " in output
        assert "correct `security` of the cluster `main`" in output


@pytest.mark.kafka
def test_a_sent_message_is_shown_unchanged(shop: Shop) -> None:
    for topic in ("orders", "lines", "blobs"):
        shop.ok("topics", "create", topic)
    value = '{"id": 1.10, "text": "ü\\u001b"}'
    sent_output = shop.ok(
        "send", "orders", value, "--key", "Ann", "--header", "source=web=x", "--header", "other=", "--partition", "2"
    )
    assert sent_output == f"orders: sent to {shop.name}_orders, partition 2, offset 0\n"
    (row,) = shop.peeked("orders")
    assert abs(time.time() - _seconds(row.pop("timestamp"))) < 60
    assert row == {
        "topic": f"{shop.name}_orders", "partition": 2, "offset": 0, "key": "Ann", "value": {"id": 1.1, "text": "ü\x1b"},
        "headers": [{"name": "source", "value": "web=x"}, {"name": "other", "value": ""}], "bad": None,
    }  # fmt: skip
    output = shop.ok("peek", f"{shop.name}_orders")
    assert "partition 2, offset 0, 2" in output
    assert ", key Ann\n  headers: source=web=x, other=\n" + f"  {value}\n" in output
    assert "`sluice preview orders` shows the rows" in output

    assert "takes one JSON object" in shop.refused("send", "orders", "nope")
    shop.ok("send", "orders", "nope", "--raw", "--partition", "2")
    assert "  nope\n  bad row: undecodable: the value is not JSON\n" in shop.ok("peek", "orders", "--count", "1")
    bad = shop.peeked("orders", "--count", "1")[0]
    assert (bad["value"], bad["value_hex"], bad["bad"]["code"]) == (None, b"nope".hex(), "undecodable")

    shop.ok("send", "lines", "\x1b[31mred", "--key", "-5")
    shop.ok("send", "lines", "plain", "--key", "five", "--raw")
    red, plain = shop.peeked("lines")
    assert (red["key"], red["value"], plain["key"], plain["key_hex"]) == (-5, "\x1b[31mred", None, b"five".hex())
    assert "key -5\n  \\x1b[31mred\n" in shop.ok("peek", "lines")
    shop.ok("send", "blobs", "hi", "--key", '{"a": 1}')
    assert [(message["key"], message["value"]) for message in shop.peeked("blobs")] == [({"a": 1}, "6869")]
    assert "  0x6869\n" in shop.ok("peek", "blobs")
    assert "no-partition" in shop.refused("send", "lines", "x", "--partition", "1")
    assert "it has one partition, 0" in shop.refused("peek", "lines", "--partition", "1")


def _seconds(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.mark.kafka
def test_each_line_of_standard_input_is_a_message(shop: Shop) -> None:
    shop.ok("topics", "create", "orders")
    few_output = shop.ok("send", "orders", "-", "--partition", "0", given=b'{"id": 1}\n{"id": 2}\r\n{"id": 3}')
    assert few_output == "".join(f"orders: sent to {shop.name}_orders, partition 0, offset {offset}\n" for offset in range(3))
    many_output = shop.ok(
        "send", "orders", "-", "--partition", "1", given=b"".join(b'{"id": %d}\n' % number for number in range(500))
    )
    assert many_output == f"orders: 500 messages sent to {shop.name}_orders\n  partition 1: 500, offsets 0 to 499\n"
    output = shop.refused("send", "orders", "-", "--partition", "2", given=b'{"id": 1}\n{"id": 2}\n\n{"id": 4}\n')
    assert "partition 2, offset 1\n" in output
    assert "line 3: `orders` takes one JSON object, and the value is empty; the 2 lines before it were sent" in output
    assert [message["value"]["id"] for message in shop.peeked("orders", "--partition", "2")] == [1, 2]
    assert shop.ok("send", "orders", "-", given=b"") == "orders: nothing was sent\n"


@pytest.mark.kafka
def test_peek_shows_the_first_and_last_messages_without_a_consumer_group(shop: Shop) -> None:
    assert "no-topic: there is no topic" in shop.refused("peek", "orders")
    assert "hint: `sluice topics create orders` creates it" in shop.refused("send", "orders", "{}")
    shop.ok("topics", "create", "orders")
    assert shop.ok("peek", "orders") == f"orders: there are no messages in {shop.name}_orders yet\n"
    assert shop.peeked("orders") == []

    producer = Producer({"bootstrap.servers": shop.bootstrap})
    begin = int(time.time() * 1000) - 60_000
    for number in range(60):  # the timestamps of each partition go on, and those of all are mixed
        producer.produce(f"{shop.name}_orders", b'{"id": %d}' % number, partition=number % 2, timestamp=begin + number)
    producer.flush()
    ids = [message["value"]["id"] for message in shop.peeked("orders", "--count", "7")]
    assert ids == list(range(53, 60))
    assert [message["value"]["id"] for message in shop.peeked("orders")] == list(range(50, 60))
    assert [message["value"]["id"] for message in shop.peeked("orders", "--from", "earliest", "--count", "5")] == list(range(5))
    assert [message["value"]["id"] for message in shop.peeked("orders", "--partition", "1", "--count", "2")] == [57, 59]
    assert len(shop.peeked("orders", "--count", "1000")) == 60
    assert "the last 10 messages of" in shop.ok("peek", "orders")
    groups = shop.admin.list_consumer_groups().result()
    assert [group.group_id for group in groups.valid if group.group_id.startswith("sluice-peek")] == []


@pytest.mark.kafka
def test_offsets_without_messages_are_skipped(shop: Shop) -> None:
    shop.ok("topics", "create", "orders")
    producer = Producer({"bootstrap.servers": shop.bootstrap, "transactional.id": shop.name})
    producer.init_transactions()
    for number in range(12):  # each transaction ends with a marker, and two of three are aborted
        producer.begin_transaction()
        producer.produce(f"{shop.name}_orders", b'{"id": %d}' % number, partition=0)
        producer.commit_transaction() if number % 3 == 0 else producer.abort_transaction()
    assert [message["value"]["id"] for message in shop.peeked("orders", "--count", "2")] == [6, 9]
    assert [message["value"]["id"] for message in shop.peeked("orders", "--count", "3", "--from", "earliest")] == [0, 3, 6]
    producer.begin_transaction()
    producer.produce(f"{shop.name}_orders", b'{"id": 99}', partition=0)
    producer.flush()
    assert [message["value"]["id"] for message in shop.peeked("orders")] == [0, 3, 6, 9]
    producer.abort_transaction()


@pytest.mark.kafka
@pytest.mark.parametrize("start", ["latest", "earliest"])
def test_follow_shows_new_messages_until_ctrl_c(shop: Shop, start: str) -> None:
    shop.ok("topics", "create", "orders")
    shop.ok("send", "orders", "-", given=b"".join(b'{"id": %d}\n' % number for number in range(30)))
    count = ["--count", "4"] if start == "latest" else []
    called = [sys.executable, "-c", "from framework.host.cli import main; main()", "peek", "orders", "--follow", "--json"]
    child = subprocess.Popen(
        [*called, "--from", start, *count, "--specs", str(shop.specs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
    )
    assert child.stdout is not None
    before = [json.loads(child.stdout.readline())["value"]["id"] for _ in range(4 if start == "latest" else 30)]
    assert len(set(before)) == len(before)
    shop.ok("send", "orders", '{"id": 30}')
    assert json.loads(child.stdout.readline())["value"]["id"] == 30
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=20)
    assert (child.returncode, output, errors) == (0, "", "")
