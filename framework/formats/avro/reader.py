"""One Avro reader for the messages of all versions of a schema.

The writers' schemas are the types of one union, and each message gets the number of its version as the union's index in front, so
that one `from_avro` reads them all, and 500 versions cost little more than one. Names are no part of Avro's bytes: in each
writer's schema a field is called as its column is, or by a name of its own where two versions cannot be read as one type.

Behind each message stands a mark that no message can know. It is read as the last field: a message that is cut off, or that
goes on, does not end in it. None of its bytes can end a number, so that it is never taken for how many items follow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from framework import types
from framework.formats.avro.schema import Node, member_names
from framework.schemas.versions import Path, Shape, Unsupported
from framework.sql.quote import identifier, literal
from framework.types import Type

Convert = Callable[[str], str]
Json = Any
MARK_BYTES = 16
_WIDTHS = ("int", "long", "float", "double")


@dataclass(frozen=True)
class Writer:
    """A version: its number in the union, its record, and the columns' names where they are others."""

    index: int
    record: Node
    names: Mapping[Path, str]


@dataclass(frozen=True)
class Schemas:
    """`writer` and `reader` are Avro's; `columns` make each column of the struct that the reader gives."""

    writer: str
    reader: str
    columns: tuple[tuple[str, Convert], ...]


@dataclass(frozen=True)
class _At:
    """A type of one writer, and where in its version it stands."""

    writer: Writer
    node: Node
    path: Path


@dataclass(frozen=True)
class _Built:
    reader: Json
    writers: Mapping[int, Json]
    convert: Convert | None = None  # None: as it is
    columns: tuple[tuple[str, Convert], ...] = ()  # of a struct


