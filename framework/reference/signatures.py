"""What a function takes and gives, asked of the function itself: the kinds that it names, and which columns it takes where a call of
it has an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from framework import types
from framework.reference.samples import COLUMNS
from framework.sql import containers, grammar, moments, special
from framework.sql.arguments import Use
from framework.sql.expressions import ExpressionError, typed
from framework.sql.functions import SIGNATURES
from framework.sql.pieces import Piece
from framework.sql.tree import Call, Column, Literal, Node
from framework.types import Array, Map, Struct, Type, is_numeric

_SPECIAL = {**special.TABLE, **containers.TABLE, **moments.TABLE}
_SIMPLE = {match[1]: tuple(match[2].split(", ")) for match in re.finditer(r"(\w+)\((.*)\) \w+", SIGNATURES)}
_WORDS = {"double": "number", "bytes": "string or binary", "day": "date", "moment": "timestamp", "array": "list"}
_NUMBERS = {"int", "double"}
_PROBES: tuple[tuple[str, str], ...] = (
    *((name, name) for name in ("string", "binary", "boolean", "int", "double", "date", "timestamp")),
    ("double", "decimal(18,2)"),
    *(("list", name) for name in ("array<string>", "array<int>", "array<array<int>>")),
    *(("map", name) for name in ("map<string,int>", "map<int,string>")),
    ("struct", "struct<a:int>"),
)
"""Columns that are tried: what they are called on the page, and their types."""
_PROBE = "probe"
_MANY = 6  # what takes so many different things takes any value


class _Asked(Exception):
    def __init__(self, kinds: Sequence[str], more: bool) -> None:
        self.kinds = tuple(kinds)
        self.more = more


@dataclass(frozen=True)
class _Asking(Use):
    """A call that ends with what the function says that it takes."""

    def take(self, *kinds: str) -> tuple[Piece, ...]:
        raise _Asked(kinds, False)

    def some(self, least: int) -> tuple[Piece, ...]:
        raise _Asked(["any"] * least, True)


def signature(sample: str) -> tuple[str, str]:
    """What the function of this call takes, and what it gives."""
    call = grammar.parse(sample)
    assert isinstance(call, Call), f"{sample} calls no function"
    asked = _asked(call.name)
    words = [_word(call, at, kind) for at, kind in enumerate(asked.kinds)]
    results = {typed(call, COLUMNS).type, *(result for at in range(len(call.arguments)) for _, result in _tried(call, [at]))}
    if asked.kinds.count("any") > 1:
        results |= {result for _, result in _tried(call, range(len(call.arguments)))}
    return ", ".join([*words, *(["…"] if asked.more else [])]), _result(results)


def _asked(name: str) -> _Asked:
    if name in _SIMPLE:
        return _Asked(_SIMPLE[name], False)
    try:
        _SPECIAL[name](_Asking(name, (), 0))
    except _Asked as asked:
        return asked
    raise AssertionError(f"{name} does not ask for its arguments first")


def _word(call: Call, at: int, kind: str) -> str:
    """The argument in users' words; a kind that ends in `?` can be left out."""
    mark = "?" if kind.endswith("?") else ""
    kind = kind.rstrip("?")
    if at >= len(call.arguments):
        return _WORDS.get(kind, kind) + mark
    here = {name for name, _ in _tried(call, [at])}
    if not here and isinstance(call.arguments[at], Literal):
        return f"literal {typed(call.arguments[at], COLUMNS).type}{mark}"
    if kind != "any":
        return _WORDS.get(kind, kind) + mark
    everywhere = {name for name, _ in _tried(call, range(len(call.arguments)))}
    together = not everywhere or here <= everywhere or everywhere <= here
    if len(here) >= _MANY or len(everywhere) >= _MANY or not together or (at and _is_container(call.arguments[0])):
        return f"value{mark}"
    names = here - _NUMBERS | {"number"} if here >= _NUMBERS else here
    return " or ".join(name for name in ("number", *dict(_PROBES)) if name in names) + mark


def _is_container(node: Node) -> bool:
    """Whether what stands behind it is of a type that this one's items or keys have."""
    return isinstance(typed(node, COLUMNS).type, Array | Map)


def _tried(call: Call, places: Sequence[int]) -> Iterator[tuple[str, Type]]:
    """The columns that are taken in these places, and what the call then gives."""
    for name, text in _PROBES:
        type = types.parse(text)
        arguments: list[Node] = [Column(0, _PROBE) if at in places else each for at, each in enumerate(call.arguments)]
        try:
            result = typed(replace(call, arguments=tuple(arguments)), {**COLUMNS, _PROBE: type}).type
        except ExpressionError:
            continue
        yield name, result


def _result(results: set[Type]) -> str:
    if len(results) == 1:
        return f"`{next(iter(results))}`"
    if all(is_numeric(result) for result in results):
        return "number"
    alike = next(
        (word for form, word in ((Array, "list"), (Struct, "struct")) if all(isinstance(each, form) for each in results)), ""
    )
    return alike or "value"
