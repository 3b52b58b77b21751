"""Avro through a real registry, Kafka and Spark: every message is a row or a bad row that names its schema."""

from __future__ import annotations

import datetime as dt
import hashlib
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from framework.base.errors import SpecError, UnreachableError
from framework.core.run.run import batches
from framework.core.schemas import schema_lookup
from framework.machine.services.ports import free_port
from tests.support.broken_messages import broken
from tests.support.registry_project import Registered, encoded, framed, record

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def bad(project: Registered) -> list[tuple[Any, ...]]:
    reasons = ((row["code"], row["schema_id"], row["message"]) for row in project.rows(bad=True))
    return sorted(reasons, key=str)


def values(project: Registered, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in names) for row in project.rows())


def test_two_versions_in_one_batch(trades: Registered) -> None:
    first_id = trades.register(record(("id", "long"), ("side", "string")))
    second_id = trades.register(record(("side", "string"), ("id", "long"), ("price", ["null", "double"], {"default": None})))
    trades.send(trades.avro(first_id, {"id": 1, "side": "BUY"}) + trades.avro(second_id, {"id": 2, "side": "SELL", "price": 1.5}))
    trades.run()
    assert values(trades, "id", "side", "price") == [(1, "BUY", None), (2, "SELL", 1.5)]
    trades.assert_exactly_once()


def test_what_is_no_message_of_a_schema(trades: Registered) -> None:
    id_ = trades.register(record(("id", "long"), ("side", "string")))
    good_message = trades.avro(id_, {"id": 1, "side": "BUY"})[0]
    trades.send([
        good_message, good_message[:-1], good_message + b"\0", good_message[:7], b"", b"text", good_message[:5], None,
        b"\0" + (77777).to_bytes(4, "big") + b"x", b"\0\xff\xff\xff\xff",
    ])  # fmt: skip
    trades.run()
    assert values(trades, "id") == [(1,)]
    assert bad(trades) == sorted([
        ("null_value", None, "the message has no value"),
        *[("undecodable", None, "the value does not begin with the id of a schema")] * 2,
        *[("undecodable", id_, "field `side`: the message is cut off")] * 2,
        ("undecodable", id_, "1 byte follows the message"),
        ("undecodable", id_, "field `id`: the message is cut off"),
        ("unknown_schema", 77777, "the registry has no schema 77777"),
        ("unknown_schema", None, "the registry has no schema 4294967295"),  # no INT
    ], key=str)  # fmt: skip
    trades.assert_exactly_once()


def test_a_version_that_comes_while_it_runs(trades: Registered) -> None:
    first_id = trades.register(record(("id", "long")))
    trades.send(trades.avro(first_id, {"id": 1}))
    context = trades.context()
    pipeline = context.plan.pipelines[0]
    list(batches(context, pipeline))
    second_id = trades.register(record(("id", "long"), ("note", ["null", "string"], {"default": None})))
    trades.send(trades.avro(second_id, {"id": 2, "note": "new"}) + trades.avro(first_id, {"id": 3}))
    list(batches(context, pipeline))
    assert values(trades, "id", "note") == [(1, None), (2, "new"), (3, None)]


@pytest.mark.long
def test_a_schema_of_another_subject(trades: Registered) -> None:
    """Messages of a schema that fits are rows, others are bad rows that say why; the registry is asked for each id once."""
    own_id = trades.register(record(("id", "long"), ("price", ["null", "double"], {"default": None})))
    fitting_id = trades.register(record(("id", "int"), name="Other"), f"{trades.topic}-other")
    unfit_id = trades.register(record(("id", "long"), ("more", "string"), name="More"), f"{trades.topic}-more")
    trades.send(
        [
            *trades.avro(own_id, {"id": 1, "price": 2.5}),
            *trades.avro(fitting_id, {"id": 2}),
            *trades.avro(unfit_id, {"id": 3, "more": "x"}),
        ]
    )
    trades.run()
    assert values(trades, "id", "price") == [(1, 2.5), (2, None)]
    assert bad(trades) == [
        ("wrong_schema", unfit_id, f"the value's schema {unfit_id} does not fit the columns: `more` is no column")
    ]
    trades.assert_exactly_once()