@dataclass
class _Builder:
    """Makes names that no other type of the two schemas has."""

    count: int = field(default=0)

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def struct(self, shapes: Sequence[Shape], there: Sequence[_At]) -> _Built:
        """A record, or the types of a union, read as the fields of a struct."""
        name = self.fresh()
        fields: list[Json] = []
        columns: list[tuple[str, Convert]] = []
        placed: dict[int, dict[int, tuple[str, Json]]] = {at.writer.index: {} for at in there}  # each writer's fields by place
        members = [_members(at) for at in there]
        for shape in shapes:
            found = [each[shape.name] for each in members if shape.name in each]
            always = len(found) == len(there) and not any(
                _has_null(at.node.members[place].node) for at, (place, _) in zip(there, found, strict=True)
            )
            converts: list[tuple[str, Convert | None]] = []
            for same in _alike([at for _, at in found]):
                called = shape.name if not converts else f"_sluice_{len(fields)}"
                built = self.value(shape, same)
                absent = {} if always and len(same) == len(found) else {"default": None}
                fields.append({"name": called, "type": _nullable(built.reader) if absent else built.reader, **absent})
                for place, at in found:
                    if at in same:
                        placed[at.writer.index][place] = (called, built.writers[at.writer.index])
                converts.append((called, built.convert))
            columns.append((shape.name, _column(converts, shape.type)))
        writers = {at.writer.index: self._record(f"w{at.writer.index}.{name}", at, placed[at.writer.index]) for at in there}
        plain = all(convert("") == f".{identifier(column)}" for column, convert in columns)
        reader = {"type": "record", "name": f"r.{name}", "fields": fields}
        return _Built(reader, writers, None if plain else _struct(columns), tuple(columns))

    def _record(self, name: str, at: _At, placed: Mapping[int, tuple[str, Json]]) -> Json:
        fields = []
        for place, member in enumerate(at.node.members):
            if place in placed:
                called, type_ = placed[place]
                fields.append({"name": called, "type": _as_written(member.node, type_)})
            else:
                fields.append({"name": f"_sluice_skipped_{place}", "type": self.skipped(at.writer.index, member.node)})
        return {"type": "record", "name": name, "fields": fields}

    def union(self, shape: Shape, there: Sequence[_At]) -> _Built:
        """A union of several types: each is a field of a struct, of which one is set."""
        made: list[tuple[str, _Built]] = []
        placed: dict[int, dict[int, Json]] = {at.writer.index: {} for at in there}
        members = [_members(at) for at in there]
        for inner in shape.inside:
            found = [each[inner.name] for each in members if inner.name in each]
            if not found:
                message = f"`{shape.name}` is a record in one version and a union of several types in another"
                raise Unsupported(message, "delete one of the versions, or give the field another name")
            same = _alike([at for _, at in found])[0]  # a message with another one cannot be read, and is a bad row
            built = self.value(inner, same)
            made.append((inner.name, built))
            for place, at in found:
                if at in same:
                    placed[at.writer.index][place] = built.writers[at.writer.index]
        writers = {}
        for at in there:
            here = placed[at.writer.index]
            writers[at.writer.index] = [
                here[place] if place in here else self.skipped(at.writer.index, each) for place, each in enumerate(at.node.items)
            ]
        readers = [built.reader for _, built in made]
        if len(made) == 1:  # Spark makes no struct of it
            ((name, alone),) = made
            return _Built(readers[0], writers, lambda sql: _made(sql, [(name, _applied(alone.convert, sql))]))
        columns = [(name, _of(f"member{at}", built.convert)) for at, (name, built) in enumerate(made)]
        return _Built(readers, writers, _struct(columns))

    def value(self, shape: Shape, there: Sequence[_At]) -> _Built:
        """What a type is without null."""
        kind = there[0].node.kind
        if kind in ("array", "map"):
            inner = [_At(at.writer, at.node.items[0].value, at.path) for at in there]
            built = self.value(Shape(shape.name, _element(shape.type), inside=shape.inside), inner)
            key = "items" if kind == "array" else "values"
            writers = {
                at.writer.index: {"type": kind, key: _as_written(at.node.items[0], built.writers[at.writer.index])}
                for at in there
            }
            absent = any(_has_null(at.node.items[0]) for at in there)
            reader = {"type": kind, key: _nullable(built.reader) if absent else built.reader}
            return _Built(reader, writers, _each(kind, self.fresh(), built.convert))
        if kind == "union":
            return self.union(shape, there)
        if kind == "record":
            return self.struct(shape.inside, there)
        return self.atom(shape.type, there)

    def atom(self, type_: Type, there: Sequence[_At]) -> _Built:
        name = self.fresh()
        nodes = [at.node for at in there]
        first = nodes[0]
        if first.kind not in ("enum", "fixed"):
            kind = max((node.kind for node in nodes), key=_WIDTHS.index) if first.kind in _WIDTHS else first.kind
            widest = Node(kind, first.logical, precision=max(node.precision for node in nodes), scale=first.scale)
            return _Built(_plain(widest), {at.writer.index: _written(at.node) for at in there}, _cast(widest, type_))
        # Of named types Avro compares the names: the reader's is an alias of all writers'.
        writers = {at.writer.index: {**_plain(at.node), "name": f"w{at.writer.index}.{name}"} for at in there}
        symbols = tuple(dict.fromkeys(symbol for node in nodes for symbol in node.symbols))
        widest = replace(first, symbols=symbols, precision=max(node.precision for node in nodes))
        reader = {**_plain(widest), "name": f"r.{name}", "aliases": [each["name"] for each in writers.values()]}
        return _Built(reader, writers, _cast(widest, type_))

    def skipped(self, index: int, node: Node) -> Json:
        """A type that is no column, as it must be written down to be passed over."""
        match node.kind:
            case "union":
                return [self.skipped(index, each) for each in node.items]
            case "array":
                return {"type": "array", "items": self.skipped(index, node.items[0])}
            case "map":
                return {"type": "map", "values": self.skipped(index, node.items[0])}
            case "record":
                fields = [{"name": f"f{at}", "type": self.skipped(index, each.node)} for at, each in enumerate(node.members)]
                return {"type": "record", "name": f"w{index}.{self.fresh()}", "fields": fields}
            case "enum" | "fixed":
                return {**_plain(node), "name": f"w{index}.{self.fresh()}"}
        return node.kind


def schemas(shapes: Sequence[Shape], writers: Sequence[Writer]) -> Schemas:
    """For columns of these shapes."""
    builder = _Builder()
    built = builder.struct(shapes, [_At(writer, writer.record, ()) for writer in writers])
    mark = {"name": "_sluice_mark", "type": {"type": "fixed", "name": "r.mark", "size": MARK_BYTES}}
    root = {"type": "record", "name": "r.message", "fields": [{"name": "v", "type": built.reader}, mark]}
    union = [built.writers[writer.index] for writer in writers]
    written = {"type": "record", "name": "r.message", "fields": [{"name": "v", "type": union}, mark]}
    return Schemas(json.dumps(written), json.dumps(root), built.columns)


