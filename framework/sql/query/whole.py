"""A whole select over tables, checked, typed and written as SQL for Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from framework.base.spelling import did_you_mean, listed
from framework.base.types import Type, holds_map
from framework.sql import coercion
from framework.sql.faults import ExpressionError, Fault
from framework.sql.query import grammar, selects
from framework.sql.query.joins import joined
from framework.sql.query.nodes import Both, Join, Query, Select, Source
from framework.sql.query.relations import Field, Relation, Scope, one
from framework.sql.quote import identifier

_JOIN_IT = (
    "join it: `left semi join (select …) as s on …` for IN and EXISTS, `left anti join` for NOT EXISTS (NOT IN chooses no row "
    "where a value of the select is null), a join for its value"
)
_HINTS = {
    "sql-subquery": _JOIN_IT,
    "sql-not-deterministic": "take what the row has, such as _kafka_timestamp or _kafka_offset",
    "sql-too-long": "make a table of a part of it, by a pipeline of its own, and read that",
    "sql-too-deep": "name a part of it in a select behind WITH, or in FROM",
}
"""What is to be done otherwise than in an expression over one row."""


@dataclass(frozen=True)
class Given:
    """A column of a table. A star leaves `hidden` ones out."""

    name: str
    type: Type
    hidden: bool = False


@dataclass(frozen=True)
class Whole:
    """SQL over tables of the names `table(0)`, `table(1)`, and so on; `used` are their own names. The rows with some values of `apart`,
    columns of the one table by the names that they have in the result, can be computed from its rows with these values alone."""

    sql: str
    fields: tuple[Field, ...]
    used: tuple[str, ...]
    apart: Mapping[str, str]


def table(at: int) -> str:
    """The plain name of a table in SQL, to be replaced."""
    return f"_sluice_table_{at}"


def whole(text: str, tables: Mapping[str, Sequence[Given]]) -> Whole:
    """The select, or ExpressionError with all that is wrong."""
    reading = _Reading(tables)
    try:
        relation = reading.query(grammar.read(text), {})
        if relation is None or reading.faults:
            raise ExpressionError(*dict.fromkeys(reading.faults))
    except ExpressionError as error:
        raise ExpressionError(*(replace(each, hint=_HINTS.get(each.code, each.hint)) for each in error.faults)) from None
    apart: dict[str, str] = {}
    for each in relation.fields:
        if each.same and each.same in (relation.apart or ()):
            apart.setdefault(each.same.split(".", 2)[2], each.name)  # behind the table's two names
    return Whole(relation.sql, relation.fields, tuple(reading.used), apart)


@dataclass
class _Reading:
    tables: Mapping[str, Sequence[Given]]
    faults: list[Fault] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)  # names of common table expressions

    def query(
        self, query: Query | Select | Both, names: Mapping[str, Relation | None], by_place: bool = False
    ) -> Relation | None:
        """The relation that it gives. `names` are those of common table expressions; one that is wrong has none. With `by_place` its
        columns need no names."""
        match query:
            case Query():
                own: dict[str, tuple[str, int]] = {}
                for name, offset, each in query.names:
                    if name.lower() in own:
                        self.faults.append(Fault(offset, "duplicate-name", f"there are two `{name}`", "give one another name"))
                    own[name.lower()] = name, offset
                    names = {**names, name.lower(): self.query(each, names)}
                    self.read.discard(name.lower())
                relation = self.query(query.body, names, by_place)
                for name, offset in (own[each] for each in sorted(own.keys() - self.read)):
                    self.faults.append(Fault(offset, "sql-unused", f"nothing reads `{name}`", "delete it"))
                return relation
            case Both():
                return self.both(query, self.query(query.left, names, by_place), self.query(query.right, names, True))
            case Select():
                scope = self.scope(query.source, names)
                return selects.relation(query, scope, self.faults, by_place) if scope else None

    def both(self, both: Both, left: Relation | None, right: Relation | None) -> Relation | None:
        if left is None or right is None:
            return None
        word = both.word.upper()
        if len(left.fields) != len(right.fields):
            message = f"{word} puts {len(left.fields)} columns on {len(right.fields)}"
            self.faults.append(
                Fault(both.offset, "sql-type", message, "write the same columns, in the same order, on both sides")
            )
            return None
        fields = []
        for at, (one_, other) in enumerate(zip(left.fields, right.fields, strict=True), 1):
            type_ = coercion.wider(one_.type, other.type)
            if type_ is None or (both.word != "union all" and holds_map(type_)):
                message = f"{word} puts column {at}, {one_.type}, on {other.type}"
                self.faults.append(Fault(both.offset, "sql-type", message, "cast one of them"))
                continue
            same = one_.same if one_.same == other.same else None
            origins = one_.origins if both.word == "except" else one_.origins | other.origins
            fields.append(Field(one_.name, type_, origins, same=same))
        sides = (f"SELECT {_cast(each, fields)} FROM ({each.sql})" for each in (left, right) if len(fields) == len(left.fields))
        apart = None if left.apart is None or right.apart is None else left.apart & right.apart
        return Relation(f" {word} ".join(f"({each})" for each in sides), tuple(fields), apart)

    def scope(self, source: Source | Join, names: Mapping[str, Relation | None]) -> Scope | None:
        if isinstance(source, Source):
            relation = self.source(source, names)
            return one(relation, source.alias, "" if isinstance(source.of, Query) else source.of) if relation else None
        left, right = self.scope(source.left, names), self.scope(source.right, names)
        return joined(source, left, right, self.faults) if left and right else None

    def source(self, source: Source, names: Mapping[str, Relation | None]) -> Relation | None:
        if isinstance(source.of, Query):
            return self.query(source.of, names)
        if source.of.lower() in names:
            self.read.add(source.of.lower())
            return names[source.of.lower()]
        name = next((each for each in self.tables if each.lower() == source.of.lower()), None)
        if name is None:
            there = [*self.tables, *names]
            hint = did_you_mean(source.of, there, f"tables here: {listed(there)}; name others in `from: {{tables: […]}}`")
            self.faults.append(Fault(source.offset, "unknown-table", f"there is no table `{source.of}` here", hint))
            return None
        at = self.used.setdefault(name, len(self.used))
        fields = tuple(
            Field(each.name, each.type, frozenset([f"{name}.{each.name}"]), same=f"{name}.{each.name}", hidden=each.hidden)
            for each in self.tables[name]
        )
        columns = ", ".join(identifier(each.name) for each in fields)
        return Relation(f"SELECT {columns} FROM {table(at)}", fields, frozenset(each.same for each in fields if each.same))


def _cast(relation: Relation, fields: Sequence[Field]) -> str:
    """The columns by the names and types of both sides."""
    pairs = zip(relation.fields, fields, strict=True)
    return ", ".join(
        f"{identifier(own.name) if own.type == to.type else f'CAST({identifier(own.name)} AS {to.type.sql})'} AS {identifier(to.name)}"
        for own, to in pairs
    )
