"""Signatures of functions: the types that they take, and the type that they give for these.

A signature is a line such as `substring(text, number, number?) string`:

| written | what it is |
| --- | --- |
| `int`, `string`, `decimal` … | that type, or NULL |
| `text`, `number`, `time`, `bytes` | types that Spark casts by itself to that; see KINDS |
| `a\\|b` | either of these |
| `any` | any type |
| `comparable` | any type without a map in it |
| `int!`, `string!` | a literal of that type |
| `T`, `K`, `V`, … | any type, in all its places the one that holds all that is given; `O` without a map in it |
| `array<T>`, `map<K,V>` | with parts that fit |
| `(T,U)->V`, `T->V` | a lambda |
| `x?`, `x...` | may be left out; any number of them |
| `$1` | in the result: the type of the first argument |

If a function has several signatures, the first that fits counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from framework.base import types
from framework.base.types import DAYS, INTERVALS, MONTHS, TIME, VARIANT, VOID, Array, Decimal, Map, Struct, Type
from framework.sql import coercion
from framework.sql.pieces import Piece

NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
KINDS: Mapping[str, frozenset[str]] = {
    "number": frozenset((*NUMBERS, "string")),
    "time": frozenset(("date", "timestamp", "timestamp_ntz", "string")),
    "bytes": frozenset(("binary", "string")),
    "text": frozenset(
        (*NUMBERS, "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz", "interval_months", "interval_time")
    ),
}
OF_SPARK, BY_HAND = (Path(__file__).with_name(f"{name}_functions.txt") for name in ("spark", "nested"))
_ATOMS: Mapping[str, Type] = {**types.NAMES, **INTERVALS, "variant": VARIANT}
_NAMES: dict[Type, str] = {MONTHS: "interval_months", TIME: "interval_time", DAYS: "interval_time"}
_TOKEN = re.compile(r"(\.\.\.|->|[(),<>|?$!])|([A-Za-z_][A-Za-z_0-9]*|[0-9]+)")


@dataclass(frozen=True)
class Term:
    """A term of a signature. `name` is that of a type, a kind or a variable, or `|`, `->`, `$`; `parts` are the terms inside it."""

    name: str
    parts: tuple[Term, ...] = ()
    literal: bool = False


@dataclass(frozen=True, kw_only=True)
class Signature:
    name: str
    terms: tuple[Term, ...]
    minimum: int  # arguments
    is_repeated: bool  # whether the last term can be repeated
    result: Term
    text: str

    def term(self, index: int) -> Term | None:
        if index < len(self.terms):
            return self.terms[index]
        return self.terms[-1] if self.is_repeated else None


@dataclass
class Match:
    """The arguments of one call against one signature. Not frozen: variables take wider types as more arguments come."""

    signature: Signature
    lambdas: Callable[[int, Sequence[Type]], Piece | None]
    variables: dict[str, Type] = field(default_factory=dict)

    def result(self, arguments: Sequence[Piece | None]) -> Type | None:
        """Returns the type of the call, or None where the arguments do not fit. A lambda is no piece yet."""
        if (
            not self.signature.minimum
            <= len(arguments)
            <= (len(arguments) if self.signature.is_repeated else len(self.signature.terms))
        ):
            return None
        for index, argument in enumerate(arguments):
            term = self.signature.term(index)
            assert term is not None, "counted"
            if argument is None or term.name == "->":
                if argument is not None or term.name != "->" or not self.lambda_fits(index, term):
                    return None
            elif not self.fits(term, argument.type) or (term.literal and argument.constant is None and argument.type != VOID):
                return None
        return self.type(self.signature.result, [argument.type if argument else VOID for argument in arguments])

    def lambda_fits(self, index: int, term: Term) -> bool:
        *parameters, result = term.parts
        parameter_types = [self.type(part, ()) for part in parameters]
        if any(type_ is None for type_ in parameter_types):
            return False
        earlier_type = self.variables.get(result.name)
        body = self.lambdas(index, [type_ for type_ in parameter_types if type_])
        # Spark casts no start value to the type that a lambda makes of it.
        if body is None or (earlier_type and body.type != earlier_type):
            return False
        return self.fits(result, body.type)

    def fits(self, term: Term, type_: Type) -> bool:
        if term.name == "|":
            return any(self.fits(part, type_) for part in term.parts)
        if type_ == VARIANT:  # only functions made for it take one
            return term.name == "variant"
        if term.name in ("O", "comparable") and types.holds_map(type_):
            return False
        if is_variable(term.name):
            earlier_type = self.variables.get(term.name)
            wider_type = coercion.wider(earlier_type, type_) if earlier_type else type_
            self.variables[term.name] = wider_type or VOID
            return wider_type is not None
        if type_ == VOID or term.name in ("any", "comparable"):
            return True
        match type_:
            case Array():
                return term.name == "array" and self.fits(term.parts[0], type_.element)
            case Map():
                return term.name == "map" and self.fits(term.parts[0], type_.key) and self.fits(term.parts[1], type_.value)
            case Struct():
                return term.name == "struct"
        name = "decimal" if isinstance(type_, Decimal) else _NAMES.get(type_, str(type_))
        return name in KINDS.get(term.name, (term.name,))

    def type(self, term: Term, argument_types: Sequence[Type]) -> Type | None:
        """Returns the type that a result or a lambda's parameter stands for."""
        if term.name == "$":
            return argument_types[int(term.parts[0].name) - 1]
        if is_variable(term.name):
            return self.variables.get(term.name)
        parts = [self.type(part, argument_types) for part in term.parts]
        if any(part is None for part in parts):
            return None
        inner_types = [part for part in parts if part]
        if term.name == "array":
            return Array(inner_types[0])
        if term.name == "map":
            return Map(inner_types[0], inner_types[1])
        if term.name == "entry":
            return Struct((types.Field("key", inner_types[0]), types.Field("value", inner_types[1])))
        return Decimal(int(term.parts[0].name), int(term.parts[1].name)) if term.name == "decimal" else _ATOMS[term.name]


