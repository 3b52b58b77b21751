"""Avro schemas that are large, deep or none at all: what reading one costs, and what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from framework.base.types import STRING
from framework.messages.formats.avro import read as decoded
from framework.messages.formats.avro.schema import MOST, parse, shapes
from framework.messages.formats.avro.writer import encoder
from framework.messages.schemas.versions import ColumnShape, Unsupported, merge
from framework.plan.schema import Schema, Version
from tests.support.registry_project import record


def avro(definition: Any) -> Schema:
    return Schema("AVRO", json.dumps(definition))


def calls(work: Callable[[], object]) -> int:
    """Returns how many Python functions `work` calls: its cost on any machine."""
    call_count = 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal call_count
        call_count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return call_count


def nested(levels: int) -> Any:
    return record(("a", nested(levels - 1) if levels else "int"), name=f"R{levels}")


def twice(levels: int, leaf: Any = "int") -> list[Any]:
    """Records, each of which has two fields of the record before it."""
    names = [record(("a", leaf), name="R0")]
    return [*names, *(record(("a", f"R{level}"), ("b", f"R{level}"), name=f"R{level + 1}") for level in range(levels))]


def test_a_chain_of_records_costs_each_of_them_once() -> None:
    cost = {levels: calls(lambda levels=levels: shapes(avro(nested(levels)))) for levels in (10, 20, 40)}  # type: ignore[misc]
    assert cost[40] < 5 * cost[10]


@pytest.mark.parametrize("leaf", ["int", "null", {"type": "fixed", "name": "F", "size": 0}])
def test_records_that_branch_at_each_level_are_refused_for_their_fields(leaf: Any) -> None:
    definition = record(("c", twice(40, leaf)))

    def refused() -> None:
        with pytest.raises(Unsupported, match="more than 5,000 fields"):
            parse(avro(definition))

    assert calls(refused) < 100_000


@pytest.mark.slow
def test_versions_of_many_fields_cost_each_field_once() -> None:
    def read(fields: int) -> None:
        schema = avro(record(*((f"f{index}", "int") for index in range(fields))))
        merged = merge((Version(number, schema, number), shapes(schema)) for number in (1, 2, 3))
        assert len(decoded("value", merged).columns) == fields

    assert calls(lambda: read(800)) < 6 * calls(lambda: read(200))


def test_as_many_fields_as_are_allowed_are_columns() -> None:
    assert len(shapes(avro(record(*((f"f{index}", "int") for index in range(MOST)))))) == MOST
    with pytest.raises(Unsupported, match="more than 5,000 fields"):
        shapes(avro(record(*((f"f{index}", "int") for index in range(MOST + 1)))))


def test_a_chain_of_names_is_refused_for_its_depth() -> None:
    references = [("0", avro(record(("a", "int"), name="R0")))]
    references += [(str(level), avro(record(("a", f"R{level - 1}"), name=f"R{level}"))) for level in range(1, 3000)]
    schema = Schema("AVRO", json.dumps(record(("c", "R2999"))), tuple(references))
    with pytest.raises(Unsupported, match="nested deeper than 64 levels"):
        shapes(schema)
    deep_text = '{"type": "array", "items": ' * 3000 + '"int"' + "}" * 3000
    for work in (shapes, encoder):
        with pytest.raises(Unsupported, match=r"is not Avro|nested deeper"):
            work(Schema("AVRO", deep_text))


@pytest.mark.parametrize(
    "definition",
    [
        5, {}, [5], {"type": None}, {"type": "record"}, record((5, "int")), record(("", "int")), record((None, "int")),
        record(("\ud800", "int")), record(("a", "int"), name="\ud800"), {**record(("a", "int")), "name": 5},
        record(("a", "int", {"aliases": [1]})), {"type": "enum", "name": "E", "symbols": [1]},
        {"type": "enum", "name": "E", "symbols": [["a"]]}, {"type": "fixed", "name": "F", "size": "x"},
        {"type": "fixed", "name": "F", "size": -1}, {"type": "array"}, {"type": "map", "values": 5},
    ],
)  # fmt: skip
def test_what_is_no_avro_is_refused(definition: Any) -> None:
    with pytest.raises(Unsupported, match=r"is not Avro|does not define"):
        shapes(avro(definition))


def test_a_description_of_half_a_character_is_readable() -> None:
    (shape,) = shapes(avro(record(("a", "int", {"doc": "x\ud800"}))))
    assert shape.doc == "x?"


def test_a_description_has_nothing_that_a_reader_does_not_need() -> None:
    """Java cannot read all that other writers may put into a schema."""
    nested_list: list[Any] = []
    for _ in range(600):
        nested_list = [nested_list]
    schema = avro(record(("a", "int", {"q": nested_list, "default": 1})) | {"n": 1e999, "k" * 60_000: 10**2000})
    (writer,) = decoded("value", merge([(Version(1, schema, 1), shapes(schema))])).writers.values()
    assert writer == {"schema": {"type": "record", "name": "Trade", "fields": [{"name": "a", "type": "int"}]}}


def columns(*versions: Any) -> tuple[list[tuple[str, ...]], list[str]]:
    """The columns with their earlier names, and the differences between the versions."""
    schemas = [avro(version) for version in versions]
    merged = merge((Version(number, schema, number), shapes(schema)) for number, schema in enumerate(schemas, 1))
    return [(entry.name, *entry.old_names) for entry in merged.shapes], [entry.kind for entry in merged.differences]


def test_a_field_that_has_the_old_name_of_another_is_another_field() -> None:
    before = record(("a", "int"), ("b", "string"))
    after = record(("b", "int", {"aliases": ["a"]}), ("c", "string", {"aliases": ["b"]}))
    assert columns(before, after) == ([("b", "a"), ("c", "b")], [])
    shape_lists = [
        [ColumnShape("name", STRING, number=1)],
        [ColumnShape("name_old", STRING, number=1), ColumnShape("name", STRING, number=2)],
    ]
    merged = merge(
        (Version(number, Schema("PROTOBUF", str(number)), number), shape) for number, shape in enumerate(shape_lists, 1)
    )
    assert [(shape.name, shape.number) for shape in merged.shapes] == [("name_old", 1), ("name", 2)]