def test_types_that_avro_cannot_read_as_one(trades: Registered) -> None:
    """One column has milliseconds and microseconds, an enum and text, or symbols that come and go."""
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    first_id = trades.register(record(
        ("at", millis), ("side", {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}),
        ("deep", {"type": "array", "items": record(("at", millis), name="Deep")}),
    ))  # fmt: skip
    second_id = trades.register(record(
        ("at", micros), ("side", "string"),
        ("deep", {"type": "array", "items": record(("at", micros), name="Deep")}),
    ))  # fmt: skip
    third_id = trades.register(record(
        ("side", {"type": "enum", "name": "Side", "symbols": ["HOLD", "SELL"]}), ("at", ["null", micros]),
    ))  # fmt: skip
    moment = dt.datetime(2026, 1, 5, 10, 0, 0, 123000, dt.timezone.utc)
    trades.send([
        *trades.avro(first_id, {"at": moment, "side": "BUY", "deep": [{"at": moment}]}),
        *trades.avro(second_id, {"at": moment, "side": "free", "deep": [{"at": moment}]}),
        *trades.avro(third_id, {"at": moment, "side": "HOLD"}), *trades.avro(third_id, {"at": None, "side": "SELL"}),
    ])  # fmt: skip
    trades.run()
    # By Spark: PyIceberg 0.12 reads a list of structs that is null as one that is empty.
    rows = trades.sql("select cast(at as string), side, deep[0].at = at, deep is null from {table} order by 1, 2")
    text = "2026-01-05 10:00:00.123"
    assert rows == [
        (None, "SELL", None, True),
        (text, "BUY", True, False),
        (text, "HOLD", None, True),
        (text, "free", True, False),
    ]
    assert bad(trades) == []


def test_a_field_with_another_name(trades: Registered) -> None:
    """Old messages go into the column of the new name, at any depth; an older name that comes back is the same column."""
    old_id = trades.register(record(("id", "long"), ("who", record(("mail", "string"), name="Who"))))
    new_id = trades.register(
        record(("id", "long"), ("customer", record(("email", "string", {"aliases": ["mail"]}), name="Who"), {"aliases": ["who"]}))
    )
    trades.send(
        [*trades.avro(old_id, {"id": 1, "who": {"mail": "a"}}), *trades.avro(new_id, {"id": 2, "customer": {"email": "b"}})]
    )
    trades.run()
    assert [name for name in trades.rows()[0] if not name.startswith("_")] == ["id", "customer"]
    assert values(trades, "id", "customer") == [(1, {"email": "a"}), (2, {"email": "b"})]


def test_keys_are_read_by_their_own_schema(trades: Registered) -> None:
    trades.topic_more = "key: {format: avro}"
    value, key = (
        trades.register(record(("price", "double"))),
        trades.register(record(("id", "long"), name="Key"), f"{trades.topic}-key"),
    )
    good_key, message = trades.avro(key, {"id": 7})[0], trades.avro(value, {"price": 1.0})[0]
    trades.send_keys([(good_key, message), (None, message), (good_key[:-1], message), (b"x", message), (good_key, None)])
    trades.run()
    assert sorted(((row["id"], row["price"]) for row in trades.rows()), key=str) == [(7, 1.0), (None, 1.0)]
    assert [(code, id_) for code, id_, _ in bad(trades)] == [
        ("null_value", None),
        ("undecodable_key", key),
        ("undecodable_key", None),
    ]


def test_a_key_that_is_one_value(trades: Registered) -> None:
    trades.topic_more = "key: {format: avro, as: userid}"
    value, key = trades.register(record(("price", "double"))), trades.register("string", f"{trades.topic}-key")
    trades.send_keys([(trades.avro(key, "User_1")[0], trades.avro(value, {"price": 1.0})[0])])
    trades.run()
    assert values(trades, "userid", "price") == [("User_1", 1.0)]


def test_keys_beside_json(trades: Registered) -> None:
    trades.format, trades.topic_more = "json", "columns: {price: double}\nkey: {format: avro}"
    key = trades.register(record(("id", "long"), ("name", "string"), name="Key"), f"{trades.topic}-key")
    good_key = trades.avro(key, {"id": 7, "name": "n"})[0]
    trades.send_keys([(good_key, b'{"price": 1.5}'), (good_key + b"x", b'{"price": 2.5}'), (good_key, b"no json")])
    trades.run()
    assert values(trades, "id", "name", "price") == [(7, "n", 1.5)]
    assert [(code, id_) for code, id_, _ in bad(trades)] == [("undecodable", None), ("undecodable_key", key)]