def is_variable(name: str) -> bool:
    return len(name) == 1 and name.isupper()


@cache
def table() -> Mapping[str, tuple[Signature, ...]]:
    """Returns all signatures by the names of their functions: those got from Spark's analyser, and those of lists, maps and lambdas."""
    by_name: dict[str, list[Signature]] = {}
    for line in (*lines(OF_SPARK), *lines(BY_HAND)):
        signature = read(line)
        by_name.setdefault(signature.name, []).append(signature)
    return {name: tuple(signatures) for name, signatures in by_name.items()}


def lines(file: Path) -> list[str]:
    """Returns the signatures of a file, as they are written."""
    return [line for line in file.read_text().splitlines() if not line.startswith("#")]


def read(line: str) -> Signature:
    reader = _Reader([match[1] or match[2] for match in _TOKEN.finditer(line)])
    name = reader.take()
    reader.mark("(")
    terms: list[Term] = []
    minimum, is_repeated = 0, False
    while reader.next != ")":
        terms.append(reader.term())
        optional, is_repeated = reader.skip("?"), reader.skip("...")
        minimum += not optional
        reader.skip(",")
    reader.mark(")")
    return Signature(name=name, terms=tuple(terms), minimum=minimum, is_repeated=is_repeated, result=reader.term(), text=line)


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.position = 0

    @property
    def next(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1]

    def skip(self, mark: str) -> bool:
        is_next = self.next == mark
        self.position += is_next
        return is_next

    def mark(self, mark: str) -> None:
        token = self.take()
        assert token == mark, f"{mark} is missing before {token}: {self.tokens}"

    def term(self) -> Term:
        terms = [self.single()]
        while self.skip("|"):
            terms.append(self.single())
        return terms[0] if len(terms) == 1 else Term("|", tuple(terms), all(term.literal for term in terms))

    def single(self) -> Term:
        if self.skip("("):
            parameters = list(self.several(")"))
            self.mark("->")
            return Term("->", (*parameters, self.term()))
        name = self.take()
        if name == "$":
            return Term("$", (Term(self.take()),))
        parts = tuple(self.several(">")) if self.skip("<") else ()
        if self.skip("->"):
            return Term("->", (Term(name, parts), self.term()))
        return Term(name, parts, self.skip("!"))

    def several(self, end: str) -> Iterator[Term]:
        while not self.skip(end):
            yield self.term()
            self.skip(",")
