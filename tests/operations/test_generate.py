"""Generated messages, what the plan refuses of them, and their way into a real Kafka."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, TopicPartition

from framework.base.errors import SluiceError, SpecError, UnreachableError
from framework.base.types import DATE, FLOAT, TIMESTAMP, TIMESTAMP_NTZ, Type
from framework.documents.topic.generated import Unsuited, constant, parts
from framework.host.cli import main
from framework.host.plans import make
from framework.operations.send import generate
from framework.plan import Cluster, SecretStore, Security, Topic
from tests.support.time_limits import bar
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2026, 1, 5, 10, 0, tzinfo=timezone.utc)

TOPIC = """
cluster: main
bootstrap: "{bootstrap}"
---
topic: things
kafka_name: {name}
partitions: 4
key: {{format: string, as: owner}}
headers: {{source: string}}
value: json
columns:
  side: string
  count: int
  small: tinyint
  share: double
  fine: double
  amount: decimal(38,20)
  open: boolean
  day: date
  at: timestamp
  seen: {{type: timestamp, format: epoch_millis}}
  number: string
  place: struct<building string, Room struct<floor int>>
generate:
  rate: 10/s
  columns:
{columns}
---
topic: silent
value: string
"""
COLUMNS = """
    owner: {pattern: "User_[1-9]"}
    source: {one_of: [shop, web]}
    side: {one_of: [BUY, "a \\"b\\" ü"]}
    count: {between: [1, 6]}
    small: {one_of: [-128, 127]}
    share: {between: [0, 1.0]}
    fine: {between: [0, 0.0009]}
    amount: {between: [0.5, 99999999999]}
    open: {one_of: ["true", "false"]}
    day: {now: true}
    at: {now: true}
    seen: {now: true}
    number: {between: [5, 7]}
    place.building: {pattern: "[A-C]-?\\\\d{2,3}"}
    place.Room.floor: {between: [1, 3]}
"""


def project(folder: Path, columns: str = COLUMNS, bootstrap: str = "127.0.0.1:1", name: str = "things") -> Path:
    specs = folder / "specs"
    specs.mkdir(exist_ok=True)
    (specs / "a.yaml").write_text(TOPIC.format(bootstrap=bootstrap, name=name, columns=columns), encoding="utf-8")
    return specs


def things(folder: Path, columns: str = COLUMNS, **settings: str) -> Topic:
    return next(topic for topic in make(project(folder, columns, **settings)).topics if topic.name == "things")


def some(topic: Topic, count: int, seed: int | None = 7) -> list[generate.GeneratedMessage]:
    return list(itertools.islice(generate.messages(topic, seed, START), count))


def problems(folder: Path, columns: str) -> list[str]:
    with pytest.raises(SpecError) as error:
        things(folder, "".join(f"    {line}\n" for line in columns.strip().splitlines()))
    return [str(problem).split(": ", 1)[1] for problem in error.value.problems]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_messages(tmp_path: Path) -> None:
    topic = things(tmp_path)
    assert some(topic, 200) == some(topic, 200)
    assert some(topic, 200) != some(topic, 200, seed=8)
    assert some(topic, 200, seed=None) != some(topic, 200, seed=None)


@pytest.mark.slow
def test_each_column_is_generated_as_declared(tmp_path: Path) -> None:
    messages = some(things(tmp_path), 2000)
    values: list[dict[str, Any]] = [json.loads(message.value or b"", parse_float=str) for message in messages]
    assert {message.key for message in messages} == {f"User_{number}".encode() for number in range(1, 10)}
    assert {message.headers for message in messages} == {(("source", b"shop"),), (("source", b"web"),)}
    assert {value["side"] for value in values} == {"BUY", 'a "b" ü'}
    assert {value["count"] for value in values} == {1, 2, 3, 4, 5, 6}
    assert {value["small"] for value in values} == {-128, 127}
    assert {value["open"] for value in values} == {True, False}
    assert {value["number"] for value in values} == {"5", "6", "7"}
    assert all(re.fullmatch(r"0\.\d\d?|1\.0", value["share"]) for value in values)
    assert len({value["share"] for value in values}) > 90
    assert len({float(value["fine"]) for value in values}) == 10
    assert all(re.fullmatch(r"\d{1,11}\.\d{20}", value["amount"]) for value in values)
    assert max(len(value["amount"]) for value in values) == 32  # no digit is lost to a float
    assert all(re.fullmatch(r"[ABC]-?\d{2,3}", value["place"]["building"]) for value in values)
    assert {value["place"]["Room"]["floor"] for value in values} == {1, 2, 3}
    assert "owner" not in values[0]
    assert "source" not in values[0]


def test_a_share_of_the_messages_comes_again_and_times_lie_in_the_last_days(tmp_path: Path) -> None:
    topic = things(tmp_path, COLUMNS.replace("day: {now: true}", "day: {last: 3d}"))
    assert topic.generator is not None
    repeating = replace(topic, generator=replace(topic.generator, repeats=0.2))
    messages = some(repeating, 2000)
    assert 1500 < len(set(messages)) < 1700
    assert {json.loads(message.value or b"")["day"] for message in messages} == {
        "2026-01-02",
        "2026-01-03",
        "2026-01-04",
        "2026-01-05",
    }


def with_outliers(folder: Path, outliers: str) -> Path:
    specs = project(folder)
    text = (specs / "a.yaml").read_text(encoding="utf-8")
    written = "".join(f"    {line}\n" for line in outliers.strip().splitlines())
    (specs / "a.yaml").write_text(
        text.replace("---\ntopic: silent", f"  outliers:\n{written}---\ntopic: silent"), encoding="utf-8"
    )
    return specs


def test_a_share_of_the_messages_has_the_values_of_outliers_instead(tmp_path: Path) -> None:
    specs = with_outliers(
        tmp_path,
        """
