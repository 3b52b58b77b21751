"""A whole select over tables, checked, typed and written as SQL for Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from framework.base.spelling import did_you_mean, listed
from framework.base.types import Type, holds_map
from framework.sql import coercion
from framework.sql.faults import ExpressionError, ExpressionFault
from framework.sql.query import grammar, selects
from framework.sql.query.joins import joined
from framework.sql.query.nodes import Both, Join, Query, Select, Source
from framework.sql.query.relations import Relation, RelationField, Scope, one
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
"""Hints that differ from those for an expression over one row."""


@dataclass(frozen=True)
class GivenColumn:
    """A column of a table. A star leaves `hidden` ones out."""

    name: str
    type: Type
    hidden: bool = False


@dataclass(frozen=True)
class Whole:
    """SQL over tables with the names `table(0)`, `table(1)`, and so on; `used` are the tables' own names. `apart` maps columns of the
    one table to their names in the result: the rows with some values of these can be computed from the table's rows with the same values
    alone."""

    sql: str
    fields: tuple[RelationField, ...]
    used: tuple[str, ...]
    apart: Mapping[str, str]


def table(index: int) -> str:
    """Returns the plain name of a table in SQL, which is replaced later."""
    return f"_sluice_table_{index}"


def whole(text: str, tables: Mapping[str, Sequence[GivenColumn]]) -> Whole:
    """Returns the select, or raises ExpressionError with all its faults."""
    reading = _Reading(tables)
    try:
        relation = reading.query(grammar.read(text), {})
        if relation is None or reading.faults:
            raise ExpressionError(*dict.fromkeys(reading.faults))
    except ExpressionError as error:
        raise ExpressionError(*(replace(fault, hint=_HINTS.get(fault.code, fault.hint)) for fault in error.faults)) from None
    apart: dict[str, str] = {}
    for column in relation.fields:
        if column.same and column.same in (relation.apart or ()):
            apart.setdefault(column.same.split(".", 2)[2], column.name)  # behind the table's two names
    return Whole(relation.sql, relation.fields, tuple(reading.used), apart)


@dataclass
class _Reading:
    tables: Mapping[str, Sequence[GivenColumn]]
    faults: list[ExpressionFault] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)  # names of common table expressions

    def query(
        self, query: Query | Select | Both, names: Mapping[str, Relation | None], by_place: bool = False
    ) -> Relation | None:
        """Returns the relation that a query gives. `names` has the common table expressions; a wrong one has no relation. With `by_place`
        the query's columns need no names."""
        match query:
            case Query():
                own_names: dict[str, tuple[str, int]] = {}
                for name, offset, named_query in query.names:
                    if name.lower() in own_names:
                        self.faults.append(
                            ExpressionFault(offset, "duplicate-name", f"there are two `{name}`", "give one another name")
                        )
                    own_names[name.lower()] = name, offset
                    names = {**names, name.lower(): self.query(named_query, names)}
                    self.read.discard(name.lower())
                relation = self.query(query.body, names, by_place)
                for name, offset in (own_names[key] for key in sorted(own_names.keys() - self.read)):
                    self.faults.append(ExpressionFault(offset, "sql-unused", f"nothing reads `{name}`", "delete it"))
                return relation
            case Both():
                return self.both(query, self.query(query.left, names, by_place), self.query(query.right, names, True))
            case Select():
                scope = self.scope(query.source, names)
                return selects.relation(query, scope, self.faults, by_place) if scope else None

    def both(self, pair: Both, left_side: Relation | None, right_side: Relation | None) -> Relation | None:
        if left_side is None or right_side is None:
            return None
        word = pair.word.upper()
        if len(left_side.fields) != len(right_side.fields):
            message = f"{word} puts {len(left_side.fields)} columns on {len(right_side.fields)}"
            self.faults.append(
                ExpressionFault(pair.offset, "sql-type", message, "write the same columns, in the same order, on both sides")
            )
            return None
        fields = []
        for index, (left_field, right_field) in enumerate(zip(left_side.fields, right_side.fields, strict=True), 1):
            type_ = coercion.wider(left_field.type, right_field.type)
            if type_ is None or (pair.word != "union all" and holds_map(type_)):
                message = f"{word} puts column {index}, {left_field.type}, on {right_field.type}"
                self.faults.append(ExpressionFault(pair.offset, "sql-type", message, "cast one of them"))
                continue
            same = left_field.same if left_field.same == right_field.same else None
            origins = left_field.origins if pair.word == "except" else left_field.origins | right_field.origins
            fields.append(RelationField(left_field.name, type_, origins, same=same))
        sides = (
            f"SELECT {_cast(relation, fields)} FROM ({relation.sql})"
            for relation in (left_side, right_side)
            if len(fields) == len(left_side.fields)
        )
        apart = None if left_side.apart is None or right_side.apart is None else left_side.apart & right_side.apart
        return Relation(f" {word} ".join(f"({side})" for side in sides), tuple(fields), apart)

    def scope(self, source: Source | Join, names: Mapping[str, Relation | None]) -> Scope | None:
        if isinstance(source, Source):
            relation = self.source(source, names)
            return one(relation, source.alias, "" if isinstance(source.of, Query) else source.of) if relation else None
        left_side, right_side = self.scope(source.left, names), self.scope(source.right, names)
        return joined(source, left_side, right_side, self.faults) if left_side and right_side else None

    def source(self, source: Source, names: Mapping[str, Relation | None]) -> Relation | None:
        if isinstance(source.of, Query):
            return self.query(source.of, names)
        if source.of.lower() in names:
            self.read.add(source.of.lower())
            return names[source.of.lower()]
        name = next((table_name for table_name in self.tables if table_name.lower() == source.of.lower()), None)
        if name is None:
            table_names = [*self.tables, *names]
            hint = did_you_mean(
                source.of, table_names, f"tables here: {listed(table_names)}; name others in `from: {{tables: […]}}`"
            )
            self.faults.append(ExpressionFault(source.offset, "unknown-table", f"there is no table `{source.of}` here", hint))
            return None
        index = self.used.setdefault(name, len(self.used))
        fields = tuple(
            RelationField(
                column.name, column.type, frozenset([f"{name}.{column.name}"]), same=f"{name}.{column.name}", hidden=column.hidden
            )
            for column in self.tables[name]
        )
        columns = ", ".join(identifier(column.name) for column in fields)
        return Relation(
            f"SELECT {columns} FROM {table(index)}", fields, frozenset(column.same for column in fields if column.same)
        )


def _cast(relation: Relation, fields: Sequence[RelationField]) -> str:
    """Returns SQL of the columns of one side, with the names and types that both sides have in common."""
    pairs = zip(relation.fields, fields, strict=True)
    return ", ".join(
        f"{identifier(old.name) if old.type == new.type else f'CAST({identifier(old.name)} AS {new.type.sql})'} AS {identifier(new.name)}"
        for old, new in pairs
    )
