"""Debezium's change events: an envelope of `op`, `before`, `after` and `source`, bare or as the `payload` beside a `schema`.

The columns are those of `after`, of a delete those of `before`; then `_op` and `_source_at`. Tombstones, messages of the log
(`m`) and changes of the schema are left out. A truncate (`t`) is a row in which only `_op` and `_source_at` are set.
Guarantee: an envelope that lacks what its `op` needs is a bad row, and so is one in which a field has another type.
Limit: of a value that the database did not send, Debezium's `__debezium_unavailable_value` is what a `string` column gets.
Cost: the parse of all that is in the envelope; an update with its image before is read as two rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from framework import types
from framework.formats import json
from framework.formats.versions import Shape, Unsupported
from framework.model import Column, Decoding, Fault
from framework.sql.quote import identifier, literal
from framework.types import BIGINT, STRING, TIMESTAMP, Struct

OP = Column("_op", STRING, "What was done: c create, u update, d delete, r read in a snapshot, t truncate")
SOURCE_AT = Column("_source_at", TIMESTAMP, "When the database did it")
COLUMNS = (OP, SOURCE_AT)
_NOT_ONE = "the value is not an envelope of Debezium with these columns"
_MILLIS = json.Written(TIMESTAMP, "epoch_millis")
_OPS = "'c', 'u', 'd', 'r', 't', 'm'"
_WITH_AFTER = "'c', 'u', 'r'"
_TEXT = (
    "`after` or `before` is text, as of MongoDB: unwrap it in the connector (ExtractNewDocumentState), and write `value: json`"
)


def decoding(fields: Sequence[json.Field]) -> tuple[tuple[Column, ...], Decoding]:
    """Of envelopes in JSON. A required column is asked for where a row was made or changed: a delete may know the key alone."""
    image = Struct(tuple(types.Field(field.name, field.written) for field in fields))
    values = {field.name: f"_sluice_decoded.image.{identifier(field.name)}" for field in fields}
    columns = [(field.name, json.value(values[field.name], field.written)) for field in fields]
    misfits = (json.misfit(values[field.name], field.written) for field in fields)
    wrong = ["NOT is_valid_utf8(_sluice_text)", "NOT coalesce(_sluice_decoded.sound, false)", *(each for each in misfits if each)]
    faults = [
        json.TOO_LARGE,
        Fault("value", "undecodable", _NOT_ONE, f"_sluice_value IS NOT NULL AND ({' OR '.join(f'({each})' for each in wrong)})"),
    ]
    for field, (name, sql) in zip(fields, columns, strict=True):
        if field.required:
            lacks = lacks_value("_sluice_decoded.op", sql)
            faults.append(Fault("value", "missing_field", f"`{name}` is required and missing or null", lacks))
    own = ((OP.name, "_sluice_decoded.op"), (SOURCE_AT.name, json.value("_sluice_decoded.at", _MILLIS)))
    return (*(Column(field.name, field.type) for field in fields), *COLUMNS), Decoding(
        parse=None,
        columns=(*columns, *own),
        faults=tuple(faults),
        apart=(("_sluice_decoded", _parse(image)),),  # Spark does not see that lambdas are the same, and would compute each
        explain=tuple(_explain(fields)),
        explained=f"transform(array({json.EXPLAINED}), e -> {_payload('e')})[0]",
        keep="_sluice_value IS NOT NULL AND coalesce(_sluice_decoded.op <> 'm', NOT coalesce(_sluice_decoded.sound, false))",
    )


def lacks_value(op: str, sql: str) -> str:
    """SQL that is true where a required column has no value: of a row that was deleted Debezium may know the key alone."""
    return f"coalesce({op} IN ({_WITH_AFTER}), false) AND {sql} IS NULL"


def _parse(image: Struct) -> str:
    """What matters of an envelope, wherever that is. Without an `op` only a change of the schema is sound."""
    source = Struct((types.Field("ts_ms", _MILLIS),))
    parts = {"op": STRING, "before": image, "after": image, "source": source, "databaseName": STRING, "ddl": STRING}
    bare = Struct(tuple(types.Field(name, type_) for name, type_ in parts.items()))
    both = Struct((*bare.fields, types.Field("payload", bare)))
    whole = "get(parts, 0)"
    found = ", ".join(f"'{name}', {whole}.{name}" for name in parts)
    envelope = f"CASE WHEN {whole}.payload IS NULL THEN named_struct({found}) ELSE {whole}.payload END"
    change = "e.op IS NULL AND coalesce(e.databaseName, e.ddl) IS NOT NULL"
    sound = f"{json.is_one('parts')} AND ({change} OR NOT ({_incomplete('e')}))"
    matters = f"named_struct('sound', {sound}, 'op', e.op, 'image', {_image('e')}, 'at', e.source.ts_ms)"
    # As variables, since SQL with the parse at each of their places would be long.
    return f"transform(array({json.with_mark(both)}), parts -> transform(array({envelope}), e -> {matters})[0])[0]"


def _payload(parsed: str) -> str:
    inner = f"try_variant_get({parsed}, '$.payload', 'variant')"
    return f"CASE WHEN startswith(schema_of_variant({inner}), 'OBJECT') THEN {inner} ELSE {parsed} END"


def unwrap(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """The columns, of the shapes of an envelope."""
    parts = {shape.name: shape for shape in shapes}
    hint = "is it a topic of Debezium? Otherwise write `value: avro`"
    for name in ("op", "before", "after", "source"):
        if name not in parts:
            raise Unsupported(f"an envelope of Debezium has `{name}`, and this schema has not", hint)
    images = {name: parts[name].inside for name in ("after", "before")}
    if not all(images.values()):
        hint = (
            "a text, as of MongoDB, has no columns: unwrap it in the connector (ExtractNewDocumentState), and write `value: avro`"
        )
        raise Unsupported("`before` and `after` are no records", hint)
    if [(each.name, each.type) for each in images["before"]] != [(each.name, each.type) for each in images["after"]]:
        raise Unsupported(
            "`before` and `after` have other fields", "Debezium writes both of one table: see what the registry has"
        )
    if not any(each.name == "ts_ms" and each.type == BIGINT for each in parts["source"].inside):
        raise Unsupported("`source` has no `ts_ms`", hint)
    taken = next((each.name for each in images["after"] if each.name.lower() in (OP.name, SOURCE_AT.name)), None)
    if taken:
        raise Unsupported(f"the table has a column `{taken}`, which Sluice makes itself", "rename it in the connector")
    return (*images["after"], *(Shape(column.name, column.type, column.doc) for column in COLUMNS))


def of_envelope(columns: Sequence[str], envelope: str) -> tuple[list[tuple[str, str]], list[Fault], str | None]:
    """SQL of these columns, `_op` and `_source_at` from a decoded struct whose `before` and `after` have all of them, as `unwrap`
    makes sure; what is wrong with it, if it is there; and which messages become rows."""
    made = [(name, f"{_image(envelope)}.{identifier(name)}") for name in columns]
    wrong = f"{envelope} IS NOT NULL AND ({_incomplete(envelope)})"
    return _with_own(made, envelope), [Fault("value", "undecodable", _NOT_ONE, wrong)], _kept(envelope)


def _image(envelope: str) -> str:
    return f"(CASE WHEN {envelope}.op = 'd' THEN {envelope}.before ELSE {envelope}.after END)"


def _with_own(columns: list[tuple[str, str]], envelope: str) -> list[tuple[str, str]]:
    return [*columns, (OP.name, f"{envelope}.op"), (SOURCE_AT.name, json.value(f"{envelope}.source.ts_ms", _MILLIS))]


def _kept(envelope: str) -> str:
    return f"_sluice_value IS NOT NULL AND coalesce({envelope}.op <> 'm', true)"


def _incomplete(envelope: str) -> str:
    op = f"{envelope}.op"
    after = f"{op} IN ({_WITH_AFTER}) AND {envelope}.after IS NULL"
    at = json.misfit(f"{envelope}.source.ts_ms", _MILLIS)
    return f"NOT coalesce({op} IN ({_OPS}), false) OR ({after}) OR ({op} = 'd' AND {envelope}.before IS NULL) OR ({at})"


def _explain(fields: Sequence[json.Field]) -> Iterator[tuple[str, str]]:
    """Why an envelope cannot be decoded, over the payload or, where there is none, the whole."""
    op = "try_variant_get(_sluice_parsed, '$.op', 'string')"
    after, before = (f"schema_of_variant(try_variant_get(_sluice_parsed, '$.{name}', 'variant'))" for name in ("after", "before"))
    absent = "coalesce({}, 'VOID') = 'VOID'"
    yield from json.NOT_AN_OBJECT
    yield f"{op} IS NULL", literal("the value is no envelope of Debezium: it has no `op`")
    yield f"{op} NOT IN ({_OPS})", f"concat('the envelope has the op ', left({op}, 20), ', which is none of c, u, d, r, t and m')"
    yield f"'STRING' IN ({after}, {before})", literal(_TEXT)
    yield f"{op} IN ({_WITH_AFTER}) AND {absent.format(after)}", f"concat('the envelope has no `after`, and its op is ', {op})"
    yield f"{op} = 'd' AND {absent.format(before)}", literal("the envelope has no `before`, and its op is d")
    yield json.explain(json.Field("source.ts_ms", TIMESTAMP, format=_MILLIS.format), "$.source.ts_ms")
    for image in ("after", "before"):
        yield from json.explained(fields, f"$.{image}")
    yield json.SOMETHING
