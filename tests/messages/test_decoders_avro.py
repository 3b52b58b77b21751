"""Our own Avro decoder: values that fastavro and the project's own writer write come back, and no bytes do harm."""

from __future__ import annotations

import base64
import io
import json
import random
import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from framework.base import type_text, types
from framework.base.types import Type
from framework.messages.encoding import decoder, json_values
from framework.messages.formats import avro
from framework.messages.formats.avro import as_json, from_columns, shapes, writer
from framework.messages.schemas.versions import merge
from framework.plan.schema import Schema, Version
from tests.support.avro_samples import PLACES, SAMPLES, came, of_union, placed, placed_value
from tests.support.registry_project import record
from tests.support.selection import few

if TYPE_CHECKING:
    from tests.support.decoders import Decoders, Row

pytestmark = pytest.mark.spark


def schema(json_: Any, *references: Any) -> Schema:
    return Schema("AVRO", json.dumps(json_), tuple((str(index), schema(reference)) for index, reference in enumerate(references)))


def frame(body: bytes, id_: int = 1) -> bytes:
    return b"\0" + id_.to_bytes(4, "big") + body


def encoded(json_: Any, value: Any) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(json_), value)
    return buffer.getvalue()


def columns_of(*schemas: Schema) -> tuple[dict[str, Any], dict[str, Type]]:
    """A description of all versions, whose ids are 1, 2, …"""
    merged = merge([(Version(number, version, number), shapes(version)) for number, version in enumerate(schemas, 1)])
    types_ = {shape.name: shape.type for shape in merged.shapes}
    columns = [decoder.column(name, type_) for name, type_ in types_.items()]
    writers = avro.read("value", merged).writers
    return {"format": "avro", "columns": columns, "writers": writers}, types_


def decoded(decoders: Decoders, schemas: list[Schema], *messages: bytes | None) -> list[Row]:
    return decoders.rows(*columns_of(*schemas), messages)


def test_types_of_a_union_with_equal_names(decoders: Decoders) -> None:
    """Null has no name, wherever it stands."""
    colour = {"type": "enum", "name": "String", "symbols": ["RED"]}
    for union in (["null", "string", colour], ["string", "null", colour], ["string", colour, "null"]):
        json_ = record(("p", union))
        for value, expected in (
            ("x", {"string": "x", "String_1": None}),
            (("String", "RED"), {"string": None, "String_1": "RED"}),
        ):
            (row,) = decoded(decoders, [schema(json_)], frame(encoded(json_, {"p": value})))
            assert (row.values, row.why) == ({"p": expected}, None)


def test_a_decimal_of_no_whole_digits_is_bytes(decoders: Decoders) -> None:
    for attributes in (
        {"precision": "10"},
        {"precision": 10.0},
        {"precision": 10, "scale": None},
        {"precision": 10, "scale": "2"},
    ):
        json_ = record(("p", {"type": "bytes", "logicalType": "decimal", **attributes}))
        (row,) = decoded(decoders, [schema(json_)], frame(encoded(record(("p", "bytes")), {"p": b"ab"})))
        assert (row.values, row.why) == ({"p": b"ab"}, None)


def test_values_of_all_types_come_back(decoders: Decoders) -> None:
    """The values come back alone, inside of arrays, maps and records, beside fields that are no columns, and can be skipped."""
    fields: list[tuple[Any, ...]] = []
    nothing: dict[str, Any] = record(name="Nothing")
    for index, (type_, _) in enumerate(SAMPLES.values()):
        fields += [(f"c{index}_{place}", placed(type_, place, f"c{index}")) for place in PLACES]
        fields += [(f"c{index}_none", "null"), (f"c{index}_nothing", {**nothing, "name": f"Nothing{index}"})]
    json_ = record(*fields, ("last", "int"))
    messages, expected_rows = [], []
    for number in range(max(len(values) for _, values in SAMPLES.values())):
        message: dict[str, Any] = {"last": number}
        row: dict[str, Any] = {"last": number}
        for index, (kind, (_, values)) in enumerate(SAMPLES.items()):
            value, expected_value = values[number % len(values)]
            message |= {f"c{index}_none": None, f"c{index}_nothing": {}}
            for place in PLACES:
                name = f"c{index}_{place}"
                message[name] = placed_value(value, place)
                row[name] = came(of_union(expected_value, name) if kind == "union of other types" else expected_value, place)
        messages.append(frame(encoded(json_, message)))
        expected_rows.append(row)
    rows = decoded(decoders, [schema(json_)], *messages)
    assert [row.why for row in rows] == [None] * len(rows)
    for decoded_row, expected_row in zip(rows, expected_rows, strict=True):
        assert decoded_row.values is not None
        assert {name: item for name, item in decoded_row.values.items() if item != expected_row[name]} == {}
    description, _ = columns_of(schema(json_))
    last_column = {**description, "columns": [decoder.column("last", types.INT)]}
    skipping_rows = decoders.rows(last_column, {"last": types.INT}, messages)
    assert [row.values for row in skipping_rows] == [{"last": number} for number in range(len(messages))]


