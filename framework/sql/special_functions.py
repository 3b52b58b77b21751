"""Functions whose result type, failures or literal arguments take more than a line: conditions, numbers and texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from framework.sql import operators, patterns
from framework.sql.arguments import Use
from framework.sql.pieces import NULL, Piece, all_of, any_of, strict, within_limit
from framework.types import BIGINT, BINARY, INTEGRALS, STRING, VOID, Array, Decimal, Type, holds_map, is_integral, is_numeric

LONGEST_PAD = 10_000
LONGEST_RESULT = 1 << 27
"""The most bytes of a result in which a message decides how often one text is inserted into another."""
SMALL = 16
"""The most bytes of a text that can be inserted anywhere: so many for each byte of a message are no danger."""


def coalesce(use: Use) -> Piece:
    """Each argument is evaluated only while those before it were null."""
    pieces = use.some(2) if use.name == "coalesce" else use.take("any", "any")
    type, pieces = operators.together(use.name, pieces)
    within_limit(Piece(use.sql(*pieces), type, None, offset=use.offset))
    error = pieces[-1].error
    for piece in reversed(pieces[:-1]):
        error = any_of(piece.error, all_of(f"({piece.sql} IS NULL)", error))
    return within_limit(Piece(use.sql(*pieces), type, error, offset=use.offset))


def nullif(use: Use) -> Piece:
    left, right = use.take("any", "any")
    operators.comparison("=", left, right, use.offset)
    if left.type != right.type and not (is_numeric(left.type) and is_numeric(right.type)):
        raise use.fault("compares a date with a timestamp", "cast one of them")
    # Spark computes nullif's first argument separately, before any condition around it.
    different = f"(({left.sql} = {right.sql}) IS NOT TRUE)"
    return strict(use.offset, f"(CASE WHEN {different} THEN {left.sql} END)", left.type, (left, right))


def condition(use: Use) -> Piece:
    test, yes, no = use.take("any", "any", "any")
    return operators.chosen([(test, yes)], no, use.offset)


def nvl2(use: Use) -> Piece:
    test, yes, no = use.take("any", "any", "any")
    return operators.chosen([(operators.negation(operators.test(test, "null", use.offset), use.offset), yes)], no, use.offset)


def isnull(use: Use) -> Piece:
    (piece,) = use.take("any")
    is_null = operators.test(piece, "null", use.offset)
    return is_null if use.name == "isnull" else operators.negation(is_null, use.offset)


def extreme(use: Use) -> Piece:
    type, pieces = operators.together(use.name, use.some(2))
    if holds_map(type) or type == VOID:
        raise use.fault(f"cannot order {'NULL' if type == VOID else type}", "name numbers, strings, dates or timestamps")
    return strict(use.offset, use.sql(*pieces), type, pieces, eager=True)


def absolute(use: Use) -> Piece:
    (piece,) = use.take("number")
    if piece.type not in INTEGRALS:
        operators.precise(use.name, piece)
        return strict(use.offset, use.sql(piece), piece.type, (piece,))
    positive = f"CASE WHEN {piece.sql} <> {operators.SMALLEST[piece.type]} THEN {piece.sql} END"
    return strict(use.offset, use.sql(positive), piece.type, (piece,), NULL)


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
            # Spark rounds into the decimal's own digits first, and throws where one is needed before the point.
            hint = "cast it first to a decimal with a digit before the point"
            raise use.fault(f"has no place for the result in a {piece.type}", hint, piece)
        type = Decimal(min(piece.type.precision - piece.type.scale + 1, 38), 0)
    return strict(use.offset, use.sql(piece), type, (piece,))


def pmod(use: Use) -> Piece:
    left, right = use.take("number", "number")
    type = operators.arithmetic("%", left, right, use.offset).type
    divisor = right.sql if operators.nonzero(right) else f"CASE WHEN {right.sql} <> 0 THEN {right.sql} END"
    return strict(
        use.offset, use.sql(left, divisor), type, (left, right), None if operators.nonzero(right) else NULL, backwards=True
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
    if not small(pieces[0]) and any(piece.type != STRING for piece in pieces):
        why = f"takes between the items of an array a literal of at most {SMALL} characters"
        raise use.fault(why, "array_join(x, separator) takes any text", pieces[0])
    return strict(use.offset, use.sql(*pieces), STRING, pieces, eager=True)


def pad(use: Use) -> Piece:
    pieces = use.take("string", "any", "string?")
    use.integer(pieces[1], 0, LONGEST_PAD)
    return strict(use.offset, use.sql(*pieces), STRING, pieces)


def split(use: Use) -> Piece:
    pieces = use.take("string", "string", "int?")
    patterns.regular(pieces[1])
    return strict(use.offset, use.sql(*pieces), Array(STRING), pieces)


def replace(use: Use) -> Piece:
    text, search, *by = pieces = use.take("string", "string", "string?")
    if not by or small(by[0], search):
        return strict(use.offset, use.sql(*pieces), STRING, pieces)
    # The bound for a text that consists of nothing but the searched text.
    most = f"{LONGEST_RESULT}L * greatest(octet_length({search.sql}), 1)"
    fits = f"cast(octet_length({text.sql}) AS BIGINT) * octet_length({by[0].sql}) <= {most}"
    return strict(use.offset, use.sql(f"CASE WHEN {fits} THEN {text.sql} END", search, *by), STRING, pieces, NULL)


def small(piece: Piece, each: Piece | None = None) -> bool:
    """Whether a literal is small, on its own or compared with the text that it replaces."""
    replaced_bytes = len(each.constant.encode()) if each and each.constant else 1
    return piece.constant is not None and len(piece.constant.encode()) <= SMALL * replaced_bytes


def substring_index(use: Use) -> Piece:
    pieces = use.take("string", "string", "any")
    use.integer(pieces[2], -1000, 1000)
    return strict(use.offset, use.sql(*pieces), STRING, pieces)


def regexp_replace(use: Use) -> Piece:
    pieces = use.take("string", "string", "string")
    text, pattern, by = pieces
    patterns.replacement(by, patterns.regular(pattern))
    if small(by):
        return strict(use.offset, use.sql(*pieces), STRING, pieces)
    fits = f"octet_length({text.sql}) <= {LONGEST_RESULT // len((by.constant or '').encode())}"
    return strict(use.offset, use.sql(f"CASE WHEN {fits} THEN {text.sql} END", pattern, by), STRING, pieces, NULL)


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
        raise use.fault("knows 224, 256, 384 and 512 bits", "write one of them, such as sha2(x, 256)", bits)
    return strict(use.offset, use.sql(piece, bits), STRING, (piece,))


def hexadecimal(use: Use) -> Piece:
    (piece,) = use.take("any")
    if piece.type not in (STRING, BINARY, *INTEGRALS):
        raise use.fault(f"takes a whole number, a string or binary, not {piece.type}", "cast(x as bigint)", piece)
    return strict(use.offset, use.sql(piece), STRING, (piece,))


TABLE: Mapping[str, Callable[[Use], Piece]] = {
    "abs": absolute,
    "bround": rounded,
    "ceil": whole,
    "ceiling": whole,
    "coalesce": coalesce,
    "concat": concat,
    "concat_ws": concat_ws,
    "floor": whole,
    "greatest": extreme,
    "hex": hexadecimal,
    "if": condition,
    "ifnull": coalesce,
    "isnotnull": isnull,
    "isnull": isnull,
    "least": extreme,
    "lpad": pad,
    "mod": mod,
    "negative": negative,
    "nullif": nullif,
    "nvl": coalesce,
    "nvl2": nvl2,
    "pmod": pmod,
    "regexp_extract": regexp_extract,
    "regexp_like": regexp_like,
    "regexp_replace": regexp_replace,
    "replace": replace,
    "round": rounded,
    "rpad": pad,
    "sha2": sha2,
    "split": split,
    "substring_index": substring_index,
    "try_add": tried,
    "try_divide": tried,
    "try_mod": tried,
    "try_multiply": tried,
    "try_subtract": tried,
}
