"""Spark's column types as frozen data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

DEEPEST = 32
"""The most levels of nesting; more is a mistake, or an attack on the recursion below."""


@dataclass(frozen=True)
class Type:
    """Any type. `str` is Spark's simpleString; `sql` can be parsed again, whatever the names of fields are."""

    def __str__(self) -> str:
        return self.text(str)

    @property
    def sql(self) -> str:
        return self.text(identifier)

    def text(self, quote: Callable[[str], str]) -> str:
        """The type in SQL, each field's name quoted by `quote`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Atom(Type):
    name: str

    def text(self, quote: Callable[[str], str]) -> str:
        return self.name


@dataclass(frozen=True)
class Decimal(Type):
    precision: int
    scale: int

    def text(self, quote: Callable[[str], str]) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True)
class Array(Type):
    element: Type

    def text(self, quote: Callable[[str], str]) -> str:
        return f"array<{self.element.text(quote)}>"


@dataclass(frozen=True)
class Map(Type):
    key: Type
    value: Type

    def text(self, quote: Callable[[str], str]) -> str:
        return f"map<{self.key.text(quote)},{self.value.text(quote)}>"


@dataclass(frozen=True)
class Field:
    name: str
    type: Type


@dataclass(frozen=True)
class Struct(Type):
    fields: tuple[Field, ...]

    def text(self, quote: Callable[[str], str]) -> str:
        return f"struct<{','.join(f'{quote(field.name)}:{field.type.text(quote)}' for field in self.fields)}>"

    def field(self, name: str) -> Field | None:
        """The field of that name, ignoring case as Spark does."""
        return next((field for field in self.fields if folded(field.name) == folded(name)), None)


BOOLEAN = Atom("boolean")
TINYINT = Atom("tinyint")
SMALLINT = Atom("smallint")
INT = Atom("int")
BIGINT = Atom("bigint")
FLOAT = Atom("float")
DOUBLE = Atom("double")
STRING = Atom("string")
BINARY = Atom("binary")
DATE = Atom("date")
TIMESTAMP = Atom("timestamp")
TIMESTAMP_NTZ = Atom("timestamp_ntz")
VOID = Atom("void")
"""The type of a bare NULL: no column has it."""

MONTHS = Atom("interval year to month")
TIME = Atom("interval day to second")
DAYS = Atom("interval day")
INTERVALS: dict[str, Type] = {"interval_months": MONTHS, "interval_time": TIME, "interval_days": DAYS}
"""The types of intervals, by names of one word. A column has none of them either. An interval of days is also one down to seconds."""

VARIANT = Atom("variant")
"""What parse_json gives. No column has it."""

TIMES: tuple[Type, ...] = (DATE, TIMESTAMP, TIMESTAMP_NTZ)

INTEGRALS: tuple[Type, ...] = (TINYINT, SMALLINT, INT, BIGINT)
"""From the narrowest to the widest."""

NAMES: dict[str, Type] = {
    **{str(atom): atom for atom in (BOOLEAN, *INTEGRALS, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ)},
    "byte": TINYINT,
    "short": SMALLINT,
    "integer": INT,
    "long": BIGINT,
    "real": FLOAT,
    "timestamp_ltz": TIMESTAMP,
}
DECIMALS = ("decimal", "dec", "numeric")
NESTED = ("array", "map", "struct")


def is_integral(type: Type) -> bool:
    return type in INTEGRALS


def is_fractional(type: Type) -> bool:
    """Whether a type is float or double, which never overflow."""
    return type in (FLOAT, DOUBLE)


def is_numeric(type: Type) -> bool:
    return is_integral(type) or is_fractional(type) or isinstance(type, Decimal)


@lru_cache(maxsize=4096)  # asked of each column for each other
def folded(name: str) -> str:
    """A key that is equal for names that a table does not distinguish. Spark compares each letter's upper and lower case."""
    if name.isascii():
        return name.lower()
    large = (letter.upper() if len(letter.upper()) == 1 else letter for letter in name)
    return "".join(letter.lower()[0] for letter in large).replace("i\u0307", "i")


def identifier(name: str) -> str:
    """A name in backquotes, as Spark SQL reads it."""
    return "`" + name.replace("`", "``") + "`"


def parts(type: Type) -> Iterator[Type]:
    """A type and all those inside it."""
    yield type
    match type:
        case Array():
            yield from parts(type.element)
        case Map():
            yield from (*parts(type.key), *parts(type.value))
        case Struct():
            for field in type.fields:
                yield from parts(field.type)


def holds_map(type: Type) -> bool:
    """Whether a type contains a map: such values can be neither compared nor sorted."""
    return any(isinstance(part, Map) for part in parts(type))


def widens(old: Type, new: Type) -> bool:
    """Whether the new type holds every value of the old one, and Iceberg allows the promotion."""
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        return old.scale == new.scale and old.precision < new.precision
    return (old, new) in ((INT, BIGINT), (FLOAT, DOUBLE))
