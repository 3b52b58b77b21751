"""JSON: one object per message, each field only as its own JSON type.

Guarantee: trailing text, a second document, a wrong type, a number out of range or bytes that are not UTF-8 make a bad row,
never another value.
Limit: a `string` column takes an object, a list or a fraction as Spark writes it again: without spaces, 2.50 as 2.5.
Cost: Spark's parser once per message; a message with a `}` before its end (nested objects) is walked a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from framework import types
from framework.model import Column, Decoding, Fault
from framework.sql.quote import identifier, literal, substituted
from framework.types import Array, Decimal, Map, Struct, Type

LARGEST = 20_000_000  # bytes; Spark's parser gives up on longer texts
_EXPLAINED = 1 << 20  # bytes; what is wrong with a larger value is not looked for
EXPLAINED = f"CASE WHEN octet_length(_sluice_value) <= {_EXPLAINED} THEN try_parse_json(_sluice_text) END"
_OPTIONS = (
    "map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '_sluice_corrupt', 'allowSingleQuotes', 'false',"
    " 'allowNonNumericNumbers', 'false')"
)
_ISO_DATE = r"^\\d{4}-\\d\\d-\\d\\d$"
_FIRST_DAY, _LAST_DAY = -719162, 2932896  # the years 1 to 9999
# From a whole number; the first and the last number that is taken.
_EPOCHS = {
    "epoch_millis": ("timestamp_millis({})", _FIRST_DAY * 86_400_000, (_LAST_DAY + 1) * 86_400_000 - 1),
    "epoch_micros": ("timestamp_micros({})", _FIRST_DAY * 86_400_000_000, (_LAST_DAY + 1) * 86_400_000_000 - 1),
    "epoch_days": ("date_from_unix_date(CAST({} AS INT))", _FIRST_DAY, _LAST_DAY),
}


@dataclass(frozen=True)
class Written(Type):
    """A type that is written in JSON as another one: `format` says how."""

    type: Type
    format: str

    def __str__(self) -> str:
        return str(self.type)

    def text(self, named: Callable[[str], str]) -> str:
        return self.type.text(named)


@dataclass(frozen=True)
class Field:
    """A field of the message."""

    name: str
    type: Type
    required: bool = False
    format: str | None = None

    @property
    def written(self) -> Type:
        return Written(self.type, self.format) if self.format else self.type


def suits(format_: str, type_: Type) -> bool:
    """Whether values of the type can be written so."""
    if format_ == "base64":
        return isinstance(type_, Decimal)
    return type_ == (types.DATE if format_ == "epoch_days" else types.TIMESTAMP)


def decoding(fields: Sequence[Field], unknown_fields: str) -> Decoding:
    return Decoding(
        parse=parse(fields),
        columns=tuple((field.name, _column(field)) for field in fields),
        faults=_faults(fields, unknown_fields),
        explain=(*NOT_AN_OBJECT, *explained(fields, "$"), SOMETHING),
        explained=EXPLAINED,
    )


def parse(fields: Sequence[Field]) -> str:
    """SQL of the struct that the message's fields are read as."""
    raw = ", ".join(f"{identifier(field.name)} {_raw(field.written)}" for field in fields)
    # Asked inside, so that the parse itself depends on nothing: Spark computes once only what it would always compute.
    text = f"CASE WHEN {_FITS} THEN _sluice_text END"
    return f"from_json({text}, {literal(raw + ', `_sluice_corrupt` string')}, {_OPTIONS})"


def behind(sql: str, bytes_: str, parsed: str) -> str:
    """The same SQL of JSON that stands in other bytes than the message's value."""
    for name, sql_of in (
        ("_sluice_decoded", parsed),
        ("_sluice_text", "CAST(_sluice_value AS STRING)"),
        ("_sluice_value", bytes_),
    ):
        sql = substituted(sql, {name: sql_of})
    return sql


