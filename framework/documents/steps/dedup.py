"""Leaves out repeats: rows whose keys have landed before, in any batch and from any partition.

The rows of the table are what the step remembers, so that nothing is kept besides them: a rollback, a rebuild or a deleted row needs no
care of its own. A row that did not land, such as a bad row, has no repeats. Of the rows of one batch the first one by Kafka's timestamp,
partition and offset lands. A row with a null in one of the keys is a bad row.

Cost: of the table only the key columns are read, and of these only the files whose bounds can hold a key of the batch. New keys that grow
with time, such as numbered orders, read little; random keys read the column of the whole table, unless `within` leaves out old files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from framework.base.errors import Problem
from framework.base.types import Array, Map, Struct
from framework.documents.pipeline.landing import Landing
from framework.documents.rows import Resolved, Rows
from framework.language.options import OptionGroup, StepDocument, option
from framework.language.scalars import ColumnName, Duration
from framework.plan import ColumnSql, Fault, Remember
from framework.sql.quote import identifier
from framework.sql.settings import FUNCTIONS

EXAMPLE = """\
columns: {order_id: string, amount: int}
steps:
  - dedup: {keys: [order_id]}
given:
  - {order_id: A1, amount: 1}
  - {order_id: A1, amount: 2}
  - {order_id: A1, amount: 3}
  - {order_id: A2, amount: 4}
expect:
  - {order_id: A1, amount: 1}
  - {order_id: A2, amount: 4}
"""

ADDS = ""
_HASH, _ROW, _NTH, _KEY, _TIME = "_sluice_hash", "_sluice_row", "_sluice_nth", "_sluice_key_", "_sluice_time"
_ORDER = ("_kafka_timestamp", "_kafka_topic", "_kafka_partition", "_kafka_offset", _ROW)
_REPEATS = f"{FUNCTIONS}.repeats"  # `Repeats.java`
_MOST_IN_ONE_TASK = 200_000  # rows that one task compares


@dataclass(frozen=True)
class Written(OptionGroup):
    """The columns by which a repeat is known, and which of the rows lands."""

    keys: tuple[ColumnName, ...] = option(
        "The columns that are equal in a row and its repeats; the table must keep them.",
        example="[order_id]", at_least=1, aka=["key", "by", "columns", "on", "subset"],
    )  # fmt: skip
    keep: Literal["first", "last"] = option(
        "Which of the rows lands: `first` with `write: append`; `last` with `write: upsert` by the same keys, which replaces a row"
        " by a newer one.",
        default="first", example="first",
    )  # fmt: skip
    within: Duration | Literal["forever"] = option(
        "How far the event times of a row and its repeat can be apart, in either direction. A row that is further away lands.",
        default="forever", example="7d", aka=["window", "ttl", "for"],
    )  # fmt: skip


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    written: Written = step.value
    keys = tuple(dict.fromkeys(name for index, name in enumerate(written.keys) if _is_key(name, written, index, rows)))
    names = ", ".join(keys)
    if written.keep == "last":
        return Resolved(
            rows.columns,
            says=(f"the last row of each {names}: the upsert keeps it",),
            landing=lambda landing: _last(written, landing),
        )
    within = None if written.within == "forever" else written.within
    text = written.node.get("within")
    near = "" if within is None or text is None else f", if their times are at most {text.text} apart"
    says = (f"the first row of each {names}; repeats of rows in the table are left out{near}",)
    nulls = {name: ColumnSql(f"{identifier(name)} IS NULL", (name,)) for name in keys}
    faults = tuple(
        Fault("dedup", "null_key", f"`{name}` is null, and it is one of the keys", when=null) for name, null in nulls.items()
    )
    memory = Remember(columns=keys, admit=lambda new, earlier: _admitted(new, earlier, keys, within))
    return Resolved(rows.columns, says=says, faults=faults, effect=memory, landing=lambda landing: _first(written, landing))


def _is_key(name: str, written: Written, index: int, rows: Rows) -> bool:
    column = rows.column(name, written.place("keys", index))
    if column is not None and isinstance(column.type, Map | Array | Struct):
        hint = "take columns with single values; `flatten` makes columns of a struct"
        message = f"`{name}` is {column.type}, by which repeats are not found"
        rows.problems.append(Problem(written.place("keys", index), "bad-key", message, hint))
    return column is not None


def _first(written: Written, landing: Landing) -> Iterator[Problem]:
    """The problems of `keep: first`: the table must keep each row as it landed."""
    if not landing.mode.keeps_rows:
        message = f"`write: {landing.into.write}` does not keep each row as it landed, so its repeats would not be known"
        advice = "`keep: last` with the upsert's own keys; or " if landing.mode.by_key and not landing.mode.versions else ""
        hint = f"{advice}dedup into a table of its own with `write: append`, and read that one with `from: {{table: …}}`"
        yield Problem(
            written.key_place("keep") if written.node.get("keep") else written.place(), "dedup-needs-append", message, hint
        )
    for index, name in enumerate(written.keys):
        if (step := landing.changing(name)) is not None:
            hint = f"move `dedup` behind `{step.name}`"
            message = f"`{step.name}` computes `{name}` after `dedup`, so the table has other values than `dedup` compares"
            yield Problem(written.place("keys", index), "dedup-changed-key", message, hint)
    if step := next((later_step for later_step in landing.later if later_step.each), None):
        message = "`explode` makes several rows of one, and all but the first would be repeats of it"
        hint = "move `dedup` behind `explode`, with a key of the item; or dedup into a table of its own, and explode that"
        yield Problem(step.where, "explode-after-dedup", message, hint)
    if written.within != "forever":
        problem = landing.time_problem(
            "`within`", written.place("within"), missing="within-needs-time", changed="dedup-changed-time"
        )
        yield from [problem] if problem else []


def _last(written: Written, landing: Landing) -> Iterator[Problem]:
    """The problems of `keep: last`: the table must be an upsert by the same keys."""
    if written.within != "forever":
        message = "`within` has no effect with `keep: last`: the upsert compares a row with the table's, however old that is"
        yield Problem(written.key_place("within"), "unused-key", message, "remove `within`")
    if not landing.mode.by_key or landing.mode.versions:
        message = f"`keep: last` replaces the row before, which `write: {landing.into.write}` does not"
        hint = f"`write: upsert` with `keys: [{', '.join(written.keys)}]`, or `keep: first`"
        yield Problem(written.place("keep"), "dedup-needs-upsert", message, hint)
    elif set(written.keys) != set(landing.into.keys):
        message = f"the upsert replaces rows by {', '.join(landing.into.keys)}, not by {', '.join(written.keys)}"
        hint = f"`keys: [{', '.join(landing.into.keys)}]`, or remove `dedup`: the upsert keeps the newest row of each key"
        yield Problem(written.place("keys"), "dedup-needs-upsert", message, hint)


def _admitted(new: Any, earlier: Any, keys: tuple[str, ...], within: int | None) -> Any:
    """Returns the rows that are no repeats. Only rows with the same hash, which are few, are compared by their keys."""
    values = [earlier.value(name) for name in keys]
    batch, hashes = earlier.kept(new.selectExpr("*", _hash(values), f"monotonically_increasing_id() AS {_ROW}"), _HASH)
    doubtful_hashes, landed_count = hashes.repeated(), 0
    landed_rows = earlier.near(batch, keys, within)
    if landed_rows is not None:
        columns = list(map(identifier, keys))
        landed_rows = landed_rows.selectExpr(*_named(columns), _hash(columns), *_time(earlier, within))
        landed_rows, landed_hashes = earlier.kept(landed_rows.where(hashes.has(_HASH)), _HASH)
        doubtful_hashes, landed_count = doubtful_hashes.and_also(landed_hashes), len(landed_hashes)
    if not len(doubtful_hashes):
        return batch.drop(_HASH, _ROW)
    order = [name for name in _ORDER if name in batch.columns]
    doubtful_rows = batch.where(doubtful_hashes.has(_HASH)).selectExpr(*_named(values), *order, *_time(earlier, within))
    if landed_rows is not None:
        doubtful_rows = doubtful_rows.unionByName(landed_rows.drop(_HASH), allowMissingColumns=True)
    if hashes.among(doubtful_hashes) + landed_count <= _MOST_IN_ONE_TASK:  # all in one task, so that no other exchange is needed
        doubtful_rows = doubtful_rows.repartition(1)
    names = [f"{_KEY}{index}" for index in range(len(keys))]
    repeats = earlier.hashes(
        _repeats(doubtful_rows, names, order) if within is None else _close_repeats(doubtful_rows, names, order, within)
    )
    return batch.where(f"NOT {repeats.has(_ROW)}").drop(_HASH, _ROW)


def _hash(values: Iterable[str]) -> str:
    return f"xxhash64({', '.join(values)}) AS {_HASH}"


def _named(values: Iterable[str]) -> Iterator[str]:
    yield from (f"{value} AS {_KEY}{index}" for index, value in enumerate(values))


def _time(earlier: Any, within: int | None) -> Iterator[str]:
    """SQL of a row's time in microseconds."""
    if within is not None:
        yield f"unix_micros({identifier(earlier.time)}) AS {_TIME}"


