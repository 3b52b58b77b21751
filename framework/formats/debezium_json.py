"""Debezium's change events in JSON, bare or as the `payload` beside a `schema`.

Guarantee: an envelope that lacks what its `op` needs is a bad row, and so is one in which a field has another type.
Cost: the parse of all that is in the envelope; an update with its image before is read as two rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from framework import types
from framework.encoding import debezium, json_columns, json_object, json_text
from framework.encoding.fields import Field
from framework.formats import Guess, json
from framework.model import Decoding, Fault
from framework.sql.quote import identifier, literal
from framework.types import STRING, TIMESTAMP, Struct

_TEXT = (
    "`after` or `before` is text, as of MongoDB: unwrap it in the connector (ExtractNewDocumentState), and write `value: json`"
)
_UNSENT: tuple[Any, ...] = (debezium.MARKER, [debezium.MARKER], list(debezium.MARKER.encode()))


def decoding(fields: Sequence[Field], _only_columns: bool) -> Decoding:
    """A required column is asked for where a row was made or changed: a delete may know the key alone."""
    image = Struct(tuple(types.Field(field.name, field.written) for field in fields))
    values = {field.name: f"_sluice_decoded.image.{identifier(field.name)}" for field in fields}
    columns = [(field.name, json_columns.value(values[field.name], field.written)) for field in fields]
    misfits = (json_columns.misfit(values[field.name], field.written) for field in fields)
    wrong = ["NOT is_valid_utf8(_sluice_text)", "NOT coalesce(_sluice_decoded.sound, false)", *(each for each in misfits if each)]
    is_wrong = f"_sluice_value IS NOT NULL AND ({' OR '.join(f'({each})' for each in wrong)})"
    faults = [json_object.TOO_LARGE, Fault("value", "undecodable", debezium.NOT_ONE, is_wrong)]
    for field, (name, sql) in zip(fields, columns, strict=True):
        if field.required:
            lacks = f"{debezium.columns_asked('_sluice_decoded.op')} AND {sql} IS NULL"
            faults.append(Fault("value", "missing_field", f"`{name}` is required and missing or null", lacks))
    own = ((debezium.OP.name, "_sluice_decoded.op"), debezium.source_at("_sluice_decoded.at"))
    return Decoding(
        parse=None,
        columns=(*columns, *own),
        faults=tuple(faults),
        meant=json_object.MEANT,
        apart=(("_sluice_decoded", _parse(image)),),  # Spark does not see that lambdas are the same, and would compute each
        explain=tuple(_explain(fields)),
        explained=f"transform(array({json_object.EXPLAINED}), e -> {_payload('e')})[0]",
        keep="_sluice_value IS NOT NULL AND coalesce(_sluice_decoded.op <> 'm', NOT coalesce(_sluice_decoded.sound, false))",
    )


def _parse(image: Struct) -> str:
    """What matters of an envelope, wherever that is. Without an `op` only a change of the schema is sound."""
    source = Struct((types.Field("ts_ms", debezium.MILLIS),))
    parts = {"op": STRING, "before": image, "after": image, "source": source, "databaseName": STRING, "ddl": STRING}
    bare = Struct(tuple(types.Field(name, type_) for name, type_ in parts.items()))
    both = Struct((*bare.fields, types.Field("payload", bare)))
    whole = "get(parts, 0)"
    found = ", ".join(f"'{name}', {whole}.{name}" for name in parts)
    envelope = f"CASE WHEN {whole}.payload IS NULL THEN named_struct({found}) ELSE {whole}.payload END"
    change = "e.op IS NULL AND coalesce(e.databaseName, e.ddl) IS NOT NULL"
    sound = f"{json_object.is_one('parts')} AND ({change} OR NOT ({debezium.incomplete('e')}))"
    matters = f"named_struct('sound', {sound}, 'op', e.op, 'image', {debezium.image('e')}, 'at', e.source.ts_ms)"
    # As variables, since SQL with the parse at each of their places would be long.
    return f"transform(array({json_object.with_mark(both)}), parts -> transform(array({envelope}), e -> {matters})[0])[0]"


def _payload(parsed: str) -> str:
    inner = f"try_variant_get({parsed}, '$.payload', 'variant')"
    return f"CASE WHEN startswith(schema_of_variant({inner}), 'OBJECT') THEN {inner} ELSE {parsed} END"


def _explain(fields: Sequence[Field]) -> Iterator[tuple[str, str]]:
    """Why an envelope cannot be decoded, over the payload or, where there is none, the whole."""
    op = "try_variant_get(_sluice_parsed, '$.op', 'string')"
    after, before = (f"schema_of_variant(try_variant_get(_sluice_parsed, '$.{name}', 'variant'))" for name in ("after", "before"))
    absent = "coalesce({}, 'VOID') = 'VOID'"
    other_op = f"concat('the envelope has the op ', left({op}, 20), ', which is none of c, u, d, r, t and m')"
    yield from json_object.NOT_AN_OBJECT
    yield f"{op} IS NULL", literal("the value is no envelope of Debezium: it has no `op`")
    yield debezium.is_op(f"{op} NOT", *debezium.OPS), other_op
    yield f"'STRING' IN ({after}, {before})", literal(_TEXT)
    no_after = f"{debezium.has_after(op)} AND {absent.format(after)}"
    yield no_after, f"concat('the envelope has no `after`, and its op is ', {op})"
    yield f"{op} = 'd' AND {absent.format(before)}", literal("the envelope has no `before`, and its op is d")
    yield json_object.explain(Field("source.ts_ms", TIMESTAMP, format=debezium.MILLIS.format), "$.source.ts_ms")
    for image in ("after", "before"):
        yield from json_object.explained(fields, f"$.{image}")
    yield json_object.SOMETHING


def rows(data: bytes) -> Sequence[Mapping[str, Any]] | None:
    """The images of a row, without the values that the database did not send. None of messages of a database without rows of fields."""
    envelope = payload(json_text.one_object(data))
    if envelope is None or envelope.get("op") not in debezium.OPS or not isinstance(envelope.get("source"), dict):
        return None
    images = [envelope.get("before"), envelope.get("after")]
    if not all(image is None or isinstance(image, dict) for image in images):
        return None
    return [{name: value for name, value in image.items() if value not in _UNSENT} for image in images if image]


def payload(document: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What stands beside a `schema`, or the whole."""
    if document is not None and document.keys() == {"schema", "payload"}:
        inner = document["payload"]
        return inner if isinstance(inner, dict) else None
    return document


VALUE = replace(
    json.VALUE,
    decoding=decoding,
    takes_unknown_fields=False,
    changes=debezium.CHANGES,
    guess=Guess(rows=rows, key=lambda data: payload(json_text.one_object(data)), are_not="no envelopes"),
)