- {share: 0.1, columns: {share: {between: [-9, -1]}}}
- {share: 0.2, columns: {share: {between: [900, 950]}, side: {one_of: [BUY]}}}
""",
    )
    topic = next(topic for topic in make(specs).topics if topic.name == "things")
    messages = some(topic, 3000)
    assert messages == some(topic, 3000)
    values = [json.loads(message.value or b"") for message in messages]
    low = [value for value in values if value["share"] < 0]
    high = [value for value in values if value["share"] >= 900]
    assert 240 < len(low) < 360 and 520 < len(high) < 680
    assert all(0 <= value["share"] <= 1 for value in values if value not in low and value not in high)
    assert {value["side"] for value in high} == {"BUY"}
    assert {value["side"] for value in low} == {"BUY", 'a "b" ü'}
    assert {frozenset(value) for value in values} == {frozenset(values[0])}


def problems_of_outliers(folder: Path, outliers: str) -> list[str]:
    with pytest.raises(SpecError) as error:
        make(with_outliers(folder, outliers))
    return [str(problem).split(": ", 1)[1] for problem in error.value.problems]


def test_outliers_are_checked_as_columns_are(tmp_path: Path) -> None:
    assert problems_of_outliers(tmp_path, "- {share: 0.6, columns: {sidd: {one_of: [BUY]}, count: {between: [1.5, 6]}}}") == [
        "unknown-column: there is no column `sidd`\n  hint: did you mean `side`?",
        "cannot-generate: `1.5` is not of the type of `count`, int\n  hint: write only values that are int",
    ]


def test_outliers_cannot_be_more_than_all_messages(tmp_path: Path) -> None:
    outlier = "- {share: 0.6, columns: {side: {one_of: [BUY]}}}\n"
    assert problems_of_outliers(tmp_path, 2 * outlier) == [
        "out-of-range: the `share` of all `outliers` together is 1.2, more than 1\n  hint: write smaller shares, such as `0.01`"
    ]


def test_time_advances_at_the_rate(tmp_path: Path) -> None:
    values = [json.loads(message.value or b"") for message in some(things(tmp_path), 12)]
    assert (values[0]["at"], values[0]["day"], values[0]["seen"]) == ("2026-01-05T10:00:00.000Z", "2026-01-05", 1767607200000)
    assert (values[11]["at"], values[11]["seen"]) == ("2026-01-05T10:00:01.100Z", 1767607201100)


def test_a_text_is_the_whole_message(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    spec = 'cluster: main\nbootstrap: "127.0.0.1:1"\n---\ntopic: lines\nvalue: string\n'
    spec += 'generate: {rate: 1/s, columns: {value: {pattern: "[ab]"}}}\n'
    (tmp_path / "specs" / "a.yaml").write_text(spec)
    assert {message.value for message in some(make(tmp_path / "specs").topics[0], 50)} == {b"a", b"b"}


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("User_[1-9]", r"User_[1-9]"),
        ("[a-cX_.-]{3}", r"[a-cX_.-]{3}"),
        (r"\d{1,4}\.\[\]x?", r"\d{1,4}\.\[\]x?"),
        (r"[\]\\\-]{5}", r"[\]\\\-]{5}"),
        ("é[0-9A-F]{0,2}é", "é[0-9A-F]{0,2}é"),
    ],
)
def test_generated_texts_match_their_pattern(tmp_path: Path, pattern: str, fits: str) -> None:
    topic = things(tmp_path, f"    side: {{pattern: '{pattern}'}}\n")
    texts = [json.loads(message.value or b"")["side"] for message in some(topic, 400)]
    assert [text for text in texts if not re.fullmatch(fits, text)] == []
    assert len(set(texts)) > 3


@pytest.mark.parametrize(
    ("pattern", "fault", "hint"),
    [
        ("a*", "has `*` at character 2", "write a limit"),
        ("a+", "has `+` at character 2", "write a limit"),
        ("a{2,}", "has `{` at character 2", "{n,m}"),
        ("a??", "has `?` at character 3", "once"),
        ("a.b", "has `.` at character 2", "`\\.`"),
        ("(ab)", "has `(` at character 1", "groups"),
        ("a|b", "has `|` at character 2", "one_of"),
        ("^a", "has `^` at character 1", "whole text"),
        ("a$", "has `$` at character 2", "whole text"),
        ("[ab", "has `[` at character 1", "end the class"),
        ("ab]", "has `]` at character 3", "`\\]`"),
        ("ab\\", "has `\\` at character 3", "`\\\\`"),
        ("[]", "has the class `[]`", "name the characters"),
        ("[^a]", "has the class `[^a]`", "name the characters"),
        ("[z-a]", "has the range `z-a`", "goes up"),
        ("[a-é]", "has the range `a-é`", "ASCII"),
        (r"\w", r"has `\w`", "a class"),
        ("a{3,2}", "repeats at least 3 and at most 2 times", "smaller"),
        ("a{999}b{9}", "can be longer than 1000", "less often"),
    ],
)
def test_an_unsupported_pattern_is_refused(pattern: str, fault: str, hint: str) -> None:
    with pytest.raises(Unsuited) as error:
        parts(pattern)
    assert (error.value.code, fault in error.value.message, hint in error.value.hint) == ("bad-pattern", True, True), error.value


def test_the_plan_refuses_values_that_cannot_be_generated(tmp_path: Path) -> None:
    texts = problems(
        tmp_path,
        """
