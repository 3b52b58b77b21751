"""Our own decoders: every value of the corpora lands to the last digit or its message is a bad row, which says why."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from framework.base import type_text, types
from framework.base.types import Type
from framework.messages.encoding import decoder
from framework.messages.encoding.fields import WrittenType
from tests.support import json_texts
from tests.support.decoders import of_json, types_of
from tests.support.json_values import BAD, CASES, COLUMNS, D, as_bytes, exact, is_wanted, short
from tests.support.poison import BAD as POISON
from tests.support.selection import few

if TYPE_CHECKING:
    from tests.support.decoders import Decoders, Row

pytestmark = pytest.mark.spark

# Corrections of the corpus: its expected values of these are wrong.
EQUAL = {("price", "1.2345e2"): D("123.45")}  # a number with two places


def spec_columns() -> dict[str, Type]:
    """The columns of the corpus, and how they are written."""
    columns = {}
    for name, text in COLUMNS.items():
        options = yaml.safe_load(text)
        type_ = type_text.parse(options["type"] if isinstance(options, dict) else options)
        columns[name] = WrittenType(type_, options["format"]) if isinstance(options, dict) else type_
    return columns


TYPES = spec_columns()


def described(types_: Mapping[str, Type], **settings: Any) -> dict[str, Any]:
    return of_json([decoder.column(name, type_) for name, type_ in types_.items()], **settings)


def decoded(decoders: Decoders, fields: str, *messages: bytes | None, **settings: Any) -> list[Row]:
    """Decodes messages by columns that are written as in YAML."""
    columns = [_column(name, type_) for name, type_ in yaml.safe_load(f"{{{fields}}}").items()]
    return decoders.rows(of_json(columns, **settings), types_of(columns), messages)


def _column(name: str, options: Any) -> dict[str, Any]:
    options_ = options if isinstance(options, dict) else {"type": options}
    type_ = type_text.parse(options_.pop("type"))
    format_ = options_.pop("format", None)
    return decoder.column(name, WrittenType(type_, format_) if format_ else type_, **options_)


def wrapped(column: str, text: str | bytes, format_: str) -> bytes:
    fields = b'{"%s": %s}' % (column.encode(), as_bytes(text))
    return {
        "plain": fields,
        "spaced": b" \r\n\t" + fields + b"\n ",
        "change": b'{"before": null, "after": %s, "source": {"ts_ms": 1}, "op": "c"}' % fields,
        "with schema": b'{"schema": {"op": 5}, "payload": {"op": "u", "before": null, "after": %s}}' % fields,
    }[format_]


@pytest.mark.parametrize("format_", few(["plain", "spaced", "change", "with schema"], "plain", "change"))
def test_a_value_lands_as_it_is_or_makes_a_bad_row(format_: str, decoders: Decoders) -> None:
    settings = {"envelope": "debezium", "root": "payload"} if format_ in ("change", "with schema") else {}
    envelope_types = {"_op": types.STRING, "_source_at": types.TIMESTAMP} if settings else {}
    messages = [wrapped(column, text, format_) for column, text, _ in CASES]
    rows = decoders.rows(described(TYPES, **settings), {**TYPES, **envelope_types}, messages)
    assert {row.code for row in rows} == {None, "undecodable"}
    differences = {}
    for (column, text, corpus_value), row in zip(CASES, rows, strict=True):
        expected = EQUAL.get((column, str(text)), corpus_value)
        actual = exact(row.values[column]) if row.values else exact(BAD)
        if not is_wanted(actual, expected):
            differences[column, short(text)] = (expected, actual, row.why)
    assert differences == {}


def test_reasons_name_the_field_what_was_wanted_and_what_was_found(decoders: Decoders) -> None:
    columns = "id: int, price: 'decimal(10,2)', at: timestamp, list: array<int>, place: 'struct<floor int, m map<string,int>>'"
    reasons = {
        '{"price": "abc"}': 'field `price`: wanted decimal(10,2), found "abc"',
        '{"price": 1.239}': "field `price`: wanted decimal(10,2), found 1.239",
        '{"id": 2147483648}': "field `id`: wanted int, found 2147483648",
        '{"id": {"a" : 1}}': 'field `id`: wanted int, found {"a" : 1}',
        '{"at": "10:00"}': 'field `at`: wanted timestamp, found "10:00"',
        '{"list": [1, "x"]}': 'field `list[1]`: wanted int, found "x"',
        '{"list": 5}': "field `list`: wanted array<int>, found 5",
        '{"place": {"floor": true}}': "field `place.floor`: wanted int, found true",
        '{"place": {"m": {"k": null, "é": []}}}': "field `place.m.é`: wanted int, found []",
        '{"id": "' + "é" * 1000 + '"}': 'field `id`: wanted int, found "' + "é" * 58 + "…",
        "": "the value is empty", " ": "the value is empty",
        "[1]": "the value is not a JSON object but a list", "5": "the value is not a JSON object but a number",
        '{"id": 1} x': "more text follows the JSON object at byte 10",
        '{"id": 1': "the value is not JSON: it is cut off",
        '{"id": 01}': "the value is not JSON: `1` is not expected at byte 8",
        "{'id': 1}": "the value is not JSON: `'` is not expected at byte 1",
        '{"id": nil}': "field `id`: the value is not JSON: `i` is not expected at byte 8",
    }  # fmt: skip
    rows = decoded(decoders, columns, *(text.encode() for text in reasons))
    assert {text: row.why for text, row in zip(reasons, rows, strict=True)} == reasons
    assert {row.code for row in rows} == {"undecodable"}


def test_each_kind_of_bad_message_has_its_code(decoders: Decoders) -> None:
    columns = "id: {type: int, required: true}, note: string"
    rows = decoded(
        decoders,
        columns,
        None,
        b"{}",
        b'{"id": null}',
        b'{"note": 5}',
        b'{"id": "x"}',
        b'{"id": 7, "x": 1}',
        unknown_fields="bad",
    )
    assert [row.code for row in rows] == [
        "null_value",
        "missing_field",
        "missing_field",
        "missing_field",
        "undecodable",
        "unknown_field",
    ]
    assert rows[1].why == "`id` is required and missing or null"
    assert rows[5].why == "the field `x` is not a column"
    nested_rows = decoded(decoders, "s: 'struct<a int>'", b'{"s": {"a": 1, "b": 2}}', unknown_fields="bad")
    assert nested_rows[0].values == {"s": {"a": 1}}
    for null_setting, code in (("empty", "missing_field"), ("null", None), ("bad", "null_value")):
        assert [row.code for row in decoded(decoders, columns, None, absent=null_setting)] == [code]


def test_a_message_that_is_too_large(decoders: Decoders) -> None:
    largest_message, larger_message = (b'{"a": 1, "b": "%s"}' % (b"x" * (decoder.LARGEST - 17 + n)) for n in (0, 1))
    rows = decoded(decoders, "a: int", largest_message, larger_message)
    assert [row.code for row in rows] == [None, "too_large"]
    many_items = b'{"a": [' + b"{}," * 4_000_000 + b"{}]}"
    fields = ", ".join(f"c{n} int" for n in range(1000))
    assert [row.code for row in decoded(decoders, f"a: 'array<struct<{fields}>>'", many_items)] == ["too_large"]


def test_a_payload_is_the_message_where_it_is_an_object(decoders: Decoders) -> None:
    messages = [b'{"schema": {"id": 1}, "payload": {"id": 2}}', b'{"id": 3}', b'{"payload": null, "id": 4}', b'{"payload": 5, "id": 6}',
                b'{"payload": {"id": 7}, "payload": {"id": 8}}', b'{"payload": {"id": "x"}}', b'{"payload": {"more": 1}}']  # fmt: skip
    rows = decoded(decoders, "id: int", *messages, root="payload")
    assert [row.values and row.values["id"] for row in rows] == [2, 3, 4, 6, 8, None, None]
    assert rows[5].why == 'field `id`: wanted int, found "x"'
    rows = decoded(decoders, "id: int", *messages, root="payload", unknown_fields="bad")
    assert [row.code for row in rows] == [None, None, None, None, None, "undecodable", "unknown_field"]


def test_whole_numbers_of_json_schema_may_have_a_point(decoders: Decoders) -> None:
    texts = {
        "1.0": 1,
        "1e2": 100,
        "-5.00e1": -50,
        "0.0": 0,
        "127.00": 127,
        "1.5": None,
        "1e3": None,
        "128.0": None,
        "1e999999999": None,
    }
    rows = decoded(decoders, "n: {type: tinyint, format: integral}", *(b'{"n": %s}' % text.encode() for text in texts))
    assert [row.values and row.values["n"] for row in rows] == list(texts.values())
    rows = decoded(
        decoders, "n: {type: bigint, format: integral}", b'{"n": 9223372036854775807.0}', b'{"n": 9223372036854775808.0}'
    )
    assert [row.values and row.values["n"] for row in rows] == [2**63 - 1, None]


def test_hostile_messages_are_bad_rows(decoders: Decoders) -> None:
    columns = (
        "id: bigint, number: int, ratio: double, text: string, flag: boolean, at: timestamp, day: date, money: 'decimal(9,2)'"
    )
    columns += ", list: array<int>, place: 'struct<floor int, since timestamp>', map: 'map<string,double>'"
    columns += ", millis: {type: timestamp, format: epoch_millis}"
    rows = decoded(decoders, columns, *POISON)
    for message, row in zip(POISON, rows, strict=True):
        large = message is not None and len(message) > decoder.LARGEST
        assert row.code == ("null_value" if message is None else "too_large" if large else "undecodable"), (
            message and message[:60]
        )


@pytest.mark.parametrize("group", ["accepted", "refused", "either"])
def test_json_is_taken_by_its_grammar(group: str, decoders: Decoders) -> None:
    """The categories of the well-known JSON test suite: texts that must be taken, that must not, and that each parser decides on."""
    texts: Mapping[str, bytes] = getattr(json_texts, group.upper())
    column = {"value": types.STRING}
    # As the value of a field, as a whole message, and as a field that is skipped.
    field_messages = [b'{"value": ' + data + b"}" for data in texts.values()]
    skipped_messages = [b'{"other": ' + data + b', "value": 1}' for data in texts.values()]
    for messages in (field_messages, skipped_messages):
        rows = decoders.rows(described(column), column, messages)
        verdicts = {name: row.code is None for name, row in zip(texts, rows, strict=True)}
        if group == "either":
            assert {name for name, is_taken in verdicts.items() if is_taken} >= json_texts.OWN_CHOICES
        else:
            assert verdicts == dict.fromkeys(texts, group == "accepted")
    if group == "accepted":
        rows = decoders.rows(described(column), column, field_messages)
        for (name, text), row in zip(texts.items(), rows, strict=True):
            value = json.loads(text)
            assert row.values is not None
            assert row.values["value"] == (
                value if isinstance(value, str) else None if value is None else text.strip().decode()
            ), name
    single = {"format": "json", "columns": [{"name": "value", "type": "string"}], "writers": {"7": {"single": True}}}
    whole_messages = [b"\0\0\0\0\7" + data for data in texts.values()]
    verdicts = {name: row.code is None for name, row in zip(texts, decoders.rows(single, column, whole_messages), strict=True)}
    if group != "either":
        assert verdicts == dict.fromkeys(texts, group == "accepted")


def test_text_after_the_object_and_bytes_around_it(decoders: Decoders) -> None:
    good_texts = [b"{}", b" {} ", b"\t\r\n{}\n", b'{"a":1}']
    bad_texts = [*json_texts.AROUND, b"\xef\xbb\xbf{}", b"{}\0", b"\0{}", b"{}\xa0", b"{}{}", b"{},", b"{}]", b"{}}", b"{} //"]
    rows = decoded(decoders, "a: int", *good_texts, *bad_texts)
    assert [row.code for row in rows] == [None] * len(good_texts) + ["undecodable"] * len(bad_texts)


def test_the_id_in_front_is_read(decoders: Decoders) -> None:
    columns = [decoder.column("id", types.INT)]
    writers = {"5": {}, "6": {"refused": "the value's schema 6 does not fit"}, "4294967295": {}}
    description_ = {"format": "json", "columns": columns, "writers": writers}
    messages = [
        b"\0\0\0\0\5{}",
        b'\0\xff\xff\xff\xff{"id": 7}',
        b"\0\0\0\0\6{}",
        b"\0\0\0\0\7{}",
        b"\0\0\0\0",
        b"\1\0\0\0\5{}",
        b"",
        b"\0\0\0\0\5",
    ]
    rows = decoders.rows(description_, {"id": types.INT}, messages)
    assert [row.code for row in rows] == [
        None,
        None,
        "wrong_schema",
        "unknown_schema",
        "undecodable",
        "undecodable",
        "undecodable",
        "undecodable",
    ]
    assert rows[1].values == {"id": 7}
    assert rows[3].why == "the registry has no schema 7"


@pytest.mark.slow
@pytest.mark.parametrize("texts", few([20_000, 100_000], 20_000))
def test_bytes_changed_at_random_are_a_row_or_a_bad_row(decoders: Decoders, texts: int) -> None:
    """The decoder takes and refuses the same texts as Python's parser, which are nearly JSON."""
    chance = random.Random(7)
    bodies = [wrapped(column, text, "plain") for column, text, _ in CASES if len(text) < 2000]
    messages = [changed(chance, chance.choice(bodies)) for _ in range(texts)]
    columns = {"other": types.INT}
    rows = decoders.rows(described(columns), columns, messages)
    differences = [message for message, row in zip(messages, rows, strict=True) if (row.code is None) != is_object(message)]
    assert differences == []
    assert 0.2 < sum(row.code is None for row in rows) / texts < 0.9
    lines = decoders.lines(described(TYPES), messages)
    assert {line[-2] for line in lines} == {None, "undecodable"}