def key(fields: Sequence[Field], docs: Mapping[str, str]) -> tuple[tuple[Column, ...], Decoding]:
    """The same of a message's key, which may be missing."""
    made = decoding(fields, "ignore")

    def of_key(sql: str) -> str:
        return behind(sql, "_sluice_key", f"({made.parse})")

    wrong = next(fault.when for fault in made.faults if fault.code == "undecodable")
    there = f"_sluice_key IS NOT NULL AND ({of_key(wrong)})"
    faults = [Fault("key", "undecodable_key", "the key is not one JSON object with its columns", there)]
    faults += [replace(fault, stage="key", when=of_key(fault.when)) for fault in made.faults if fault.code == "missing_field"]
    columns = tuple(Column(field.name, field.type, docs[field.name]) for field in fields)
    return columns, Decoding(None, tuple((name, of_key(sql)) for name, sql in made.columns), tuple(faults))


# `_sluice_end` is the name of a field that no message can know; the engine says it, and texts with it: an object that has it as
# the last element of a list (`_sluice_end_text`), and types (`_sluice_end_list`, `_sluice_end_field`).
# An object that ends with the only `}` of its text cannot be followed by anything. Otherwise the text is parsed between
# two brackets and before a mark: whatever follows the object would add an element, end the list early or break the parse.
_MARKED = f"from_json(concat('[', _sluice_text, ',', _sluice_end_text, ']'), _sluice_end_list, {_OPTIONS})"
_ONE_OBJECT = (
    "CASE WHEN startswith(_sluice_text, '{') AND endswith(_sluice_text, '}')"
    " AND NOT contains(CAST(substring(_sluice_value, 2, octet_length(_sluice_value) - 2) AS STRING), '}') THEN true"
    " ELSE startswith(trim(LEADING ' \\t\\n\\r' FROM _sluice_text), '{')"
    f" AND exists(array({_MARKED}), parts -> size(parts) = 2 AND coalesce(parts[1]._sluice_end, false)) END"
)
_FITS = f"octet_length(_sluice_value) <= {LARGEST}"
_READABLE = f"{_FITS} AND is_valid_utf8(_sluice_text) AND ({_ONE_OBJECT})"
TOO_LARGE = Fault("value", "too_large", f"the value is over {LARGEST} bytes", f"octet_length(_sluice_value) > {LARGEST}")


def wrong(fields: Sequence[Field]) -> str:
    """SQL that is true where the message is not one JSON object with these fields."""
    found = [f"NOT ({_READABLE})", "_sluice_decoded IS NULL", "_sluice_decoded._sluice_corrupt IS NOT NULL"]
    values = (misfit(_field(field), field.written) for field in fields)
    return " OR ".join((*found, *(f"({value})" for value in values if value)))


def with_mark(type_: Struct) -> str:
    """SQL of a list of the object and the mark, from one parse: for objects that have objects inside."""
    text = f"CASE WHEN {_FITS} THEN concat('[', _sluice_text, ',', _sluice_end_text, ']') END"
    return f"from_json({text}, concat({literal(f'array<{_raw(type_)[:-1]}, ')}, _sluice_end_field), {_OPTIONS})"


def is_one(parts: str) -> str:
    """Whether such a list is of one object and no more."""
    begins = "startswith(trim(LEADING ' \\t\\n\\r' FROM _sluice_text), '{')"
    return f"({begins} AND coalesce(size({parts}) = 2 AND get({parts}, 1)._sluice_end, false))"


def is_one_value(text: str) -> str:
    """SQL of whether a text is one value of any type and no more."""
    parts = f"from_json(concat('[', {text}, ',', _sluice_end_text, ']'), 'array<string>', {_OPTIONS})"
    return f"coalesce(is_valid_utf8({text}) AND size({parts}) = 2 AND {parts}[1] = _sluice_end_text, false)"


def _faults(fields: Sequence[Field], unknown_fields: str) -> tuple[Fault, ...]:
    faults = [
        Fault("value", "null_value", "the message has no value", "_sluice_value IS NULL"),
        TOO_LARGE,
        Fault("value", "undecodable", "the value is not one JSON object with these columns", wrong(fields)),
    ]
    if unknown_fields == "bad":
        known = ", ".join(literal(field.name) for field in fields)
        unknown = f"size(array_except(json_object_keys(_sluice_text), array({known}))) > 0"
        faults.append(Fault("value", "unknown_field", "the value has a field that is no column", unknown))
    return (
        *faults,
        *(
            Fault("value", "missing_field", f"`{field.name}` is required and missing or null", f"{_column(field)} IS NULL")
            for field in fields
            if field.required
        ),
    )