def _repeats(rows: Any, keys: list[str], order: list[str]) -> Any:
    """The rows whose keys are in the table, or in an earlier row. Rows of the table have no number, and come first."""
    place = f"ORDER BY {_ROW} IS NOT NULL, {', '.join(order)}"
    ranked_rows = rows.selectExpr(_ROW, f"row_number() OVER (PARTITION BY {', '.join(keys)} {place}) AS {_NTH}")
    return ranked_rows.where(f"{_NTH} > 1 AND {_ROW} IS NOT NULL").select(_ROW)


def _close_repeats(rows: Any, keys: list[str], order: list[str], within: int) -> Any:
    """The rows whose keys are in the table, or in an earlier row, at a close time. `Repeats.java` compares the times. Rows of the table
    have no number."""
    from pyspark.sql import functions

    batch_rows = f"sort_array(collect_list(struct({', '.join(order)}, {_TIME})) FILTER (WHERE {_ROW} IS NOT NULL)) AS rows"
    landed_rows = f"collect_list(struct({_TIME})) FILTER (WHERE {_ROW} IS NULL) AS landed"
    grouped_rows = rows.groupBy(*keys).agg(functions.expr(batch_rows), functions.expr(landed_rows))
    judged_rows = f"arrays_zip(rows.{_ROW}, {_REPEATS}(rows.{_TIME}, landed.{_TIME}, {within * 1_000_000}L))"
    return grouped_rows.selectExpr(f"inline({judged_rows}) AS ({_ROW}, repeat)").where("repeat").select(_ROW)