def test_messages_of_several_versions_fit_the_same_columns(decoders: Decoders) -> None:
    first_schema = record(("id", "int"), ("town", "string"), ("f", "float"), ("old", ["null", "long"]))
    second_schema = record(("f", "double"), ("id", "long"), ("city", "string"), ("new", {"type": "array", "items": "int"}))
    second_schema["fields"][2]["aliases"] = ["town"]
    messages = [frame(encoded(first_schema, {"id": -5, "town": "Ulm", "f": 0.5, "old": 7})),
                frame(encoded(second_schema, {"f": 0.1, "id": 2**40, "city": "Rom", "new": [1, 2]}), 2), frame(b"", 3)]  # fmt: skip
    rows = decoded(decoders, [schema(first_schema), schema(second_schema)], *messages)
    assert rows[0].values == {"id": -5, "city": "Ulm", "f": 0.5, "old": 7, "new": None}
    assert rows[1].values == {"id": 2**40, "city": "Rom", "f": 0.1, "old": None, "new": [1, 2]}
    assert (rows[2].code, rows[2].why) == ("unknown_schema", "the registry has no schema 3")


def test_unions_of_versions(decoders: Decoders) -> None:
    one_record, other_record = record(("x", "int"), name="One"), record(("y", "int"), ("z", "string"), name="Other")
    first_schema, second_schema = (
        record(("u", [one_record, "string"])),
        record(("u", ["null", "string", other_record, one_record])),
    )
    messages = [frame(encoded(first_schema, {"u": {"x": 1}})), frame(encoded(second_schema, {"u": ("Other", {"y": 2, "z": "a"})}), 2),
                frame(encoded(second_schema, {"u": None}), 2), frame(encoded(second_schema, {"u": "s"}), 2)]  # fmt: skip
    rows = decoded(decoders, [schema(first_schema), schema(second_schema)], *messages)
    nulls: dict[str, Any] = {"One": None, "string": None, "Other": None}
    expected = [nulls | {"One": {"x": 1}}, nulls | {"Other": {"y": 2, "z": "a"}}, None, nulls | {"string": "s"}]
    assert [row.values and row.values["u"] for row in rows] == expected


def test_an_item_of_which_nothing_is_a_column_is_null(decoders: Decoders) -> None:
    """The item before it must not show through."""
    union = ["string", "long", {**record(name="Deleted"), "fields": []}]
    json_ = record(("a", {"type": "array", "items": union}), ("m", {"type": "map", "values": union}))
    a, deleted = b"\x00\x02a", b"\x04"
    body = b"\x06" + a + deleted + a + b"\x00" + b"\x04" + b"\x02x" + a + b"\x02y" + deleted + b"\x00"
    (row,) = decoded(decoders, [schema(json_)], frame(body))
    text = {"string": "a", "long": None}
    assert row.values == {"a": [text, None, text], "m": [("x", text), ("y", None)]}


def test_references_and_single_values(decoders: Decoders) -> None:
    address = {**record(("city", "string"), name="Address"), "namespace": "a.b"}
    json_ = {**record(("home", "Address"), ("work", ["null", "a.b.Address"])), "namespace": "a.b"}
    body = b"\x08Rome" + b"\x02\x08Oslo"
    (row,) = decoded(decoders, [schema(json_, address)], frame(body))
    assert row.values == {"home": {"city": "Rome"}, "work": {"city": "Oslo"}}
    (row,) = decoded(decoders, [Schema("AVRO", '"string"')], frame(b"\x04ab"))
    assert row.values == {"value": "ab"}


def test_lists_and_maps_are_read_in_blocks(decoders: Decoders) -> None:
    json_ = record(("a", {"type": "array", "items": "int"}), ("m", {"type": "map", "values": "int"}))
    bodies = {
        b"\x00\x00": ([], []),
        b"\x04\x02\x04\x02\x06\x00\x00": ([1, 2, 3], []),
        b"\x03\x04\x02\x04\x00\x00": ([1, 2], []),  # two items, and how many bytes they take
        b"\x00\x04\x02k\x02\x02k\x04\x00": ([], [("k", 2)]),  # the last of equal keys
    }
    rows = decoded(decoders, [schema(json_)], *map(frame, bodies))
    assert [row.values and (row.values["a"], row.values["m"]) for row in rows] == list(bodies.values())


def longs(*numbers: int) -> list[bytes]:
    return [encoded("long", number) for number in numbers]


