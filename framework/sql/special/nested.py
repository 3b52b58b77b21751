"""Functions that make lists, maps, structs and texts of several arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from framework.base import types
from framework.base.types import STRING, VOID, Array, Decimal, Field, Map, Struct, holds_map
from framework.sql import comparisons, operators, patterns
from framework.sql.arguments import Use
from framework.sql.bounded_functions import NO_KEY
from framework.sql.pieces import Piece, composed, guard
from framework.sql.quote import identifier
from framework.sql.suggested import cast_hint


def concat(use: Use) -> Piece:
    return operators.joined(use.some(1), use.offset, use.sql())


def array(use: Use) -> Piece:
    pieces = use.some(1)
    type = comparisons.together(use.name, pieces)
    if type == VOID:
        raise use.fault("of NULL has no type", "cast(null as string)")
    return composed(use.offset, use.sql(), Array(type), pieces, comparisons.mixed(pieces, type))


def map_of(use: Use) -> Piece:
    pieces = use.some(2)
    if len(pieces) % 2:
        raise use.fault("takes keys and values in turns", "map('a', x, 'b', y)")
    key, value = comparisons.together(use.name, pieces[::2]), comparisons.together(use.name, pieces[1::2])
    if VOID in (key, value) or holds_map(key):
        raise use.fault("needs keys and values of some type", "map('a', cast(null as string))")
    keys = (
        f"coalesce({piece.sql}, raise_error('{NO_KEY}'))" if index % 2 == 0 else piece.sql for index, piece in enumerate(pieces)
    )
    return composed(use.offset, use.sql(*keys), Map(key, value), pieces)


def named_struct(use: Use) -> Piece:
    pieces = use.some(2)
    if len(pieces) % 2:
        raise use.fault("takes names and values in turns", "named_struct('a', x, 'b', y)")
    fields: list[Field] = []
    for name, value in zip(pieces[::2], pieces[1::2], strict=True):
        text = patterns.text(name, "a field's name")
        if not text or Struct(tuple(fields)).field(text):
            problem = f"has two fields '{text}'" if text else "has a field without a name"
            raise use.fault(problem, "give each field a name of its own", name)
        if value.type == VOID:
            raise use.fault("cannot give NULL a type", "cast(null as string)", value)
        fields.append(Field(text, value.type))
    return composed(use.offset, use.sql(), Struct(tuple(fields)), pieces, False)


def arrays_zip(use: Use) -> Piece:
    """Returns lists side by side, as one list of structs. The parser gives each list the name of its field."""
    struct = named_struct(Use("named_struct", use.arguments, use.offset)).type
    assert isinstance(struct, Struct), "made as one"
    lists = use.arguments[1::2]
    fields: list[Field] = []
    for field, piece in zip(struct.fields, lists, strict=True):
        if not isinstance(field.type, Array):
            raise use.fault(f"takes lists, not {comparisons.name(field.type)}", "array(x) makes one", piece)
        fields.append(Field(field.name, field.type.element))
    type = Array(Struct(tuple(fields)))
    zipped = f"arrays_zip({', '.join(piece.sql for piece in lists)})"
    return composed(use.offset, f"CAST({zipped} AS {type.sql})", type, lists, False)


def map_from_entries(use: Use) -> Piece:
    (piece,) = use.some(1, 1)
    entry = piece.type.element if isinstance(piece.type, Array) else None
    if not isinstance(entry, Struct) or len(entry.fields) != 2 or holds_map(entry.fields[0].type):
        raise use.fault(
            f"takes a list of structs of two fields, not {comparisons.name(piece.type)}", "map_entries(x) gives one", piece
        )
    name = identifier(entry.fields[0].name)
    fits = f"NOT exists({piece.sql}, e -> e.{name} IS NULL AND e IS NOT NULL)"
    return composed(
        use.offset, use.sql(guard(fits, piece.sql, NO_KEY)), Map(entry.fields[0].type, entry.fields[1].type), (piece,)
    )


def trimmed(use: Use) -> Piece:
    """Returns `trim(leading '0' from s)` and the like."""
    characters, piece = use.arguments
    for argument in use.arguments:
        if not isinstance(argument.type, types.Atom | Decimal):
            raise use.fault(f"takes texts, not {argument.type}", cast_hint(argument, "string"), argument)
    return composed(use.offset, f"trim({use.name.split()[0].upper()} {characters.sql} FROM {piece.sql})", STRING, use.arguments)


TABLE: Mapping[str, Callable[[Use], Piece]] = {
    "array": array,
    "arrays_zip": arrays_zip,
    **dict.fromkeys(("both trim", "leading trim", "trailing trim"), trimmed),
    "concat": concat,
    "map": map_of,
    "map_from_entries": map_from_entries,
    "named_struct": named_struct,
}
