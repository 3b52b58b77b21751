"""A registry's schemas change while the table exists: an allowed change reaches the table at once; another stops the pipeline
with an error that says what accepting means. The rules are the same for all formats; these tests use Avro."""

from __future__ import annotations

from typing import Any

import pytest

from framework.base.errors import BatchError, ColumnsChanged
from framework.core.run.run import batches
from framework.operations.undo import accept
from tests.support.rebuilds import run_rebuild
from tests.support.registry_project import Registered, record

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

V1 = (("id", "int"), ("who", record(("mail", "string"), ("age", "int"), name="Who")), ("note", "string"))
M1 = {"id": 1, "who": {"mail": "a", "age": 30}, "note": "x"}


@pytest.fixture
def trades(trades: Registered) -> Registered:
    """A project with a table of the first version's columns and one row."""
    trades.send(trades.avro(trades.register(record(*V1)), M1))
    trades.run()
    return trades


def columns(project: Registered) -> dict[str, str]:
    return {
        name: type_
        for name, type_, *_ in project.sql("describe {table}")
        if name and not name.startswith(("_", "#", "Part", "Not"))
    }


def second(project: Registered, *fields: tuple[Any, ...], **message: Any) -> int:
    """Registers a second version, sends a message of each, and returns the second schema's id."""
    old_id, new_id = project.register(record(*V1)), project.register(record(*fields))
    project.send(project.avro(old_id, {**M1, "id": 2}) + project.avro(new_id, message))
    return new_id


def accepted(project: Registered) -> str:
    context = project.context()
    refused = accept.refusal(context, context.plan.pipelines[0])
    assert refused is not None
    accept.accept(context, context.plan.pipelines[0], refused)
    return refused.hint


def test_add_and_widen_at_any_depth(trades: Registered) -> None:
    who_record = record(("mail", "string"), ("age", "long"), ("phone", ["null", "string"], {"default": None}), name="Who")
    second(trades, ("id", "long"), ("who", who_record), ("note", "string"), ("price", "double", {"default": 0}),
           id=2**40, who={"mail": "b", "age": 2**40, "phone": "1"}, note="y", price=1.5)  # fmt: skip
    trades.run()
    assert columns(trades) == {
        "id": "bigint", "who": "struct<mail:string,age:bigint,phone:string>", "note": "string", "price": "double",
    }  # fmt: skip
    assert trades.sql("select id, who.age, who.phone, note, price from {table} order by id") == [
        (1, 30, None, "x", None), (2, 30, None, "x", None), (2**40, 2**40, "1", "y", 1.5),
    ]  # fmt: skip
    trades.assert_exactly_once()


def test_a_field_that_is_gone_stays_a_column(trades: Registered) -> None:
    """Messages of the older version still have the field."""
    second(trades, ("id", "int"), ("who", record(("mail", "string"), name="Who")), id=3, who={"mail": "c"})
    trades.run()
    assert trades.sql("select id, who.age, note from {table} order by id") == [(1, 30, "x"), (2, 30, "x"), (3, None, None)]


def test_a_refused_addition_can_be_accepted(trades: Registered) -> None:
    trades.into_more = ", schema_changes: {add: refuse}"
    second(trades, *V1, ("price", ["null", "double"], {"default": None}), **{**M1, "id": 3}, price=1.5)
    with pytest.raises(ColumnsChanged, match="`price` double is new in the spec, which says `add: refuse`"):
        trades.run()
    assert trades.sql("select count(*) from {table}") == [(1,)]
    assert accepted(trades).endswith("or `sluice accept trades`, which adds column price double")
    trades.run()
    assert trades.sql("select id, price from {table} order by id") == [(1, None), (2, None), (3, 1.5)]


def test_another_name_by_alias(trades: Registered) -> None:
    """The name is refused until it is allowed or accepted; then the column keeps its data, at any depth, and gets older messages."""
    who_record = record(("email", "string", {"aliases": ["mail"]}), ("age", "int"), name="Who")
    second(
        trades,
        ("id", "int"),
        ("customer", who_record, {"aliases": ["who"]}),
        ("note", "string"),
        id=3,
        customer={"email": "c", "age": 1},
        note="z",
    )
    with pytest.raises(ColumnsChanged) as refused:
        trades.run()
    assert "`who` is `customer` in the newest schema, and the spec says `rename: refuse`" in refused.value.message
    assert "`who.mail` is `email` in the newest schema, and the spec says `rename: refuse`" in refused.value.message
    assert "which renames who to customer; renames who.mail to email" in accepted(trades)
    trades.run()
    assert columns(trades) == {"id": "int", "customer": "struct<email:string,age:int>", "note": "string"}
    assert trades.sql("select id, customer.email from {table} order by id") == [(1, "a"), (2, "a"), (3, "c")]
    trades.assert_exactly_once()


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "accepted"])
def test_another_name_and_a_rebuild(trades: Registered, allowed: bool) -> None:
    """Names that were accepted before a rebuild count in the new table, too; a name that was not is refused first."""
    trades.into_more = ", partition_by: [id]" + (", schema_changes: {rename: allow}" if allowed else "")
    fields = [("id", "int"), V1[1], ("text", "string", {"aliases": ["note"]})]
    second(trades, *fields, id=3, who={"mail": "c", "age": 1}, text="z")
    if not allowed:
        with pytest.raises(BatchError, match="`note` is `text` in the newest schema") as refused:
            run_rebuild(trades)
        assert "`sluice accept trades`" in str(refused.value)
        accepted(trades)
    assert run_rebuild(trades) is not None
    assert columns(trades) == {"id": "int", "who": "struct<mail:string,age:int>", "text": "string"}
    assert trades.sql("select id, text from {table} order by id") == [(1, "x"), (2, "x"), (3, "z")]
    assert trades.run() == []
    trades.assert_exactly_once()