HUGE = b"\xfe\xff\xff\xff\x0f"
MINUS = b"\x01"
SMALLEST = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
HOSTILE: list[tuple[Any, list[bytes]]] = [
    ("string", [HUGE, MINUS, SMALLEST, b"\x02\xff", b"\x04a"]), ("bytes", [HUGE, MINUS, SMALLEST, b"\x04a"]),
    ({"type": "array", "items": "long"}, [HUGE, MINUS + HUGE, SMALLEST, b"\x02", SMALLEST + b"\x02", b"\x02\x02"]),
    ({"type": "map", "values": "int"}, [HUGE, MINUS + HUGE, b"\x02\x02a", b"\x02" + HUGE, b"\x02\x02\xff\x02\x00"]),
    ("boolean", [b"\x02", b"\xff", b""]), ("int", [b"\xfe\xff\xff\xff\xff\x01", b"\xff", b"\xff" * 11]), ("long", [b"\xff" * 9 + b"\x02"]),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, [b"\x02", MINUS, HUGE]), (["null", "int"], [b"\x04", MINUS, SMALLEST]),
    ({"type": "fixed", "name": "F", "size": 3}, [b"ab"]), ("double", [b"1234567"]), ("float", [b"123"]),
    ({"type": "int", "logicalType": "date"}, [encoded("int", 2932897), encoded("int", -719163)]),
    ({"type": "long", "logicalType": "timestamp-millis"}, longs(253402300800000, -62135596800001, 2**63 - 1, -(2**63))),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, longs(253402300800000000, 2**63 - 1, -(2**63))),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
     [encoded("bytes", n.to_bytes(3, "big", signed=True)) for n in (10000, -10000)] + [encoded("bytes", b"\x7f" * 100_000)]),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "values"), HOSTILE, ids=[json.dumps(type_)[:40] for type_, _ in HOSTILE])
def test_hostile_bytes_are_undecodable(type_: Any, values: list[bytes], decoders: Decoders) -> None:
    json_ = record(("a", type_), ("b", "int"))
    messages = [frame(value + rest) for value in values for rest in (b"", b"\x02")] + [frame(b"")]
    assert [row.code for row in decoded(decoders, [schema(json_)], *messages)] == ["undecodable"] * len(messages)


def test_what_follows_and_reasons(decoders: Decoders) -> None:
    json_ = record(("id", "int"), ("in", record(("l", {"type": "array", "items": "string"}), name="In")))
    reasons = {
        b"\x02\x00\x00": "1 byte follows the message",
        b"\x02": "field `in.l`: the message is cut off",
        b"\x02\x04\x02a\x02\xff\x00": "field `in.l[1]`: the text is not UTF-8",
        b"\x02\x02\x01": "field `in.l[0]`: a length is below 0",
    }
    rows = decoded(decoders, [schema(json_)], *map(frame, reasons))
    assert {body: row.why for body, row in zip(reasons, rows, strict=True)} == reasons


def test_an_envelope_of_debezium(decoders: Decoders) -> None:
    image = record(("id", "int"), ("n", ["null", "string"]), name="Value")
    source = record(("ts_ms", "long"), ("db", "string"), name="Source")
    json_ = record(("before", ["null", image]), ("after", ["null", "Value"]), ("source", source), ("op", "string"))
    description, _ = columns_of(schema(json_))
    columns = [decoder.column("id", types.INT, required=True), decoder.column("n", types.STRING, required=True)]
    description_ = {**description, "columns": columns, "envelope": "debezium"}
    types_ = {"id": types.INT, "n": types.STRING, "_op": types.STRING, "_source_at": types.TIMESTAMP}
    old_image, new_image, source_value = {"id": 1, "n": None}, {"id": 2, "n": "b"}, {"ts_ms": 1767607200000, "db": "d"}
    events: list[tuple[str, Any, Any]] = [
        ("c", None, new_image), ("u", old_image, new_image), ("d", old_image, None), ("t", None, None), ("m", None, None),
        ("x", None, new_image), ("c", new_image, None), ("d", None, new_image), ("u", new_image, old_image),
    ]  # fmt: skip
    messages = [
        frame(encoded(json_, {"op": op, "before": before, "after": after, "source": source_value}))
        for op, before, after in events
    ]
    rows = decoders.rows(description_, types_, messages)
    results = [(row.values["id"], row.values["n"], row.values["_op"]) if row.values else (row.code, row.why) for row in rows]
    assert results == [
        (2, "b", "c"), (2, "b", "u"), (1, None, "d"), (None, None, "t"), (None, None, "m"),
        ("undecodable", "the envelope has the op x, which is none of c, u, d, r, t and m"),
        ("undecodable", "the envelope has no `after`, and its op is c"), ("undecodable", "the envelope has no `before`, and its op is d"),
        ("missing_field", "`n` is required and missing or null"),
    ]  # fmt: skip
    assert rows[0].values and rows[0].values["_source_at"].isoformat() == "2026-01-05T10:00:00+00:00"


