"""Functions whose result type, failures or literal arguments take more than a line: conditions, numbers, texts and collections."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from framework.plan import moments, operators, patterns
from framework.plan.arguments import Use
from framework.plan.pieces import NULL, Piece, all_of, any_of, made, strict
from framework.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    INT,
    INTEGRALS,
    STRING,
    VOID,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
    Type,
    holds_map,
    is_integral,
    is_numeric,
)

LONGEST_PAD = 10_000


def coalesce(use: Use) -> Piece:
    """Each argument is evaluated only while those before it were null."""
    pieces = use.some(2) if use.name == "coalesce" else use.take("any", "any")
    type, pieces = operators.together(use.offset, use.name, pieces)
    error = pieces[-1].error
    for piece in reversed(pieces[:-1]):
        error = any_of(piece.error, all_of(f"({piece.sql} IS NULL)", error))
    return made(Piece(use.sql(*pieces), type, error, use.offset))


def nullif(use: Use) -> Piece:
    left, right = use.take("any", "any")
    operators.comparison("=", left, right, use.offset)
    if left.type != right.type and not (is_numeric(left.type) and is_numeric(right.type)):
        raise use.fault("compares a date with a timestamp", "cast one of them")
    return strict(use.offset, use.sql(left, right), left.type, (left, right))


def condition(use: Use) -> Piece:
    test, yes, no = use.take("any", "any", "any")
    return operators.chosen([(test, yes)], no, use.offset)


def nvl2(use: Use) -> Piece:
    test, yes, no = use.take("any", "any", "any")
    return operators.chosen(
        [(operators.negation(operators.test(test, "null", use.offset), use.offset), yes)], no, use.offset
    )


def isnull(use: Use) -> Piece:
    (piece,) = use.take("any")
    found = operators.test(piece, "null", use.offset)
    return found if use.name == "isnull" else operators.negation(found, use.offset)


def extreme(use: Use) -> Piece:
    type, pieces = operators.together(use.offset, use.name, use.some(2))
    if holds_map(type) or type == VOID:
        raise use.fault(f"cannot order {'NULL' if type == VOID else type}")
    return strict(use.offset, use.sql(*pieces), type, pieces, eager=True)


def absolute(use: Use) -> Piece:
    (piece,) = use.take("number")
    if piece.type not in INTEGRALS:
        return strict(use.offset, use.sql(piece), piece.type, (piece,))
    return strict(
        use.offset, use.sql(f"nullif({piece.sql}, {operators.SMALLEST[piece.type]})"), piece.type, (piece,), NULL
    )


def negative(use: Use) -> Piece:
    (piece,) = use.take("number")
    return operators.signed("-", piece, use.offset)


def rounded(use: Use) -> Piece:
    """`round`, `bround`; the number of places is a literal."""
    piece, *rest = use.take("number", "any?")
    places = use.integer(rest[0], -37, 37) if rest else 0
    type = piece.type
    if isinstance(type, Decimal):
        whole = type.precision - type.scale + 1
        if places < 0 and whole > 38:
            raise use.fault(f"could need more than 38 digits for a {type}", "cast it to a smaller decimal first", piece)
        scale = min(type.scale, max(places, 0))
        type = Decimal(min(max(whole, 1 - places) if places < 0 else whole + scale, 38), scale)
    if is_integral(type) and places < 0:
        wide = f"{use.name}(cast({piece.sql} AS DECIMAL(20,0)), {places})"
        return strict(use.offset, f"try_cast({wide} AS {type})", type, (piece,), NULL)
    return strict(use.offset, use.sql(piece, str(places)), type, (piece,))


def whole(use: Use) -> Piece:
    """`ceil`, `floor`"""
    (piece,) = use.take("number")
    type: Type = BIGINT
    if isinstance(piece.type, Decimal):
        if piece.type.scale == piece.type.precision:
            # Spark rounds into the decimal's own digits first, which has none before the point, and throws.
            wide = f"cast({piece.sql} AS DECIMAL({min(piece.type.precision + 1, 38)},{piece.type.precision}))"
            raise use.fault(
                f"has no digit before the point in a {piece.type}",
                f"cast it: {wide.split(' AS ')[1][:-1].lower()}",
                piece,
            )
        type = Decimal(min(piece.type.precision - piece.type.scale + 1, 38), 0)
    return strict(use.offset, use.sql(piece), type, (piece,))


def pmod(use: Use) -> Piece:
    left, right = use.take("number", "number")
    type = operators.arithmetic("%", left, right, use.offset).type
    divisor = right.sql if operators.nonzero(right) else f"nullif({right.sql}, 0)"
    return strict(
        use.offset,
        use.sql(left, divisor),
        type,
        (left, right),
        None if operators.nonzero(right) else NULL,
        backwards=True,
    )


def mod(use: Use) -> Piece:
    left, right = use.take("number", "number")
    return operators.arithmetic("%", left, right, use.offset)


def tried(use: Use) -> Piece:
    """`try_add` and its like: null instead of an error."""
    left, right = use.take("any", "any")
    operator = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "try_mod": "%"}[use.name]
    return operators.arithmetic(operator, left, right, use.offset, tries=True)


def concat(use: Use) -> Piece:
    pieces = [use.fit(piece, "string") for piece in use.some(1)]
    return strict(use.offset, use.sql(*pieces), STRING, pieces)


def concat_ws(use: Use) -> Piece:
    """Nulls are left out."""
    pieces = use.some(2)
    for piece in pieces:
        if piece.type not in (STRING, Array(STRING)) or (piece is pieces[0] and piece.type != STRING):
            raise use.fault(f"takes strings and arrays of strings, not {piece.type}", "cast(x as string)", piece)
    return strict(use.offset, use.sql(*pieces), STRING, pieces, eager=True)


def pad(use: Use) -> Piece:
    pieces = use.take("string", "any", "string?")
    use.integer(pieces[1], 0, LONGEST_PAD)
    return strict(use.offset, use.sql(*pieces), STRING, pieces)


def split(use: Use) -> Piece:
    pieces = use.take("string", "string", "int?")
    patterns.regular(pieces[1])
    return strict(use.offset, use.sql(*pieces), Array(STRING), pieces)


def regexp_replace(use: Use) -> Piece:
    pieces = use.take("string", "string", "string")
    patterns.replacement(pieces[2], patterns.regular(pieces[1]))
    return strict(use.offset, use.sql(*pieces), STRING, pieces)


def regexp_extract(use: Use) -> Piece:
    pieces = use.take("string", "string", "any?")
    groups = patterns.regular(pieces[1])
    if len(pieces) == 2 and not groups:
        raise use.fault(
            "takes the first group, but the pattern has none",
            "put parentheses around what is wanted, or give 0 for the whole match",
        )
    if len(pieces) == 3:
        use.integer(pieces[2], 0, groups)
    return strict(use.offset, use.sql(*pieces), STRING, pieces)


def regexp_like(use: Use) -> Piece:
    text, pattern = use.take("string", "string")
    return operators.matching("rlike", text, pattern, use.offset)


def sha2(use: Use) -> Piece:
    piece, bits = use.take("bytes", "any")
    if use.integer(bits, 0, 512) not in (0, 224, 256, 384, 512):
        raise use.fault("knows 224, 256, 384 and 512 bits", at=bits)
    return strict(use.offset, use.sql(piece, bits), STRING, (piece,))


def hexadecimal(use: Use) -> Piece:
    (piece,) = use.take("any")
    if piece.type not in (STRING, BINARY, *INTEGRALS):
        raise use.fault(f"takes a whole number, a string or binary, not {piece.type}", "cast(x as bigint)", piece)
    return strict(use.offset, use.sql(piece), STRING, (piece,))


def size(use: Use) -> Piece:
    (piece,) = use.take("any")
    if not isinstance(piece.type, Array | Map):
        raise use.fault(f"takes an array or a map, not {piece.type}", "the length of a text is length(x)", piece)
    return strict(use.offset, use.sql(piece), INT, (piece,))


def array(use: Use) -> Piece:
    type, pieces = operators.together(use.offset, use.name, use.some(1))
    if type == VOID:
        raise use.fault("of NULL has no type", "cast(null as string)")
    return strict(use.offset, use.sql(*pieces), Array(type), pieces, eager=True)


def named_struct(use: Use) -> Piece:
    pieces = use.some(2)
    if len(pieces) % 2:
        raise use.fault("takes names and values in turns", "named_struct('a', x, 'b', y)")
    fields: list[Field] = []
    for name, value in zip(pieces[::2], pieces[1::2], strict=True):
        text = patterns.text(name, "a field's name")
        if not text or Struct(tuple(fields)).field(text):
            raise use.fault(f"has two fields '{text}'" if text else "has a field without a name", at=name)
        if value.type == VOID:
            raise use.fault("cannot give NULL a type", "cast(null as string)", value)
        fields.append(Field(text, value.type))
    return strict(use.offset, use.sql(*pieces), Struct(tuple(fields)), pieces, eager=True)


def array_contains(use: Use) -> Piece:
    pieces = use.take("array", "any")
    assert isinstance(pieces[0].type, Array), "taken as one"
    element = pieces[0].type.element
    if pieces[1].type != element or holds_map(element):
        raise use.fault(f"looks for a {element}, not {pieces[1].type}", f"cast(x as {element})", pieces[1])
    return strict(use.offset, use.sql(*pieces), BOOLEAN, pieces)


def element_at(use: Use) -> Piece:
    """Items count from 1, from the end if negative."""
    piece, at = use.take("any", "any")
    if isinstance(piece.type, Map):
        operators.keyed(piece.type, at)
        return strict(use.offset, use.sql(piece, at), piece.type.value, (piece, at))
    use.fit(piece, "array")
    use.fit(at, "int")
    assert isinstance(piece.type, Array), "taken as one"
    # Spark reads outside the array for the smallest int, which ends the JVM, and throws for 0 whatever the function's name.
    inside = f"(abs(cast({at.sql} AS BIGINT)) BETWEEN 1 AND size({piece.sql}))"
    outside = f"({at.sql} = 0)" if use.name == "try_element_at" else f"(NOT {inside})"
    sql = f"try_element_at({piece.sql}, CASE WHEN {inside} THEN {at.sql} END)"
    return strict(use.offset, sql, piece.type.element, (piece, at), outside)


def get(use: Use) -> Piece:
    piece, at = use.take("array", "bigint")
    assert isinstance(piece.type, Array), "taken as one"
    return strict(use.offset, use.sql(piece, at), piece.type.element, (piece, at))


def map_parts(use: Use) -> Piece:
    (piece,) = use.take("any")
    if not isinstance(piece.type, Map):
        raise use.fault(f"takes a map, not {piece.type}", at=piece)
    return strict(
        use.offset, use.sql(piece), Array(piece.type.key if use.name == "map_keys" else piece.type.value), (piece,)
    )


def map_contains_key(use: Use) -> Piece:
    piece, key = use.take("any", "any")
    if not isinstance(piece.type, Map):
        raise use.fault(f"takes a map, not {piece.type}", at=piece)
    operators.keyed(piece.type, key)
    return strict(use.offset, use.sql(piece, key), BOOLEAN, (piece, key))


def sort_array(use: Use) -> Piece:
    pieces = use.take("array", "boolean?")
    if len(pieces) == 2 and pieces[1].constant is None:
        raise use.fault("takes a literal true or false here", at=pieces[1])
    return _ordered(use, pieces, pieces[0].type)


def of_array(use: Use) -> Piece:
    """`array_max`, `array_min`, `array_distinct`"""
    (piece,) = use.take("array")
    assert isinstance(piece.type, Array), "taken as one"
    return _ordered(use, (piece,), piece.type if use.name == "array_distinct" else piece.type.element)


def _ordered(use: Use, pieces: tuple[Piece, ...], type: Type) -> Piece:
    if holds_map(pieces[0].type):
        raise use.fault("cannot compare maps", at=pieces[0])
    return strict(use.offset, use.sql(*pieces), type, pieces)


def flatten(use: Use) -> Piece:
    (piece,) = use.take("array")
    if not isinstance(piece.type, Array) or not isinstance(piece.type.element, Array):
        raise use.fault(f"takes an array of arrays, not {piece.type}", at=piece)
    return strict(use.offset, use.sql(piece), piece.type.element, (piece,))


def array_join(use: Use) -> Piece:
    pieces = use.take("array", "string")
    if pieces[0].type != Array(STRING):
        raise use.fault(f"joins strings, not {pieces[0].type}", at=pieces[0])
    return strict(use.offset, use.sql(*pieces), STRING, pieces)


def reverse(use: Use) -> Piece:
    (piece,) = use.take("any")
    if piece.type != STRING and not isinstance(piece.type, Array):
        raise use.fault(f"takes a string or an array, not {piece.type}", at=piece)
    return strict(use.offset, use.sql(piece), piece.type, (piece,))


TABLE: Mapping[str, Callable[[Use], Piece]] = {
    "abs": absolute,
    "array": array,
    "array_contains": array_contains,
    "array_distinct": of_array,
    "array_join": array_join,
    "array_max": of_array,
    "array_min": of_array,
    "array_size": size,
    "bround": rounded,
    "cardinality": size,
    "ceil": whole,
    "ceiling": whole,
    "coalesce": coalesce,
    "concat": concat,
    "concat_ws": concat_ws,
    "element_at": element_at,
    "flatten": flatten,
    "floor": whole,
    "get": get,
    "greatest": extreme,
    "hex": hexadecimal,
    "if": condition,
    "ifnull": coalesce,
    "isnotnull": isnull,
    "isnull": isnull,
    "least": extreme,
    "lpad": pad,
    "map_contains_key": map_contains_key,
    "map_keys": map_parts,
    "map_values": map_parts,
    "mod": mod,
    "named_struct": named_struct,
    "negative": negative,
    "nullif": nullif,
    "nvl": coalesce,
    "nvl2": nvl2,
    "pmod": pmod,
    "regexp_extract": regexp_extract,
    "regexp_like": regexp_like,
    "regexp_replace": regexp_replace,
    "reverse": reverse,
    "round": rounded,
    "rpad": pad,
    "sha2": sha2,
    "size": size,
    "sort_array": sort_array,
    "split": split,
    "try_add": tried,
    "try_divide": tried,
    "try_element_at": element_at,
    "try_mod": tried,
    "try_multiply": tried,
    "try_subtract": tried,
    **moments.TABLE,
}