def test_a_narrower_type_and_a_rebuild(trades: Registered) -> None:
    """A column stays as wide as it is, though no message of the newest schema needs it."""
    second(trades, ("id", "long"), *V1[1:], **{**M1, "id": 2**40})
    trades.run()
    trades.into_more = ", schema_changes: {narrow: allow}, partition_by: [note]"
    second(trades, *V1, ("more", ["null", "int"], {"default": None}), **{**M1, "id": 4, "more": 1})
    assert run_rebuild(trades) is not None
    assert columns(trades)["id"] == "bigint"
    assert trades.sql("select id, more from {table} order by id, more") == [
        (1, None),
        (2, None),
        (2, None),
        (4, 1),
        (2**40, None),
    ]
    trades.assert_exactly_once()


def test_another_name_where_it_is_allowed(trades: Registered) -> None:
    trades.into_more = ", schema_changes: {rename: allow}"
    second(trades, ("number", "long", {"aliases": ["id"]}), *V1[1:], **{**M1, "number": 3})
    trades.run()
    assert columns(trades)["number"] == "bigint"
    assert trades.sql("select number from {table} order by 1") == [(1,), (2,), (3,)]


def test_a_narrower_type(trades: Registered) -> None:
    """The column keeps its type once that is allowed or accepted."""
    wide = trades.register(record(("id", "long"), *V1[1:]))
    trades.send(trades.avro(wide, {**M1, "id": 2}))
    trades.run()
    narrow = trades.register(record(("id", "int"), *V1[1:], ("more", ["null", "int"], {"default": None})))
    trades.send(trades.avro(narrow, {**M1, "id": 3, "more": 1}))
    with pytest.raises(ColumnsChanged, match=rf"schema {narrow} \(version 3\) has `id` as int, and before it was bigint"):
        trades.run()
    assert accepted(trades).endswith("or `sluice accept trades`, which keeps the column's type")
    trades.run()
    assert trades.sql("select id, more from {table} order by id") == [(1, None), (2, None), (3, 1)]
    trades.into_more, trades.namespace = ", schema_changes: {narrow: allow}", f"{trades.namespace}b"
    trades.run()
    assert trades.sql("select count(*) from {table}") == [(3,)]


def test_a_field_of_another_type_waits_until_it_is_accepted(trades: Registered) -> None:
    """The pipeline stops until the change is accepted; then only messages of that schema are bad rows, with the reason."""
    schema_id = second(trades, ("id", "string"), *V1[1:], **{**M1, "id": "three"})
    with pytest.raises(ColumnsChanged, match=rf"schema {schema_id} \(version 2\) has `id` as string, and before it was int"):
        trades.run()
    assert f"which makes a bad row of each message of schema {schema_id}" in accepted(trades)
    trades.run()
    assert trades.sql("select id from {table} order by id") == [(1,), (2,)]
    assert [(row["code"], row["schema_id"], row["message"]) for row in trades.rows(bad=True)] == [
        ("wrong_schema", schema_id,
         f"the value's schema {schema_id} (version 2) does not fit the columns: it has `id` as string, and before it was int"),
    ]  # fmt: skip
    trades.assert_exactly_once()


def test_all_that_is_refused_is_said_at_once(trades: Registered) -> None:
    trades.into_more = ", schema_changes: {add: refuse, drop: refuse}"
    second_id = second(trades, ("id", "string"), ("price", ["null", "double"]), id="x", price=1.0)
    third_id = trades.register(record(("id", "int"), ("price", ["null", "double"]), ("remark", "string", {"aliases": ["note"]})))
    with pytest.raises(ColumnsChanged) as refused:
        trades.run()
    assert third_id > second_id
    for phrase in (
        "`price` double is new in the spec", "`note` is `remark` in the newest schema",
        f"`{trades.subject}`: schema {second_id} (version 2) has `id` as string",
    ):  # fmt: skip
        assert phrase in refused.value.message


def test_a_column_that_comes_while_it_runs(trades: Registered) -> None:
    """A version comes between two batches of one process: the second batch adds the new column before its rows."""
    context = trades.context()
    pipeline = context.plan.pipelines[0]
    trades.send(trades.avro(trades.register(record(*V1)), {**M1, "id": 2}))
    list(batches(context, pipeline))
    new = trades.register(record(*V1, ("price", ["null", "double"], {"default": None})))
    trades.send(trades.avro(new, {**M1, "id": 3, "price": 2.5}))
    list(batches(context, pipeline))
    assert trades.sql("select id, price from {table} order by id") == [(1, None), (2, None), (3, 2.5)]
