"""Values that become Avro's bytes and come back, values that do not fit, and schemas from columns. Nothing runs here."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from framework.base import type_text
from framework.base.types import Field
from framework.messages import formats
from framework.messages.formats import avro
from framework.messages.formats.avro import shapes
from framework.messages.formats.avro.as_json import decoder
from framework.messages.formats.avro.from_columns import schema_text
from framework.messages.formats.avro.writer import encoder
from framework.messages.schemas.versions import Unsupported
from framework.plan.schema import Schema
from tests.support.registry_project import record

ADDRESS = Schema("AVRO", json.dumps({**record(("city", "string"), name="Address"), "namespace": "shop"}))
REC = record(("a", "int"), name="Rec")
UNION = ["null", "string", "long", "double", REC, {"type": "map", "values": "int"}, {"type": "int", "logicalType": "date"}]


def logical(type_: Any, name: str, **attributes: Any) -> dict[str, Any]:
    return {**(type_ if isinstance(type_, dict) else {"type": type_}), "logicalType": name, **attributes}


def fixed(size: int) -> dict[str, Any]:
    return {"type": "fixed", "name": "Fixed", "size": size}


def schema(type_: Any) -> Schema:
    return Schema("AVRO", json.dumps(record(("c", type_))), (("shop.Address", ADDRESS),))


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("boolean", True, True),
        ("int", -(2**31), -(2**31)),
        ("long", 2**63 - 1, 2**63 - 1),
        ("long", Decimal("5.0"), 5),
        ("float", Decimal("0.1"), 0.1),
        ("double", 5, 5.0),
        ("double", "-Infinity", "-Infinity"),
        ("bytes", "AP8=", "AP8="),
        ("string", "é\x00", "é\x00"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        (fixed(3), "AP9/", "AP9/"),
        ({"type": "array", "items": ["null", "int"]}, [1, None], [1, None]),
        ({"type": "map", "values": REC}, {"k": {"a": 1}}, {"k": {"a": 1}}),
        ("shop.Address", {"city": "Rome"}, {"city": "Rome"}),
        (["string", "null"], None, None),
        (UNION, "x", "x"),
        (UNION, 5, 5),
        (UNION, Decimal("2.5"), 2.5),
        (UNION, {"a": 5}, {"a": 5}),
        (UNION, {"k": 5}, {"k": 5}),
        (UNION, {"double": 5}, 5.0),
        (UNION, {"string": None, "int": "2026-01-05"}, "2026-01-05"),
        (UNION, {"Rec": {"a": 1}}, {"a": 1}),
        (logical("bytes", "decimal", precision=38, scale=9), "-99999999999999999999999999999.999999999",
         Decimal("-99999999999999999999999999999.999999999")),
        (logical(fixed(20), "decimal", precision=5, scale=2), Decimal("-1.5"), Decimal("-1.50")),
        (logical("int", "date"), "0001-01-01", "0001-01-01"),
        (logical("int", "date"), 20458, "2026-01-05"),
        (logical("int", "time-millis"), "23:59:59.999", 86399999),
        (logical("long", "timestamp-millis"), "2026-01-05T10:00:00.123Z", "2026-01-05T10:00:00.123000Z"),
        (logical("long", "timestamp-millis"), 1767607200000, "2026-01-05T10:00:00Z"),
        (logical("long", "timestamp-micros"), "9999-12-31T23:59:59.999999+00:00", "9999-12-31T23:59:59.999999Z"),
        (logical("long", "timestamp-micros"), 2**62, 2**62),
        (logical("long", "local-timestamp-micros"), "2026-01-05 10:00:00", "2026-01-05T10:00:00"),
        (logical("string", "uuid"), "0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5b-d9cb-469f-a165-70867728950e"),
        (logical(fixed(16), "uuid"), "00010203-0405-0607-0809-0a0b0c0d0e0f", "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ],
)  # fmt: skip
def test_values_come_back(type_: Any, value: Any, expected: Any) -> None:
    avro_schema = schema(type_)
    data = encoder(avro_schema)({"c": value})
    result = decoder(avro_schema)(data)
    assert result == {"c": expected}
    assert encoder(avro_schema)(result) == data or isinstance(type_, list)
    for length in range(len(data)):
        with pytest.raises(ValueError, match="cut off"):
            decoder(avro_schema)(data[:length])
    with pytest.raises(ValueError, match="more follows"):
        decoder(avro_schema)(data + b"\0")


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        ("int", 2**31, "`c` must be int, and is 2147483648"),
        ("int", "5", '`c` must be int, and is "5"'),
        ("int", True, "`c` must be int, and is true"),
        ("long", 1.5, "`c` must be long, and is 1.5"),
        ("float", 1e300, "`c` must be float, and is 1e+300"),
        ("string", None, "`c` must be string, and is null"),
        ("bytes", "!", '`c` must be bytes, and is "!"'),
        (fixed(3), "AA==", '`c` must be base64 text of 3 bytes, and is "AA=="'),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "C", '`c` must be one of A, B, and is "C"'),
        (logical("bytes", "decimal", precision=5, scale=2), "1.234", '`c` must be decimal(5,2), and is "1.234"'),
        (logical("bytes", "decimal", precision=5, scale=2), 1000, "`c` must be decimal(5,2), and is 1000"),
        (logical("int", "date"), "2026-02-30", '`c` must be date, and is "2026-02-30"'),
        (logical("long", "timestamp-millis"), "2026-01-05T10:00:00.1234Z",
         '`c` must be timestamp-millis, and is "2026-01-05T10:00:00.1234Z"'),
        (logical("long", "local-timestamp-micros"), "2026-01-05T10:00:00Z",
         '`c` must be local-timestamp-micros, and is "2026-01-05T10:00:00Z"'),
        ("shop.Address", {"town": "Rome"}, "there is no field `c.town`"),
        ("shop.Address", {}, "`c.city` is missing, and the schema has no default for it"),
        ({"type": "map", "values": "shop.Address"}, {"k": {"city": 5}}, "`c.k.city` must be string, and is 5"),
        (["null", "int"], "x", '`c` must be int, and is "x"'),
        (["string", "int"], True, "`c` must be string or int, and is true"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(type_: Any, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match="c") as error:
        encoder(schema(type_))({"c": value})
    assert str(error.value) == message


def test_what_is_left_out_is_its_default() -> None:
    avro_schema = Schema("AVRO", json.dumps(record(
        ("n", ["null", "int"]), ("s", ["string", "null"], {"default": "x"}), ("b", "bytes", {"default": "\xff\0"}),
        ("r", REC, {"default": {"a": 7}}), ("m", {"type": "map", "values": "Rec"}, {"default": {"k": {"a": 1}}}),
        ("l", {"type": "array", "items": "int"}, {"default": []}), ("d", logical("int", "date"), {"default": 1}),
    )))  # fmt: skip
    row = decoder(avro_schema)(encoder(avro_schema)({}))
    assert row == {"n": None, "s": "x", "b": "/wA=", "r": {"a": 7}, "m": {"k": {"a": 1}}, "l": [], "d": "1970-01-02"}


def test_fastavro_reads_what_is_written() -> None:
    """Fastavro reads the bytes by the unchanged schema, and finds the intended types of the union."""
    text = record(("u", [{"type": "int", "logicalType": "date"}, "long", REC, "string"]), ("d", "double"))
    for union_value in ({"int": 5}, {"long": 5}, {"Rec": {"a": 1}}, {"string": "x"}):
        data = encoder(Schema("AVRO", json.dumps(text)))({"u": union_value, "d": 1})
        assert data[0] >> 1 == ["int", "long", "Rec", "string"].index(next(iter(union_value)))
        row: Any = fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(text), None)
        assert row["d"] == 1.0


@pytest.mark.parametrize("text", ['"string"', "string", '["null", "string"]'])
def test_a_schema_that_is_no_record(text: str) -> None:
    writer = formats.writer(3, Schema("AVRO", text))
    assert writer.single
    assert writer.columns({"userid": "User_1"})[:5] == b"\0\0\0\0\3"
    assert avro.decoder(Schema("AVRO", text))(writer.whole("User_1")[5:]) == '"User_1"'


def test_a_name_from_another_subject_alone() -> None:
    avro_schema = Schema("AVRO", '["null", "shop.Address"]', (("shop.Address", ADDRESS),))
    assert decoder(avro_schema)(encoder(avro_schema)({"city": "Rome"})) == {"city": "Rome"}
    with pytest.raises(Unsupported, match="is not Avro"):
        encoder(Schema("AVRO", '"shop.Address"'))


def test_a_schema_made_of_columns_has_them() -> None:
    columns = {
        "a": "array<struct<n string, d decimal(5,2)>>", "m": "map<string,array<timestamp>>", "t": "timestamp_ntz", "day": "date",
        "b": "binary", "i": "int", "l": "bigint", "f": "float", "x": "double", "o": "boolean", "s": "struct<s struct<a int>>",
    }  # fmt: skip
    fields = [Field(name, type_text.parse(type_)) for name, type_ in columns.items()]
    avro_schema = Schema("AVRO", schema_text("orders", fields))
    assert [Field(shape.name, shape.type) for shape in shapes(avro_schema)] == fields
    assert decoder(avro_schema)(encoder(avro_schema)({})) == dict.fromkeys(columns)
    for name, type_ in (("a-b", "int"), ("m", "map<int,int>")):
        with pytest.raises(Unsupported):
            schema_text("orders", [Field(name, type_text.parse(type_))])


def test_columns_with_another_name_than_the_fields() -> None:
    avro_schema = Schema("AVRO", json.dumps(record(("who", record(("mail", "string"), name="Who")))))
    writer = formats.writer(1, avro_schema, ((("who",), "customer"), (("who", "mail"), "email")))
    assert avro.decoder(avro_schema)(writer.columns({"customer": {"email": "x"}})[5:]) == '{"who": {"mail": "x"}}'
    assert writer.column("who") == "customer"


def test_times_and_decimals_as_a_json_schema_has_them() -> None:
    connect = "org.apache.kafka.connect.data"
    decimal = {"title": f"{connect}.Decimal", "connect.type": "bytes", "connect.parameters": {"scale": "2"}}
    time_type = {"type": "integer", "title": f"{connect}.Timestamp"}
    day_type = {"type": "integer", "title": f"{connect}.Date"}
    values = {"at": "2026-01-05T10:00:00Z", "day": "1970-01-03", "n": Decimal("-1.50")}
    for type_, n in (("string", '"/2o="'), ("number", "-1.50")):
        properties = {"at": time_type, "day": day_type, "n": {"type": type_, **decimal}}
        json_schema = Schema("JSON", json.dumps({"type": "object", "properties": properties}))
        assert formats.writer(1, json_schema).columns(values)[5:].decode() == f'{{"at": 1767607200000, "day": 2, "n": {n}}}'


def test_a_json_schema_of_a_single_value() -> None:
    """The value has the name of the key's column, and is written as the schema says."""
    time_type = {"type": "integer", "title": "org.apache.kafka.connect.data.Timestamp"}
    writer = formats.writer(1, Schema("JSON", json.dumps(time_type)))
    assert writer.columns({"id": "2026-01-05T10:00:00Z"})[5:] == b"1767607200000"
    assert formats.writer(2, Schema("JSON", '{"type": "string"}')).columns({"id": "x"})[5:] == b'"x"'
    with pytest.raises(ValueError, match="it is one value, and there are `id`, `side`"):
        writer.columns({"id": 1, "side": "BUY"})