@pytest.mark.long
def test_very_many_ids_that_nobody_knows(trades: Registered) -> None:
    """The ids are of another registry: this one is asked for a thousand of them, and all messages are bad rows that name their id."""
    id_ = trades.register(record(("id", "long")))
    trades.send([*trades.avro(id_, {"id": 1}), *(framed(1_000_000 + index, b"x") for index in range(1500))])
    trades.run()
    assert values(trades, "id") == [(1,)]
    assert {(code, schema) for code, schema, _ in bad(trades)} == {("unknown_schema", 1_000_000 + index) for index in range(1500)}
    trades.assert_exactly_once()


def test_columns_are_a_contract(trades: Registered) -> None:
    """The declared columns are the table's columns, in the types of the spec; other fields of the schemas are left out."""
    trades.topic_more = "columns: {id: bigint, who: struct<mail string>, price: {type: double, required: true}}"
    who_schema = record(("name", "string"), ("mail", "string"), name="Who")
    id_ = trades.register(record(("id", "int"), ("who", who_schema), ("price", ["null", "float"]), ("more", "string")))
    message = {"id": 1, "who": {"name": "n", "mail": "m"}, "price": 1.5, "more": "x"}
    trades.send(trades.avro(id_, message, {**message, "price": None}))
    trades.run()
    assert values(trades, "id", "who", "price") == [(1, {"mail": "m"}, 1.5)]
    assert [code for code, _, _ in bad(trades)] == ["missing_field"]


def test_a_contract_that_the_registry_does_not_keep(trades: Registered) -> None:
    trades.topic_more = "columns: {id: int, who: struct<mail string>, prise: double}"
    trades.register(record(("id", "long"), ("who", record(("email", "string"), name="Who")), ("price", "double")))
    with pytest.raises(SpecError) as error:
        _ = trades.plan
    assert [(problem.code, problem.message, problem.hint) for problem in error.value.problems] == [
        (
            "not-in-schema",
            f"in the schemas of `{trades.subject}` `id` is bigint, and the spec says int",
            "write the type that they have",
        ),
        ("not-in-schema", f"in the schemas of `{trades.subject}` `who` has no field `mail`", "write the type that they have"),
        ("not-in-schema", f"no schema of `{trades.subject}` has a field `prise`", "did you mean `price`?"),
    ]


def test_a_schema_can_refer_to_another_subject(trades: Registered) -> None:
    trades.register(record(("city", "string"), name="Address"), f"{trades.topic}-address")
    reference = [{"name": "Address", "subject": f"{trades.topic}-address", "version": 1}]
    schema = record(("id", "long"), ("home", "Address"), ("work", ["null", "Address"]))
    id_ = trades.register(schema, references=reference)
    whole_schema = record(("id", "long"), ("home", record(("city", "string"), name="Address")), ("work", ["null", "Address"]))
    body = encoded(fastavro.parse_schema(whole_schema), {"id": 1, "home": {"city": "Rome"}, "work": None})
    trades.send([framed(id_, body)])
    trades.run()
    assert values(trades, "id", "home", "work") == [(1, {"city": "Rome"}, None)]


HOSTILE = ("string", "bytes", {"type": "array", "items": "long"}, {"type": "map", "values": "int"})


@pytest.mark.parametrize("type_", HOSTILE, ids=str)
def test_lengths_of_gigabytes_are_bad_rows(trades: Registered, type_: Any) -> None:
    """A few bytes that claim gigabytes are a bad row, and Spark lives; also where they are no column."""
    id_ = trades.register(record(("a", type_), ("b", "int")))
    trades.send([framed(id_, claim + rest) for claim in (HUGE, b"\x01" + HUGE) for rest in (b"", b"\x02", b"\xff" * 9)])
    trades.run()
    assert [code for code, _, _ in bad(trades)] == ["undecodable"] * 6
    trades.topic_more = "columns: {b: int}"
    trades.namespace += "b"
    trades.run()
    assert [code for code, _, _ in bad(trades)] == ["undecodable"] * 6


HUGE = b"\xfe\xff\xff\xff\x0f"  # 2,147,483,647


def test_items_without_bytes_are_refused(trades: Registered) -> None:
    trades.register(record(("a", {"type": "array", "items": "null"}), ("b", "int")))
    with pytest.raises(SpecError, match="an array has items without bytes") as error:
        _ = trades.plan
    assert [problem.code for problem in error.value.problems] == ["unsupported-schema"]


