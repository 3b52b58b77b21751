"""Compare a table with its pipeline's spec: the changes that a run would make, those that need a rebuild, and those that are
impossible.

Limit: a column that is renamed in the spec looks like a new column and a removed one. A schema in the registry can name the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from framework.base.errors import Where
from framework.base.types import INT, SMALLINT, TINYINT, Array, Field, Map, Struct, Type, folded, widens  # fmt: skip
from framework.plan import KAFKA_COLUMNS, KAFKA_TOPIC, Pipeline

_KAFKA = tuple(column.name for column in (KAFKA_TOPIC, *KAFKA_COLUMNS))

Path = tuple[str, ...]  # fields of structs by name, elements of arrays as `element`, parts of maps as `key` and `value`
Kind = Literal[
    "create", "add", "widen", "drop", "alias", "rename", "narrow", "retype", "schema", "partition_by", "sort_by", "format_version", "write"
]  # fmt: skip

HINTS: dict[Kind, str] = {
    "add": "write `schema_changes: {add: allow}`, or remove the column from the spec",
    "widen": "write `schema_changes: {widen: allow}`, or write the type that the table has",
    "drop": "write `schema_changes: {drop: keep}`, or put the column back into the spec",
    "alias": "write `schema_changes: {rename: allow}`, which renames the column and keeps its data",
    "schema": "write `schema_changes: {narrow: allow}` for a narrower type, or register a schema that fits",
    "rename": "write the name that the table has",
    "narrow": "write the type that the table has, or a new column",
    "retype": "write the type that the table has, or a new column",
    "write": "write `into` as it was before",
    "format_version": "write the `format_version` that the table has, or the name of another table",
}


@dataclass(frozen=True, kw_only=True)
class TableNow:
    """The current state of a table."""

    columns: tuple[Field, ...]
    partition_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    format_version: int
    owner: str | None
    accepted: frozenset[str] = frozenset()  # keys of refused changes that a person accepted
    words: str = ""  # the `Table.words` that the table's rows were written with


@dataclass(frozen=True)
class Change:
    """One difference. For an allowed change, `what` is what a run does; else the reason of the refusal. Only changes of columns have a
    path, with the table's names. `rebuild` is the pipeline whose rebuild applies a refused change. `accepts` is the effect of
    accepting the change, and `key` is stored when a person accepts it."""

    kind: Kind
    what: str
    where: Where
    _: KW_ONLY
    allowed: bool
    path: Path = ()
    old: Type | None = None
    new: Type | None = None
    rebuild: str = ""
    to: str = ""  # the name that an `alias` gives
    accepts: str = ""
    key: str = ""

    @property
    def hint(self) -> str:
        if self.allowed:
            return ""
        inside = self.kind == "drop" and len(self.path) > 1
        hint = "put the field back into the spec, or write a new column" if inside else HINTS[self.kind]
        return f"{hint}; `sluice rebuild {self.rebuild}` rebuilds the table from the spec" if self.rebuild else hint

    def __str__(self) -> str:
        return f"{self.what} ({'no longer in the spec' if self.kind == 'drop' and self.allowed else self.where})"


def changes(pipeline: Pipeline, existing: TableNow | None) -> tuple[Change, ...]:
    """All differences; none if the table matches the spec."""
    if existing is None:
        return (Change("create", f"creates table {pipeline.table.identifier}", _option(pipeline, "table"), allowed=True),)
    takeover = "takes over the table, whose rows stay"
    adoption = (
        [Change("create", takeover, _option(pipeline, "adopt"), allowed=True)]
        if pipeline.table.adopt and not existing.owner
        else []
    )
    planned = Struct(tuple(Field(column.name, stored(column.type)) for column in pipeline.table.columns))
    renames = {(path, new_name) for column in pipeline.table.columns for path, new_name in column.renamed}
    differences = _inside((), Struct(existing.columns), planned, renames)
    column_changes = [_column(pipeline, existing, *difference) for difference in differences]
    return (*adoption, *column_changes, *_schemas(pipeline, existing), *_layout(pipeline, existing))


def refusal_text(refused: Iterable[Change]) -> str:
    """All refused changes as one text, each with its place in the specs."""
    return "; ".join(f"{change.what} ({change.where})" for change in refused)


def hint(refused: Iterable[Change], all_changes: Iterable[Change], pipeline: str) -> str:
    """The hint for refused changes. `sluice accept` accepts all changes that a run refuses, so it is offered only if that is possible."""
    hints = dict.fromkeys(change.hint for change in refused)
    all_changes = tuple(all_changes)
    if acceptable(all_changes):
        effects = "; ".join(dict.fromkeys(change.accepts for change in all_changes if not change.allowed))
        hints[f"or `sluice accept {pipeline}`, which {effects}"] = None
    return "; ".join(hints)


def renamed_columns(all_changes: Iterable[Change]) -> dict[str, str]:
    """The new names of columns that are renamed in place, by the old ones."""
    return {change.path[0]: change.to for change in all_changes if change.kind == "alias" and len(change.path) == 1}


def acceptable(all_changes: Iterable[Change]) -> bool:
    """Whether `sluice accept` can accept all changes that a run refuses."""
    return all(change.accepts for change in all_changes if not change.allowed)


def stored(type_: Type) -> Type:
    """The type in Iceberg, which has no integers below 32 bits."""
    if isinstance(type_, Array):
        return Array(stored(type_.element))
    if isinstance(type_, Map):
        return Map(stored(type_.key), stored(type_.value))
    if isinstance(type_, Struct):
        return Struct(tuple(Field(field.name, stored(field.type)) for field in type_.fields))
    return INT if type_ in (TINYINT, SMALLINT) else type_


_Difference = tuple[Kind, Path, Type | None, Type | None, str]
_Renamed = Set[tuple[Path, str]]  # the path with the old name, and the new name


def _differences(path: Path, old: Type, new: Type, renames: _Renamed, current_path: Path) -> Iterator[_Difference]:
    """The differences between two types. `current_path` is the path with current names, without `element`, `key` and `value`."""
    if isinstance(old, Struct) and isinstance(new, Struct):
        yield from _inside(path, old, new, renames, current_path)
    elif isinstance(old, Array) and isinstance(new, Array):
        yield from _differences((*path, "element"), old.element, new.element, renames, current_path)
    elif isinstance(old, Map) and isinstance(new, Map):
        if old.key != new.key:
            yield "retype", (*path, "key"), old.key, new.key, ""  # Iceberg changes no key
        yield from _differences((*path, "value"), old.value, new.value, renames, current_path)
    elif old != new:
        yield "widen" if widens(old, new) else "narrow" if widens(new, old) else "retype", path, old, new, ""


def _inside(path: Path, old: Struct, new: Struct, renames: _Renamed, current_path: Path = ()) -> Iterator[_Difference]:
    old_types = {field.name: field.type for field in old.fields}
    used_names = set()
    for field in new.fields:
        old_field = old.field(field.name)
        old_name = next(
            (name for name in old_types if ((*current_path, name), field.name) in renames and new.field(name) is None), None
        )
        if field.name in old_types:
            yield from _differences((*path, field.name), old_types[field.name], field.type, renames, (*current_path, field.name))
        elif old_field is not None:
            yield "rename", (*path, old_field.name), old_field.type, field.type, ""
        elif old_name is not None and old_name not in used_names:
            used_names.add(old_name)
            yield "alias", (*path, old_name), old_types[old_name], field.type, field.name
            yield from _differences((*path, old_name), old_types[old_name], field.type, renames, (*current_path, field.name))
        else:
            yield "add", (*path, field.name), None, field.type, ""
    for field in old.fields:
        if new.field(field.name) is None and field.name not in used_names:
            yield "drop", (*path, field.name), field.type, None, ""


def _column(
    pipeline: Pipeline, existing: TableNow, kind: Kind, path: Path, old: Type | None, new: Type | None, new_name: str
) -> Change:
    policy = pipeline.table.schema_changes
    policies = {"add": policy.add, "widen": policy.widen, "drop": policy.drop, "alias": policy.rename, "narrow": policy.narrow}
    # Spark writes null where a whole column is missing, not where a field inside of one is.
    is_possible = kind in policies and not (kind == "drop" and len(path) > 1)
    key = f"{kind}:{'.'.join(path)}"
    allowed = is_possible and (policies[kind] != "refuse" or key in existing.accepted)
    effect = _does(kind, path, old, new, new_name) if is_possible else ""
    description = effect if allowed else _refuses(kind, path, old, new, new_name)
    needs_rebuild = kind in ("rename", "narrow", "retype") or (kind == "drop" and len(path) > 1 and policy.drop == "keep")
    rebuild = pipeline.name if needs_rebuild and not allowed else ""
    return Change(
        kind,
        description,
        place(pipeline, new_name if len(path) == 1 and new_name else path[0]),
        allowed=allowed,
        path=path,
        old=old,
        new=new,
        rebuild=rebuild,
        to=new_name,
        accepts=effect,
        key=key,
    )


def _schemas(pipeline: Pipeline, existing: TableNow) -> Iterator[Change]:
    """The refused versions of schemas in the registry."""
    narrow = pipeline.table.schema_changes.narrow == "allow"
    for topic in pipeline.topics:
        for registered in topic.registered:
            for id_, kind, description in registered.refused:
                key = f"schema:{topic.name}:{id_}"
                if key in existing.accepted or (kind == "narrow" and narrow):
                    continue
                effect = "keeps the column's type" if kind == "narrow" else f"makes a bad row of each message of schema {id_}"
                yield Change(
                    "schema", f"`{registered.subject}`: {description}", topic.where, allowed=False, accepts=effect, key=key
                )


def _does(kind: Kind, path: Path, old: Type | None, new: Type | None, new_name: str) -> str:
    name = ".".join(path)
    if kind == "add":
        return f"adds column {name} {new}"
    if kind == "alias":
        return f"renames {name} to {new_name}"
    if kind == "narrow":
        return f"keeps {name} {old}, which holds {new}"
    return f"widens {name} from {old} to {new}" if kind == "widen" else f"keeps {name} {old}, null in new rows"


def _refuses(kind: Kind, path: Path, old: Type | None, new: Type | None, new_name: str) -> str:
    name = ".".join(path)
    if kind == "alias":
        return f"`{name}` is `{new_name}` in the newest schema, and the spec says `rename: refuse`"
    if kind == "add":
        return f"`{name}` {new} is new in the spec, which says `add: refuse`"
    if kind == "drop":
        reason = "which says `drop: refuse`" if len(path) == 1 else "and this version keeps no field inside of another column"
        return f"`{name}` {old} is no longer in the spec, {reason}"
    if kind == "rename":
        return f"`{name}` has another case in the spec, and tables ignore case"
    reason = {"widen": ", and `widen: refuse`", "narrow": ", which does not hold all of its values"}.get(kind, "")
    return f"`{name}` is {old}, the spec says {new}{reason}"


def _layout(pipeline: Pipeline, existing: TableNow) -> Iterator[Change]:
    table = pipeline.table
    if existing.words != table.words:
        old_words, new_words = existing.words or "a row per message", table.words or f"`write: {table.write.name}`"
        description = f"the table has {old_words}, the spec says {new_words}"
        yield Change("write", description, _option(pipeline, "write"), allowed=False, rebuild=pipeline.name)
    partitions = tuple(map(str, table.partition_by))
    rewrites_all = table.write.whole  # then a run writes all files
    suffix = "" if rewrites_all else f"; existing files keep their layout until `sluice rebuild {pipeline.name}`"
    if set(existing.partition_by) != set(partitions):  # the order of partitions does not matter
        description = f"new files are partitioned by {_listed(partitions)}{suffix}"
        yield Change("partition_by", description, _option(pipeline, "partition_by"), allowed=True)
    if existing.sort_by != table.sort_by:
        description = f"new files are sorted by {_listed(table.sort_by)}{suffix}"
        yield Change("sort_by", description, _option(pipeline, "sort_by"), allowed=True)
    if existing.format_version < table.format_version:
        description = f"raises Iceberg's format from {existing.format_version} to {table.format_version}"
        yield Change("format_version", description, _option(pipeline, "format_version"), allowed=True)
    elif existing.format_version > table.format_version:
        description = (
            f"a table's format cannot go down: the table has {existing.format_version}, the spec says {table.format_version}"
        )
        yield Change("format_version", description, _option(pipeline, "format_version"), allowed=False)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


def place(pipeline: Pipeline, name: str) -> Where:
    """The line of the specs that defines the column; for a removed column, the option that decides whether it stays."""
    column_place = next((column.where for column in pipeline.table.columns if folded(column.name) == folded(name)), None)
    # A project's own step may leave out the place.
    step = next(
        (step for step in reversed(pipeline.steps) if any(name == assigned_name for assigned_name, _ in step.assign)), None
    )
    return column_place or (step.where if step else _option(pipeline, "kafka_columns" if name in _KAFKA else "schema_changes"))


def _option(pipeline: Pipeline, name: str) -> Where:
    return pipeline.table.places.get(name, pipeline.where)
