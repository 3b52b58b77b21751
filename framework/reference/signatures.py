"""Signatures of functions, derived by calling them: the kinds of arguments that a function names and, where it takes any, the columns
that it accepts in place of an example's argument.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from framework import types
from framework.reference.samples import COLUMNS
from framework.sql import collection_functions, date_functions, grammar, special_functions
from framework.sql.arguments import Use
from framework.sql.expressions import ExpressionError, typed
from framework.sql.functions import SIGNATURES
from framework.sql.pieces import Piece
from framework.sql.tree import Call, Column, Literal
from framework.types import Array, Map

_SPECIAL = {**special_functions.TABLE, **collection_functions.TABLE, **date_functions.TABLE}
_SIMPLE = {match[1]: match[2].split(", ") for match in re.finditer(r"(\w+)\((.*)\) \w+", SIGNATURES)}
_WORDS = {"double": "number", "bytes": "string or binary", "day": "date", "moment": "timestamp", "array": "list"}
_PROBES = {
    "int": "int",
    "double": "number",
    "string": "string",
    "binary": "binary",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "array<string>": "list",
    "map<string,int>": "map",
    "map<int,string>": "map",
    "struct<a:int>": "struct",
}
"""The columns to try: their types, and their names on the page."""
_MANY = 5  # an argument that takes so many different types takes any value


class _Asked(Exception):
    def __init__(self, kinds: Sequence[str]) -> None:
        self.kinds = kinds


@dataclass(frozen=True)
class _Asking(Use):
    """A call that ends with the kinds of arguments that the function names."""

    def take(self, *kinds: str) -> tuple[Piece, ...]:
        raise _Asked(kinds)

    def some(self, least: int) -> tuple[Piece, ...]:
        raise _Asked([*["any"] * least, "…"])


def signature(sample: str) -> str:
    """The function of this call and its kinds of arguments."""
    call = grammar.parse(sample)
    assert isinstance(call, Call), f"{sample} calls no function"
    return f"{call.name}({', '.join(_word(call, at, kind) for at, kind in enumerate(_kinds(call.name)))})"


def _kinds(name: str) -> Sequence[str]:
    if name in _SIMPLE:
        return _SIMPLE[name]
    try:
        _SPECIAL[name](_Asking(name, (), 0))
    except _Asked as asked:
        return asked.kinds
    raise AssertionError(f"{name} does not ask for its arguments first")


def _word(call: Call, at: int, kind: str) -> str:
    """The argument in users' words; a kind that ends in `?` can be left out."""
    kind, mark = kind.rstrip("?"), "?" * kind.endswith("?")
    if kind == "…":
        return kind
    if at < len(call.arguments) and not _taken(call, [at]) and isinstance(call.arguments[at], Literal):
        return f"literal {typed(call.arguments[at], COLUMNS).type}{mark}"
    return (_any(call, at) if kind == "any" else _WORDS.get(kind, kind)) + mark


def _any(call: Call, at: int) -> str:
    """The types of an argument of any kind. Next to the other arguments fewer types fit than if all of them change."""
    here, everywhere = _taken(call, [at]), _taken(call, range(len(call.arguments)))
    if at and isinstance(typed(call.arguments[0], COLUMNS).type, Array | Map):
        return "value"  # of the type of the container's items
    specific = everywhere and not set(here) & set(everywhere)
    return "value" if specific or max(len(here), len(everywhere)) >= _MANY else " or ".join(here)


def _taken(call: Call, places: Collection[int]) -> list[str]:
    """The columns that the function accepts in these places."""
    columns = []
    for text, name in _PROBES.items():
        probed = tuple(Column(0, "probe") if at in places else each for at, each in enumerate(call.arguments))
        try:
            typed(replace(call, arguments=probed), {**COLUMNS, "probe": types.parse(text)})
        except ExpressionError:
            continue
        columns.append(name)
    return [name for name in dict.fromkeys(columns) if name != "int" or "number" not in columns]