def _field(field: Field) -> str:
    return f"_sluice_decoded.{identifier(field.name)}"


def _column(field: Field) -> str:
    return value(_field(field), field.written)


def _raw(type_: Type) -> str:
    """The type as which Spark's parser reads it: strict for its JSON type, and without its own ideas of times and decimals."""
    match type_:
        case Array():
            return f"array<{_raw(type_.element)}>"
        case Map():
            return f"map<string, {_raw(type_.value)}>"
        case Struct():
            return "struct<" + ", ".join(f"{identifier(field.name)}: {_raw(field.type)}" for field in type_.fields) + ">"
        case Written() if type_.format in _EPOCHS:
            return "bigint"
        case Decimal() | Written():
            return "variant"  # from_json would take "1.2" in quotes for a decimal
        case types.TIMESTAMP | types.TIMESTAMP_NTZ | types.DATE:
            return "string"
    return str(type_)


def value(raw: str, type_: Type, depth: int = 0) -> str:
    """A column's value from what the parser gave; null where that does not fit."""
    if not _converts(type_):
        return raw
    match type_:
        case Array():
            return f"transform({raw}, x{depth} -> {value(f'x{depth}', type_.element, depth + 1)})"
        case Map():
            return f"transform_values({raw}, (k{depth}, x{depth}) -> {value(f'x{depth}', type_.value, depth + 1)})"
        case Struct():
            parts = ", ".join(
                f"{literal(field.name)}, {value(f'{raw}.{identifier(field.name)}', field.type, depth)}" for field in type_.fields
            )
            return f"CASE WHEN {raw} IS NOT NULL THEN named_struct({parts}) END"
        case Decimal():
            return f"CASE WHEN {_is_number(raw)} THEN {_number(raw, type_)} END"
        case Written(format="base64"):
            # As Connect's converters write it, which can be told to write a number.
            number, text = _is_number(raw), f"schema_of_variant({raw}) = 'STRING'"
            decoded = _from_base64(raw, type_.type)
            return f"CASE WHEN {number} THEN {_number(raw, type_.type)} WHEN {text} THEN {decoded} END"
        case Written():
            sql, first, last = _EPOCHS[type_.format]
            return f"CASE WHEN {raw} BETWEEN {first} AND {last} THEN {sql.format(raw)} END"
        case types.DATE:
            return f"CASE WHEN {raw} RLIKE '{_ISO_DATE}' THEN try_cast({raw} AS date) END"
    # The cast takes a year or an hour alone for a time. A pattern would say this better and cost a tenth of the throughput.
    marks = f"{_mark(raw, 5)} = '-' AND {_mark(raw, 8)} = '-' AND {_mark(raw, 11)} IN ('T', ' ') AND {_mark(raw, 14)} = ':'"
    return f"CASE WHEN {marks} THEN try_cast({raw} AS {type_}) END"


def _is_number(raw: str) -> str:
    return f"regexp_like(schema_of_variant({raw}), '^(BIGINT|DECIMAL|DOUBLE)')"


def _number(raw: str, type_: Type) -> str:
    return f"try_variant_get({raw}, '$', '{type_}')"


def _from_base64(raw: str, type_: Type) -> str:
    """A decimal of its bytes, the highest first: a number of 16 bytes as two of 8; a negative one by the bits that it has not."""
    assert isinstance(type_, Decimal)
    hex_ = f"hex(try_to_binary(try_variant_get({raw}, '$', 'string'), 'base64'))"
    full = "IF(h < '8', lpad(h, 32, '0'), translate(lpad(h, 32, 'F'), '0123456789ABCDEF', 'FEDCBA9876543210'))"
    high, low = (f"CAST(conv(substring({full}, {at}, 16), 16, 10) AS DECIMAL(38, 0))" for at in (1, 17))
    whole = f"({high} * CAST({1 << 64} AS DECIMAL(38, 0)) + {low})"
    signed = f"IF(h < '8', {whole}, CAST(-1 AS DECIMAL(38, 0)) - {whole})"  # Spark's minus alone rounds to 34 digits
    # Asked before, since of decimals not even `try_add` keeps to the 38 digits.
    fits = f"length(h) BETWEEN 2 AND 32 AND {full} <= IF(h < '8', '{10**38 - 1:032X}', '{10**38 - 2:032X}')"
    found = f"try_cast(concat(CAST({signed} AS STRING), 'E-{type_.scale}') AS {type_})"
    return f"transform(array({hex_}), h -> CASE WHEN {fits} THEN {found} END)[0]"