def test_what_the_projects_own_writer_writes(decoders: Decoders) -> None:
    columns = [
        types.Field("a", type_text.parse("struct<d decimal(20,3), t timestamp_ntz>")),
        types.Field("b", type_text.parse("map<string,date>")),
    ]
    schema_ = Schema("AVRO", from_columns.schema_text("m", columns))
    body = writer.encoder(schema_)({"a": {"d": "1.250", "t": "2026-01-05T10:00:00"}, "b": {"k": "2026-01-05"}})
    (row,) = decoded(decoders, [schema_], frame(body))
    assert row.values is not None
    assert row.values["a"]["d"] == Decimal("1.25")
    assert row.values["a"]["t"].isoformat() == "2026-01-05T10:00:00"
    assert [(key, value.isoformat()) for key, value in row.values["b"]] == [("k", "2026-01-05")]


def test_a_chain_of_records_is_read_at_once(decoders: Decoders) -> None:
    """Two references at each of 22 levels, which are no columns."""
    nested: Any = record(("x", "int"), name="R0")
    for level in range(1, 23):
        nested = record(("a", nested), ("b", f"R{level - 1}"), name=f"R{level}")
    json_ = record(("id", "int"), ("deep", ["null", nested]))
    description_ = {"format": "avro", "columns": [decoder.column("id", types.INT)], "writers": {"1": {"schema": json_}}}
    (row,) = decoders.rows(description_, {"id": types.INT}, [frame(b"\x0e\x00")])
    assert row.values == {"id": 7}


@pytest.mark.slow
@pytest.mark.parametrize("count", few([10_000, 60_000], 10_000))
def test_bytes_changed_at_random(decoders: Decoders, count: int) -> None:
    """The decoder and the project's own reader in Python read the same value or both refuse; ours also refuses values beyond a column."""
    json_ = record(
        ("id", "long"), ("name", ["null", "string"]), ("tags", {"type": "array", "items": "string"}),
        ("more", {"type": "map", "values": "double"}), ("side", {"type": "enum", "name": "Side", "symbols": ["A", "B"]}),
        ("in", record(("x", {"type": "fixed", "name": "F", "size": 4}), name="In")), ("any", ["null", "string", "int"]),
        ("cost", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
        ("at", {"type": "long", "logicalType": "timestamp-micros"}), ("yes", "boolean"), ("f", "float"),
    )  # fmt: skip
    good_body = encoded(json_, {
        "id": 5, "name": "n", "tags": ["a", "bé"], "more": {"k": 1.5}, "side": "B", "in": {"x": b"1234"}, "any": "s",
        "cost": Decimal("1.25"), "at": 1767607200000000, "yes": True, "f": 0.5,
    })  # fmt: skip
    chance = random.Random(5)
    bodies = [_broken(good_body, chance) for _ in range(count)]
    rows = decoded(decoders, [schema(json_)], *map(frame, bodies))
    decode = as_json.decoder(schema(json_))
    differences: list[tuple[Any, ...]] = []
    for body, row in zip(bodies, rows, strict=True):
        try:
            python_value = decode(body)
        except ValueError:
            python_value = None
        if row.values is None:
            stricter = row.why and ("wanted " in row.why or "32 bits" in row.why or "64 bits" in row.why)
            if python_value is not None and not stricter:
                differences.append((body, row.why))
        elif python_value is None or _python_text(row.values) != json_values.text(python_value):
            differences.append(
                (body, _python_text(row.values), json_values.text(python_value)) if python_value else (body, row.values)
            )
    assert differences == []
    assert 1 / 12 < sum(row.code is None for row in rows) / count < 11 / 12


def _python_text(values: dict[str, Any]) -> str:
    """The row as the text of the reader in Python."""
    any_ = values["any"]
    row = {
        **values, "more": dict(values["more"]), "in": {"x": base64.b64encode(values["in"]["x"]).decode()},
        "any": any_ and next((value for value in any_.values() if value is not None), None),
        "at": values["at"].replace(tzinfo=None).isoformat() + "Z",
        "f": as_json._fraction("float", struct.pack("<f", values["f"])),
    }  # fmt: skip
    return json_values.text({name: _finite(value) for name, value in row.items()})


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def _broken(message: bytes, chance: random.Random) -> bytes:
    body = bytearray(message)
    for _ in range(chance.randint(1, 2)):
        index = chance.randrange(len(body) + 1)
        match chance.randrange(4):
            case 0:
                del body[index : index + 1]
            case 1:
                body.insert(index, chance.randrange(256))
            case 2 if index < len(body):
                body[index] = chance.choice([0, 1, 2, 255, 128, chance.randrange(256)])
            case _ if index < len(body):
                body[index] ^= 1 << chance.randrange(8)
    return bytes(body)