def is_object(message: bytes) -> bool:
    """Whether Python's own parser reads an object, without its extensions of JSON; `other` is no field of these messages."""

    def no(constant: str) -> Any:
        raise ValueError(constant)

    try:
        text = message.decode("utf-8")
        return isinstance(json.loads(text, parse_constant=no, parse_int=str, parse_float=str), dict)
    except (ValueError, RecursionError):
        return False


def changed(chance: random.Random, message: bytes) -> bytes:
    body = bytearray(message)
    for _ in range(chance.randint(1, 3)):
        index = chance.randrange(len(body) + 1)
        match chance.randrange(5):
            case 0:
                del body[index : index + chance.randint(1, 3)]
            case 1:
                body[index:index] = bytes([chance.choice(b'"\\{}[],:0123456789.eE+-tfnu \n\0\x7f\x80\xc3\xed\xf0\xff')])
            case 2 if index < len(body):
                body[index] ^= 1 << chance.randrange(8)
            case 3:
                body[index:index] = body[chance.randrange(len(body) + 1) :][: chance.randint(1, 8)]
            case _:
                body[index:] = body[index:][: chance.randint(0, len(body))]
    return bytes(body)


def test_a_single_value_is_of_its_own_column(decoders: Decoders) -> None:
    """The fields of another version of the schema are columns, too."""
    columns = [decoder.column("id", types.STRING), decoder.column("value", types.STRING)]
    writers = {"1": {}, "2": {"single": True}}
    fields, single = decoders.rows(
        of_json(columns, writers=writers), types_of(columns), [b'\0\0\0\0\1{"id": "a"}', b'\0\0\0\0\2"abc"']
    )
    assert fields.values == {"id": "a", "value": None}
    assert single.values == {"id": None, "value": "abc"}


def test_structs_that_columns_make_wide_are_bounded(decoders: Decoders) -> None:
    items = types.Array(types.Struct(tuple(types.Field(f"c{index}", types.BOOLEAN) for index in range(2_000))))
    columns = [decoder.column("items", items)]
    item = {"type": "record", "name": "I", "fields": [{"name": "c0", "type": "boolean"}]}
    schema = {"type": "record", "name": "R", "fields": [{"name": "items", "type": {"type": "array", "items": item}}]}
    description = {"format": "avro", "columns": columns, "writers": {"1": {"schema": schema}}}
    count = bytes([0x80 | 64, 0x9A | 0x80, 0x0C])  # 100,000 items, as Avro writes it
    (row,) = decoders.rows(description, {"items": items}, [b"\0\0\0\0\1" + count + bytes(100_000) + b"\0"])
    assert row.code == "too_large"