side: {pattern: "a*"}
count: {between: [1.5, 6]}
small: {between: [0, 128]}
share: {one_of: [much]}
fine: {pattern: "[0-9]"}
amount: {one_of: [1, 0.000000000000000000001]}
open: {between: [0, 1]}
day: {one_of: [monday]}
at: {between: [1, 2]}
seen: {one_of: [today]}
number: {now: true}
place: {one_of: [here]}
place.room.floor: {between: [1, 2]}
sidd: {one_of: [BUY]}
owner: {between: [1, 9]}
place.Room.floor: {now: true}
""",
    )
    assert [text.split("\n")[0] for text in texts] == [
        "bad-pattern: the pattern `a*` has `*` at character 2, which is not supported",
        "cannot-generate: `1.5` is not of the type of `count`, int",
        "cannot-generate: `128` is not of the type of `small`, tinyint",
        "cannot-generate: `much` is not of the type of `share`, double",
        "cannot-generate: `fine` is double, and `pattern` cannot generate double",
        "cannot-generate: `0.000000000000000000001` is not of the type of `amount`, decimal(38,20)",
        "cannot-generate: `open` is boolean, and `between` cannot generate boolean",
        "cannot-generate: `monday` is not of the type of `day`, date",
        "cannot-generate: `at` is timestamp, and `between` cannot generate timestamp",
        "cannot-generate: `today` is not of the type of `seen`, bigint",
        "cannot-generate: `place` is a struct",
        "unknown-column: there is no column `place.room.floor`",
        "unknown-column: there is no column `sidd`",
        "cannot-generate: `place.Room.floor` is int, and `now` cannot generate int",
    ]
    hints = {text.split("`")[1]: text.split("hint: ")[1] for text in texts}
    assert hints["place"] == "generate each of its fields, such as `place.building`"
    assert hints["place.room.floor"] == "did you mean `place.Room.floor`?"
    assert hints["sidd"] == "did you mean `side`?"


@pytest.mark.slow
def test_messages_of_the_shipped_topics_have_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_VAR_SALES_FORMAT", "json")  # by default a schema that a registry has writes them
    topics = [topic for topic in make(ROOT / "specs").topics if topic.generator]
    assert {topic.name for topic in topics} == {"clicks", "users", "stock_trades", "sensor_data", "customers", "sales_orders"}
    for topic in topics:
        messages = some(topic, 500)
        names = {column.name for column in topic.columns if not column.name.startswith("_")} - set(topic.key_columns)
        values = [json.loads(message.value or b"") for message in messages]
        rows = [value["after"] for value in values] if topic.value == "debezium_json" else values
        assert {frozenset(row) for row in rows} == {frozenset(names)}
    readings = [
        json.loads(message.value or b"") for topic in topics if topic.name == "sensor_data" for message in some(topic, 5000)
    ]
    assert len({reading["device_id"] for reading in readings}) == 20
    assert {name: len({reading["location"][name] for reading in readings}) for name in ("building", "floor", "zone")} == {
        "building": 5, "floor": 10, "zone": 4,
    }  # fmt: skip


KEYED = """
cluster: main
bootstrap: "127.0.0.1:1"
---
topic: numbered
key: {format: long, as: id}
value: string
generate: {rate: 1/s, columns: {value: {one_of: [x]}, id: {between: [-5, 5]}}}
---
topic: described
key: {format: json, columns: {order: {type: long, required: true}, place: struct<floor int>}}
value: json
columns: {a: int}
generate: {rate: 1/s, columns: {a: {between: [1, 9]}, order: {between: [1, 9]}, place.floor: {one_of: [3]}}}
"""


def test_keys_are_written_as_they_are_read(tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "a.yaml").write_text(KEYED, encoding="utf-8")
    numbered, described = sorted(make(specs).topics, key=lambda topic: topic.name, reverse=True)
    keys = {int.from_bytes(message.key or b"", "big", signed=True) for message in some(numbered, 200)}
    assert keys == set(range(-5, 6))
    assert {(message.key or b"")[-21:] for message in some(described, 200)} == {b'"place": {"floor": 3}}'[-21:]}
    assert {frozenset(json.loads(message.key or b"")) for message in some(described, 9)} == {frozenset({"order", "place"})}
    assert {frozenset(json.loads(message.value or b"")) for message in some(described, 9)} == {frozenset({"a"})}


def run(specs: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["generate", *arguments, "--specs", str(specs)])
    return done.exit_code, done.output


def test_the_command_refuses_bad_options(tmp_path: Path) -> None:
    specs = project(tmp_path)
    assert run(specs, "thing") == (1, "unknown-topic: there is no topic `thing`\n  hint: did you mean `things`?\n")
    status, output = run(specs, "silent")
    assert (status, output.split("\n")[0]) == (1, "no-generate: the topic `silent` has no `generate:`")
    assert "a.yaml:" in output
    for option in (("--rate", "10"), ("--for", "1"), ("--for", "-5s"), ("--count", "0")):
        status, output = run(specs, "things", *option)
        assert status == 2, output
        assert option[0] in output


@pytest.mark.kafka
def test_all_messages_arrive(tmp_path: Path, kafka: str) -> None:
    topic = things(tmp_path, bootstrap=kafka, name="arrives")
    assert generate.ensure_topic(topic, SecretStore())
    assert not generate.ensure_topic(topic, SecretStore())
    messages = [*some(topic, 3000), generate.GeneratedMessage(None, None)]
    counts: list[int] = []
    sent = generate.send(topic, SecretStore(), messages, tell=counts.append)
    assert sent.messages == counts[-1] == 3001
    arrived = consumed(kafka, "arrives", 4)
    assert Counter((message.key, message.value, message.headers) for message in arrived) == Counter(
        (message.key, message.value, message.headers) for message in messages
    )


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.timed
def test_the_command_keeps_the_pace(tmp_path: Path, kafka: str) -> None:
    specs = project(tmp_path, bootstrap=kafka, name="paced")
    began = time.monotonic()
    status, output = run(specs, "things", "--rate", "25/s", "--for", "2s", "--seed", "3")
    assert status == 0, output
    assert time.monotonic() - began > 1.9
    assert re.fullmatch(r"things: created paced in Kafka, 4 partitions\nthings: 50 messages sent in (\S+) s, (\S+)/s\n", output)
    assert 50 / bar(2.5) <= float(output.split()[-1].removesuffix("/s")) < 26
    assert len(consumed(kafka, "paced", 4)) == 50
    status, output = run(specs, "things", "--count", "2000")
    assert (status, output.startswith("things: 2,000 messages sent in ")) == (0, True), output
    assert len(consumed(kafka, "paced", 4)) == 2050


@pytest.mark.kafka
def test_ctrl_c_loses_nothing_that_was_counted(tmp_path: Path, kafka: str) -> None:
    specs = project(tmp_path, bootstrap=kafka, name="interrupted")
    command = [sys.executable, "-c", "from framework.host.cli import main; main()", "generate", "things", "--rate", "500/s"]
    child = subprocess.Popen(
        [*command, "--specs", str(specs)],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert "created" in child.stdout.readline()

    def sent() -> bool:
        with suppress(KafkaException):  # nobody leads a partition of a topic that was just created
            return bool(consumed(kafka, "interrupted", 4))
        return False

    until(sent, "no message was sent")
    child.send_signal(signal.SIGINT)
    output = child.communicate(timeout=20)[0]
    assert child.returncode == 0
    report = re.match(r"things: (\d+) messages sent", output)
    assert report, output
    assert int(report[1]) == len(consumed(kafka, "interrupted", 4)) > 0


@pytest.mark.kafka
def test_a_message_that_kafka_refuses_is_an_error(tmp_path: Path, kafka: str) -> None:
    topic = things(tmp_path, bootstrap=kafka, name="refuses")
    generate.ensure_topic(topic, SecretStore())
    with pytest.raises(UnreachableError, match=r"Kafka accepted 1 messages for refuses, but not 1: .*[Mm]essage") as error:
        generate.send(
            topic, SecretStore(), [generate.GeneratedMessage(None, b"x"), generate.GeneratedMessage(None, b"x" * 2_000_000)]
        )
    assert error.value.code == "not-delivered"
    with pytest.raises(SluiceError) as refused:
        generate.ensure_topic(replace(topic, kafka_name="no slash/"), SecretStore())
    assert refused.value.code in ("topic-not-created", "kafka-unreachable")


@pytest.mark.usefixtures("kafka_away")
def test_a_missing_kafka_is_an_error(tmp_path: Path) -> None:
    topic = replace(things(tmp_path), cluster=Cluster(name="main", bootstrap="127.0.0.1:1", security=Security()))
    with pytest.raises(UnreachableError) as error:
        generate.ensure_topic(topic, SecretStore())
    assert error.value.code == "kafka-unreachable"


def consumed(bootstrap: str, name: str, partitions: int) -> list[generate.GeneratedMessage]:
    """All messages of the topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    try:
        places = [TopicPartition(name, number, 0) for number in range(partitions)]
        count = sum(consumer.get_watermark_offsets(place, timeout=10)[1] for place in places)
        consumer.assign(places)
        messages: list[Any] = []
        while count > len(messages):
            for message in consumer.consume(count - len(messages), 5.0):
                assert message.error() is None
                headers: Any = message.headers() or ()
                messages.append(generate.GeneratedMessage(message.key(), message.value(), tuple(headers)))
        return messages
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (DATE, "20260105", "2026-01-05"),
        (TIMESTAMP, "2026-01-05", "2026-01-05T00:00:00Z"),
        (TIMESTAMP, "2026-01-05T10:00:00+02:00", "2026-01-05T08:00:00Z"),
        (TIMESTAMP_NTZ, "2026-01-05 10:00:00.5", "2026-01-05T10:00:00.500000"),
        (FLOAT, "1.5", 1.5),
    ],
)
def test_a_constant_is_written_as_the_decoder_reads_it(type_: Type, text: str, value: Any) -> None:
    assert constant(type_, text) == value


@pytest.mark.parametrize(("type_", "text"), [(TIMESTAMP_NTZ, "2026-01-05T10:00:00Z"), (FLOAT, "1e39"), (TIMESTAMP, "soon")])
def test_a_constant_that_no_message_can_have_is_refused(type_: Type, text: str) -> None:
    with pytest.raises((ValueError, OverflowError)):
        constant(type_, text)
