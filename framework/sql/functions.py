"""The functions that an expression may call: any of Spark's that gives the same value for the same row and reads nothing but the row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from framework.base.spelling import did_you_mean
from framework.base.types import INTEGRALS, STRING, VOID, Type, is_numeric
from framework.sql import bounded_functions, comparisons, dialects, special
from framework.sql.arguments import Use
from framework.sql.faults import ExpressionError, refused
from framework.sql.pieces import Piece, composed
from framework.sql.reserved import words
from framework.sql.signatures import Match, Term, is_variable, table
from framework.sql.suggested import cast, code, written
from framework.sql.tree import Call

ALIASES = {
    "array_includes": "array_contains",
    "array_length": "array_size",
    "array_to_string": "array_join",
    "charindex": "locate",
    "date_from_parts": "make_date",
    "datefromparts": "make_date",
    "editdistance": "levenshtein",
    "ends_with": "endswith",
    "eomonth": "last_day",
    "from_base64": "unbase64",
    "iff": "if",
    "iif": "if",
    "list_contains": "array_contains",
    "mid": "substring",
    "regexp_contains": "regexp_like",
    "replicate": "repeat",
    "safe_divide": "try_divide",
    "starts_with": "startswith",
    "strpos": "instr",
    "to_base64": "base64",
}
"""Names that other dialects have for the same function with the same arguments."""
NEVER_FAILS = words("""
    array_contains array_distinct array_max array_min array_size ascii base64 btrim cardinality cbrt char_length character_length contains
    crc32 date_add date_diff date_from_unix_date date_sub datediff day dayname dayofmonth dayofweek dayofyear endswith exp get initcap
    instr isnan isnotnull isnull last_day lcase left len length ln locate log10 log2 lower ltrim map_contains_key map_keys map_values md5
    month monthname pow power quarter regexp_like reverse right rtrim sha sha1 sha2 sign signum size sort_array sqrt
    startswith substr substring timestamp_micros translate trim ucase unix_date upper weekday weekofyear year
""")
"""Functions that have a value for every row, where Spark need not cast an argument."""
_OF_DOUBLES = words("cbrt exp isnan ln log10 log2 pow power sign signum sqrt")
"""The functions of these whose numbers are doubles, to which every number can be cast. The numbers of the others are ints."""
SPECIAL = frozenset(special.TABLE)


@cache  # called for each call of each expression
def names() -> frozenset[str]:
    """Returns the names of all functions that can be called."""
    return SPECIAL | table().keys() | ALIASES.keys()


def unknown(name: str, offset: int) -> ExpressionError:
    otherwise = "allowed are functions of one row, such as upper, coalesce, round, to_date"
    hint = dialects.WRITE.get(name) or did_you_mean(name, names(), otherwise)
    return refused(offset, "sql-not-allowed", f"{name} is not an allowed function", hint)


def called(call: Call, arguments: Sequence[Piece | None], lambdas: Callable[[int, Sequence[Type]], Piece | None]) -> Piece:
    """Returns a call of a known function. A lambda is typed when the types that it takes are known."""
    name = ALIASES.get(call.name, call.name)
    if name in special.TABLE:
        return special.TABLE[name](Use(name, _values(name, arguments, call), call.offset))
    typed_lambdas: dict[int, Piece] = {}

    def body(index: int, parameter_types: Sequence[Type]) -> Piece | None:
        piece = lambdas(index, parameter_types)
        if piece:
            typed_lambdas[index] = piece
        return piece

    for signature in table()[name]:
        type = Match(signature, body).result(arguments)
        if type is not None and type != VOID:
            pieces = tuple(typed_lambdas[index] if piece is None else piece for index, piece in enumerate(arguments))
            use = Use(name, pieces, call.offset)
            sql = bounded_functions.TABLE.get(name, Use.sql)(use)
            is_sure = name in NEVER_FAILS and sql == use.sql()  # with a guard it can fail
            fails = not is_sure or any(_is_cast(name, signature.term(index), piece) for index, piece in enumerate(pieces))
            return composed(call.offset, sql, type, pieces, fails)
    raise _misfit(call, name, arguments)


def _is_cast(name: str, term: Term | None, piece: Piece) -> bool:
    """Whether Spark casts an argument in a way that can fail: a text to anything else, or a number to an int."""
    type_name = term.name if term else ""
    if piece.type == STRING:
        return type_name not in ("text", "bytes", "string", "any") and not is_variable(type_name)
    return type_name == "number" and name not in _OF_DOUBLES and piece.type not in INTEGRALS[:3]


def _values(name: str, arguments: Sequence[Piece | None], call: Call) -> tuple[Piece, ...]:
    for piece, node in zip(arguments, call.arguments, strict=True):
        if piece is None:
            raise refused(node.offset, "sql-lambda", f"{name} takes no lambda", "transform, filter and exists take one")
    return tuple(piece for piece in arguments if piece)


def _misfit(call: Call, name: str, arguments: Sequence[Piece | None]) -> ExpressionError:
    argument_types = ", ".join("a lambda" if piece is None else comparisons.name(piece.type) for piece in arguments)
    forms = [signature.text.rpartition(" ")[0].replace("!", "") for signature in table()[name]]
    hint = f"it takes {' or '.join(forms[:4])}"
    first_argument = arguments[0] if arguments else None
    if (
        first_argument is not None
        and is_numeric(first_argument.type)
        and all(signature.term(0) == Term("time") for signature in table()[name])
    ):
        cast_sql, seconds = cast(first_argument, "bigint"), f"timestamp_seconds({written(first_argument)})"
        hint = f"write {code(cast_sql if name == 'trunc' else seconds)} in place of {code(written(first_argument))}; {hint}"
    if call.name.lower() in ("aggregate", "reduce"):
        hint += "; the lambda gives the type of the start, as after cast(0 as double)"
    return refused(call.offset, "sql-type", f"{call.name} does not take ({argument_types})", hint)