def _members(at: _At) -> dict[str, tuple[int, _At]]:
    """The fields of a record, or the types of a union, by the columns that they are, and their places."""
    if at.node.kind == "record":
        there = [(member.name, member.node) for member in at.node.members]
    else:
        there = list(zip(member_names(at.node), at.node.items, strict=True))
    found: dict[str, tuple[int, _At]] = {}
    for place, (called, node) in enumerate(there):
        path = (*at.path, called)
        if node.type is not None:
            found.setdefault(at.writer.names.get(path, called), (place, _At(at.writer, node.value, path)))
    return found


def _alike(there: Sequence[_At]) -> list[list[_At]]:
    """In groups that Avro can read as one type."""
    groups: dict[tuple[object, ...], list[_At]] = {}
    for at in there:
        groups.setdefault(_class(at.node), []).append(at)
    return list(groups.values())


def _class(node: Node) -> tuple[object, ...]:
    if node.kind in ("array", "map"):
        return node.kind, *_class(node.items[0].value)
    if node.kind in ("record", "union", "enum"):
        return (node.kind,)
    if node.logical == "decimal":
        return node.kind, "decimal", node.size, node.scale
    if node.kind in _WIDTHS and not node.logical:
        return ("number",)
    return (node.kind, node.size, "" if node.kind == "string" else node.logical)


def _plain(node: Node) -> Json:
    """Avro's JSON of a type that holds no other, with the logical types that Spark turns into values."""
    more: dict[str, Any] = {"logicalType": node.logical} if node.logical and node.logical != "uuid" else {}
    if node.logical == "decimal":
        more |= {"precision": node.precision, "scale": node.scale}
    match node.kind:
        case "enum":
            return {"type": "enum", "symbols": list(node.symbols)}
        case "fixed":
            return {"type": "fixed", "size": node.size, **more}
    return {"type": node.kind, **more} if more else node.kind


def _written(node: Node) -> Json:
    """Of a number in two widths, the union that it is."""
    return [each.kind for each in node.items] if node.items else _plain(node)


def _as_written(node: Node, built: Json) -> Json:
    """With null where the writer has it."""
    if node.kind != "union":
        return built
    others = iter(built if isinstance(built, list) else [built])
    return ["null" if each.kind == "null" else next(others) for each in node.items]


def _has_null(node: Node) -> bool:
    """Where no writer has null, none is read: asking for it with each value takes time."""
    return node.kind == "null" or any(each.kind == "null" for each in node.items if node.kind == "union")


def _nullable(built: Json) -> Json:
    return ["null", *built] if isinstance(built, list) else ["null", built]


def _applied(convert: Convert | None, sql: str) -> str:
    return convert(sql) if convert else sql


def _of(name: str, convert: Convert | None) -> Convert:
    return lambda sql: _applied(convert, f"{sql}.{identifier(name)}")


def _column(found: Sequence[tuple[str, Convert | None]], type_: Type) -> Convert:
    """A column from where the reader has it: of several places one is set."""
    ways = [_of(called, convert) for called, convert in found]
    if len(ways) == 1:
        return ways[0]
    return lambda sql: f"coalesce({', '.join(f'CAST({way(sql)} AS {type_.sql})' for way in ways)})"


def _made(sql: str, columns: Sequence[tuple[str, str]]) -> str:
    parts = ", ".join(f"{literal(name)}, {column}" for name, column in columns)
    return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({parts}) END"


def _struct(columns: Sequence[tuple[str, Convert]]) -> Convert:
    return lambda sql: _made(sql, [(name, convert(sql)) for name, convert in columns])


def _each(kind: str, variable: str, convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    if kind == "array":
        return lambda sql: f"transform({sql}, {variable} -> {convert(variable)})"
    return lambda sql: f"transform_values({sql}, (k_{variable}, {variable}) -> {convert(variable)})"


def _element(type_: Type) -> Type:
    return type_.element if isinstance(type_, types.Array) else type_.value if isinstance(type_, types.Map) else type_


def _cast(node: Node, type_: Type) -> Convert | None:
    """From what Spark makes of the type to the column's."""
    if node.kind == "fixed" and node.logical == "uuid":
        groups = ", '-', ".join(f"substr(lower(hex({{0}})), {at}, {length})" for at, length in _UUID)
        return lambda sql: f"CASE WHEN {sql} IS NOT NULL THEN concat({groups.format(sql)}) END"
    return None if node.type == type_ else lambda sql: f"CAST({sql} AS {type_.sql})"


_UUID = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))  # where the groups of its digits begin, and how long they are