def _mark(raw: str, at: int) -> str:
    return f"substring({raw}, {at}, 1)"


def _converts(type_: Type) -> bool:
    match type_:
        case Array():
            return _converts(type_.element)
        case Map():
            return _converts(type_.value)
        case Struct():
            return any(_converts(field.type) for field in type_.fields)
    return isinstance(type_, Decimal | Written) or type_ in (types.TIMESTAMP, types.TIMESTAMP_NTZ, types.DATE)


def misfit(raw: str, type_: Type, depth: int = 0) -> str | None:
    """SQL that is true where the parser gave a value that is none of this type."""
    match type_:
        case Array() | Map():
            inner = type_.element if isinstance(type_, Array) else type_.value
            items = raw if isinstance(type_, Array) else f"map_values({raw})"
            variable = f"y{depth}"
            found = misfit(variable, inner, depth + 1)
            return f"coalesce(exists({items}, {variable} -> {found}), false)" if found else None
        case Struct():
            parts = [misfit(f"{raw}.{identifier(field.name)}", field.type, depth) for field in type_.fields]
            return " OR ".join(f"({part})" for part in parts if part) or None
        case types.DOUBLE | types.FLOAT:
            return f"coalesce(abs({raw}) = double('Infinity'), false)"
    if not _converts(type_):
        return None
    there = f"coalesce(schema_of_variant({raw}) <> 'VOID', false)" if _raw(type_) == "variant" else f"{raw} IS NOT NULL"
    return f"{there} AND {value(raw, type_, depth)} IS NULL"


# Why a message cannot be decoded: SQL conditions over `_sluice_text` in order, and SQL for what is said.
_KIND = "schema_of_variant(_sluice_parsed)"
NOT_AN_OBJECT = (
    ("NOT is_valid_utf8(_sluice_text)", "'the value is not UTF-8 text'"),
    ("trim(BOTH ' \\t\\n\\r' FROM _sluice_text) = ''", "'the value is empty'"),
    (f"octet_length(_sluice_value) > {_EXPLAINED}", "message"),
    ("_sluice_parsed IS NULL", "'the value is not JSON'"),
    (f"NOT startswith({_KIND}, 'OBJECT')", f"concat('the value is no JSON object but ', lower({_KIND}))"),
    (f"NOT ({_ONE_OBJECT})", "'more text follows the JSON object'"),
)
SOMETHING = ("true", "'a value does not fit its column'")


def explain(field: Field, path: str) -> tuple[str, str]:
    """The same of a field that is found under a path of Spark's."""
    given = f"schema_of_variant(try_variant_get(_sluice_parsed, {literal(path)}, 'variant'))"
    is_other = f"coalesce({given} NOT RLIKE '^({_json_types(field)}|VOID)', false)"
    return is_other, f"concat({literal(f'`{field.name}` is not {field.type} but ')}, lower({given}))"


def explained(fields: Iterable[Field], above: str) -> Iterator[tuple[str, str]]:
    """The same of fields below a path. Paths know no escapes, so that of a name with both quotes nothing is said."""
    for field in fields:
        mark = "'" if '"' in field.name else '"'
        if mark not in field.name:
            yield explain(field, f"{above}[{mark}{field.name}{mark}]")


def _json_types(field: Field) -> str:
    match field.written:
        case Array():
            return "ARRAY"
        case Map() | Struct():
            return "OBJECT"
        case types.STRING:
            return "."
        case types.BOOLEAN:
            return "BOOLEAN"
        case types.DOUBLE | types.FLOAT | Decimal():
            return "BIGINT|DECIMAL|DOUBLE|FLOAT"
        case Written(format="base64"):
            return "STRING|BIGINT|DECIMAL|DOUBLE|FLOAT"
    return "BIGINT|DECIMAL" if types.is_integral(field.type) or field.format else "STRING"
