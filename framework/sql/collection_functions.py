"""Functions of arrays, maps and structs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from framework.sql import operators, patterns, special_functions
from framework.sql.arguments import Use
from framework.sql.pieces import NULL, Piece, strict
from framework.types import BOOLEAN, INT, STRING, VOID, Array, Field, Map, Struct, Type, holds_map


def size(use: Use) -> Piece:
    (piece,) = use.take("any")
    if not isinstance(piece.type, Array | Map):
        raise use.fault(f"takes an array or a map, not {piece.type}", "the length of a text is length(x)", piece)
    return strict(use.offset, use.sql(piece), INT, (piece,))


def array(use: Use) -> Piece:
    type, pieces = operators.together(use.name, use.some(1))
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
            why = f"has two fields '{text}'" if text else "has a field without a name"
            raise use.fault(why, "give each field a name of its own", name)
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
    inside = f"({at.sql} <> 0 AND abs(cast({at.sql} AS BIGINT)) <= size({piece.sql}))"
    outside = f"({at.sql} = 0)" if use.name == "try_element_at" else f"(NOT {inside})"
    sql = f"try_element_at({piece.sql}, CASE WHEN {inside} THEN {at.sql} END)"
    return strict(use.offset, sql, piece.type.element, (piece, at), outside)


def get(use: Use) -> Piece:
    piece, at = use.take("array", "int")
    assert isinstance(piece.type, Array), "taken as one"
    return strict(use.offset, use.sql(piece, at), piece.type.element, (piece, at))


def map_parts(use: Use) -> Piece:
    (piece,) = use.take("any")
    if not isinstance(piece.type, Map):
        raise use.fault(f"takes a map, not {piece.type}", "name a column that is a map", piece)
    return strict(use.offset, use.sql(piece), Array(piece.type.key if use.name == "map_keys" else piece.type.value), (piece,))


def map_contains_key(use: Use) -> Piece:
    piece, key = use.take("any", "any")
    if not isinstance(piece.type, Map):
        raise use.fault(f"takes a map, not {piece.type}", "name a column that is a map", piece)
    operators.keyed(piece.type, key)
    return strict(use.offset, use.sql(piece, key), BOOLEAN, (piece, key))


def sort_array(use: Use) -> Piece:
    pieces = use.take("array", "boolean?")
    if len(pieces) == 2 and pieces[1].constant is None:
        raise use.fault("takes a literal true or false here", "write true or false itself", pieces[1])
    return _ordered(use, pieces, pieces[0].type)


def of_array(use: Use) -> Piece:
    """`array_max`, `array_min`, `array_distinct`"""
    (piece,) = use.take("array")
    assert isinstance(piece.type, Array), "taken as one"
    return _ordered(use, (piece,), piece.type if use.name == "array_distinct" else piece.type.element)


def _ordered(use: Use, pieces: tuple[Piece, ...], type: Type) -> Piece:
    if holds_map(pieces[0].type):
        raise use.fault("cannot compare maps", "take something out of the maps first", pieces[0])
    return strict(use.offset, use.sql(*pieces), type, pieces)


def flatten(use: Use) -> Piece:
    (piece,) = use.take("array")
    if not isinstance(piece.type, Array) or not isinstance(piece.type.element, Array):
        raise use.fault(f"takes an array of arrays, not {piece.type}", "an array of other things is flat already", piece)
    return strict(use.offset, use.sql(piece), piece.type.element, (piece,))


def array_join(use: Use) -> Piece:
    pieces = use.take("array", "string")
    if pieces[0].type != Array(STRING):
        raise use.fault(f"joins strings, not {pieces[0].type}", "name an array of strings", pieces[0])
    if special_functions.small(pieces[1]):
        return strict(use.offset, use.sql(*pieces), STRING, pieces)
    fits = f"cast(size({pieces[0].sql}) AS BIGINT) * octet_length({pieces[1].sql}) <= {special_functions.LONGEST_RESULT}"
    return strict(use.offset, use.sql(f"CASE WHEN {fits} THEN {pieces[0].sql} END", pieces[1]), STRING, pieces, NULL)


def reverse(use: Use) -> Piece:
    (piece,) = use.take("any")
    if piece.type != STRING and not isinstance(piece.type, Array):
        raise use.fault(f"takes a string or an array, not {piece.type}", "cast(x as string)", piece)
    return strict(use.offset, use.sql(piece), piece.type, (piece,))


TABLE: Mapping[str, Callable[[Use], Piece]] = {
    "array": array,
    "array_contains": array_contains,
    "array_distinct": of_array,
    "array_join": array_join,
    "array_max": of_array,
    "array_min": of_array,
    "array_size": size,
    "cardinality": size,
    "element_at": element_at,
    "flatten": flatten,
    "get": get,
    "map_contains_key": map_contains_key,
    "map_keys": map_parts,
    "map_values": map_parts,
    "named_struct": named_struct,
    "reverse": reverse,
    "size": size,
    "sort_array": sort_array,
    "try_element_at": element_at,
}