def test_what_holds_nothing_is_passed_over(trades: Registered) -> None:
    id_ = trades.register(record(("none", ["null", record(name="Empty")]), ("b", "int")))
    trades.send(trades.avro(id_, {"none": {}, "b": 1}, {"none": None, "b": 2}))
    trades.run()
    assert (values(trades, "b"), bad(trades)) == ([(1,), (2,)], [])


def test_a_record_in_one_version_and_a_union_in_another(trades: Registered) -> None:
    one_record, other_record = record(("x", "int"), name="One"), record(("y", "int"), name="Other")
    first_id = trades.register(record(("a", one_record), ("b", "int")))
    second_id = trades.register(record(("a", [one_record, other_record]), ("b", "int")))
    trades.send(trades.avro(first_id, {"a": {"x": 5}, "b": 1}))
    trades.send(trades.avro(second_id, {"a": ("One", {"x": 6}), "b": 2}, {"a": ("Other", {"y": 7}), "b": 3}))
    trades.run()
    nulls = {"x": None, "One": None, "Other": None}
    assert [row["a"] for row in sorted(trades.rows(), key=lambda row: int(row["b"]))] == [
        nulls | {"x": 5}, nulls | {"One": {"x": 6}}, nulls | {"Other": {"y": 7}},
    ]  # fmt: skip


@pytest.mark.slow
def test_any_broken_bytes_are_a_row_or_a_bad_row(trades: Registered) -> None:
    """5,000 messages with bytes changed, cut, added and doubled: each is a row or a bad row, and nothing fails."""
    chance = random.Random(1)
    schema = record(
        ("id", "long"), ("name", ["null", "string"]), ("tags", {"type": "array", "items": "string"}),
        ("more", {"type": "map", "values": "double"}),
        ("side", {"type": "enum", "name": "Side", "symbols": ["A", "B"]}),
        ("in", record(("x", {"type": "fixed", "name": "F", "size": 4}), name="In")),
        ("any", ["null", "string", "int"]),
        ("cost", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
        ("at", {"type": "long", "logicalType": "timestamp-micros"}),
    )  # fmt: skip
    id_ = trades.register(schema)
    good_message = trades.avro(id_, {
        "id": 5, "name": "n", "tags": ["a", "b"], "more": {"k": 1.5}, "side": "B", "in": {"x": b"1234"}, "any": "s",
        "cost": Decimal("1.25"),
        "at": dt.datetime(2026, 1, 5, tzinfo=dt.timezone.utc),
    })[0]  # fmt: skip
    trades.send([broken(good_message, chance) for _ in range(5000)])
    trades.run()
    trades.assert_exactly_once()
    assert len(trades.rows(bad=True)) > 1000


@pytest.mark.usefixtures("registry_away")
def test_the_registry_is_away(trades: Registered, sluice_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of cached schemas still load, an unknown id waits and is no bad row, and a plan needs the registry or `columns`."""
    monkeypatch.setattr(schema_lookup, "REGISTRY_FOR_BATCH", 1.0)  # a batch waits for 30 seconds
    id_ = trades.register(record(("id", "long")))
    other_id = trades.register(record(("id", "int"), name="Other"), f"{trades.topic}-other")
    trades.send(trades.avro(id_, {"id": 1}))
    trades.run()
    registry_url, trades.registry = trades.registry, f"http://127.0.0.1:{free_port()}"
    with pytest.raises(SpecError, match="registry-unreachable"):
        _ = trades.plan
    cache_folder = sluice_home / "registry"
    (cached_file,) = [path for path in cache_folder.rglob("*.json") if trades.subject in path.read_text()]
    copied_file = cache_folder / hashlib.sha256(trades.registry.encode()).hexdigest()[:16] / cached_file.name
    copied_file.parent.mkdir()
    copied_file.write_bytes(cached_file.read_bytes())
    trades.send(trades.avro(id_, {"id": 2}))
    trades.run()
    assert values(trades, "id") == [(1,), (2,)]
    trades.send(trades.avro(id_, {"id": 3}) + trades.avro(other_id, {"id": 4}))
    with pytest.raises(UnreachableError, match="does not answer"):
        trades.run()
    assert (values(trades, "id"), bad(trades), trades.branches()) == ([(1,), (2,)], [], [])
    monkeypatch.setattr(schema_lookup, "REGISTRY_FOR_BATCH", 30.0)  # as it was: now it answers
    trades.registry = registry_url
    trades.run()
    assert values(trades, "id") == [(1,), (2,), (3,), (4,)]
    trades.assert_exactly_once()
