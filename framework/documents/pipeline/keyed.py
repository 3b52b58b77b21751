"""Rows with keys: what `write: upsert` and `write: history` need, and which messages delete rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from framework.base.errors import Problem, Where
from framework.base.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, VOID, Array, Map, Struct, Type
from framework.documents.pipeline.row_time import holders
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.documents.pipeline.written_into import Deletes as WrittenDeletes, Into as WrittenInto
from framework.documents.rows import Rows
from framework.documents.write_mode import WriteMode, write_mode
from framework.plan import (
    ALL_ROWS,
    EVENT_TIME,
    FROM_COLUMNS,
    KAFKA_COLUMNS,
    KAFKA_TOPIC,
    OLD,
    AllRows,
    ChangeFormat,
    Column,
    ColumnSql,
    Fault,
    Keyed,
    Step,
    TableChanges,
    Topic,
    Topics,
)
from framework.sql import unsent
from framework.sql.change_messages import changes_of, is_end, is_one_of
from framework.sql.expressions import guarded
from framework.sql.quote import identifier

_TIMES = (TIMESTAMP, TIMESTAMP_NTZ, DATE)
_EVENT_TIME_COLUMN = Column(EVENT_TIME, TIMESTAMP, "The topic's event time, which says which row of a key is newer")


def without_deletes(topic: Topic, into: WrittenInto) -> Topic:
    """Returns the topic with a decoding that makes no bad rows of the messages that `deletes` handles."""
    if into.deletes not in ("tombstones", "ignore"):
        return topic
    has_value = "_sluice_value IS NOT NULL"
    faults = tuple(
        replace(fault, when=f"{has_value} AND ({fault.when})") if fault.stage == "value" else fault
        for fault in topic.decoding.faults
        if fault.code != "null_value"
    )
    keep = topic.decoding.keep
    if into.deletes == "ignore":
        is_row = f"NOT {is_end(topic, topic.changes)}" if topic.changes else has_value
        keep = f"{is_row} AND ({keep})" if keep else is_row
    return replace(topic, decoding=replace(topic.decoding, faults=faults, keep=keep))


def plan_keys(
    spec: WrittenPipeline, source: Topics | TableChanges | None, steps: tuple[Step, ...], rows: Rows
) -> tuple[Keyed | AllRows, tuple[Step, ...]]:
    """Returns the rules for rows with keys, and the step that makes a row without a key a bad row. `rows` are the rows after all
    other steps. After a problem was reported, there are no rules."""
    into, table = spec.into, source if isinstance(source, TableChanges) else None
    topics = source.topics if source else ()
    problems_before = len(rows.problems)
    keys = tuple(name for index, name in enumerate(into.keys) if _key(name, into.place("keys", index), into.keys[:index], rows))
    tombstones = into.deletes == "tombstones" and not table
    if tombstones:
        rows.problems.extend(_tombstones(into, keys, topics, steps))
    order, *tie = _order_of_table(spec, table, rows) if table else _order(spec, topics, steps, rows)
    if tombstones and into.order_by and not _has_value(into.order_by, topics, steps):
        rows.problems.extend(_without_order(into, rows))
    write = write_mode(into.write)
    rows.problems.extend(write.problems(into, order, topics, rows))
    changes = changes_of(topics) if into.deletes != "ignore" else None
    ends = "_sluice_value IS NULL" if tombstones else is_end(topics[0], changes) if changes else None
    delete_flag = "_sluice_tombstone" if ends else OLD if table and table.rows_change and into.deletes != "ignore" else ""
    deletes, faults = _deletes(into, delete_flag, rows)
    if into.node.get("remember_deletes_for") is not None and not deletes and len(rows.problems) == problems_before:
        hint = "say what deletes, such as `deletes: tombstones`, or remove it"
        message = "`remember_deletes_for` has no effect where nothing is deleted"
        rows.problems.append(Problem(into.key_place("remember_deletes_for"), "unused-key", message, hint))
    if len(rows.problems) > problems_before or not keys or source is None:
        return ALL_ROWS, ()
    keyed = Keyed(
        keys=keys, order=tuple(dict.fromkeys([order, *tie])), versions=write.versions, deletes=deletes, ends=ends,
        truncates=is_one_of(topics[0], changes.truncates) if changes and len(topics) == 1 else None,
        remember=into.remember_deletes_for, says=_says(into, ends, changes, table if delete_flag == OLD else None),
        stands_in=tombstones and not _has_value(order, topics, steps),
        unsent=unsent.carried(topics[0], steps, rows.columns, (*keys, order)) if changes_of(topics) else (),
        partition=() if into.order_by else _partition((order, *tie)),
    )  # fmt: skip
    faults = (*_of_order(keyed, rows), *_of_keys(keyed), *faults)
    says = (f"{', '.join(keys)}: not null, else a bad row",)
    step = Step(name="keys", where=into.place("keys"), says=says, faults=faults, columns=rows.columns, of_tombstones=True)
    return keyed, (step,)


def _partition(order: Iterable[str]) -> tuple[str, ...]:
    """Returns the columns that name the partition of a row's message, if its offset is known."""
    names = [column.name for column in (KAFKA_TOPIC, *KAFKA_COLUMNS)]
    topic, number, *place = names
    return tuple(name for name in (topic, number) if name in order) if {number, *place} <= {*order} else ()


def refused(topic: Topic, keyed: Keyed, steps: Sequence[Step]) -> Topic:
    """Returns the topic with faults for messages that cannot be applied to rows with keys."""
    changes = topic.changes
    if not changes:
        return topic
    topic = unsent.refused(topic, steps, keyed.deletes)
    if keyed.truncates or not keyed.ends:
        return topic
    message = "one of several tables was truncated, and which rows were its own is not known: read each by a pipeline of its own"
    truncated = Fault("value", "truncated", message, when=is_one_of(topic, changes.truncates))
    return replace(topic, decoding=replace(topic.decoding, faults=(*topic.decoding.faults, truncated)))


def columns(keyed: Keyed, write: WriteMode, rows: Rows) -> tuple[Column, ...]:
    """Returns the columns of the table, including those that say which row is newer."""
    event_time = (_EVENT_TIME_COLUMN,) if EVENT_TIME in keyed.order else ()
    added_columns = (*event_time, *rows.kafka)
    return (*rows.columns, *write.columns(keyed, (*rows.columns, *added_columns)), *added_columns)


def _says(into: WrittenInto, ends: str | None, changes: ChangeFormat | None, source: TableChanges | None) -> str:
    causes = [f"a row that is deleted in {source.identifier}"] if source else []
    causes += [f"a row with {into.deletes.when}"] if isinstance(into.deletes, WrittenDeletes) else []
    if ends:
        ops = f"a change with the op {' or '.join((*changes.deletes, *changes.truncates))}" if changes else ""
        causes.append("a message without a value" if into.deletes == "tombstones" else ops)
    return " or ".join(causes)


def _of_keys(keyed: Keyed) -> Iterator[Fault]:
    needs = " AND NOT _sluice_truncates" if keyed.truncates else ""
    for name in keyed.keys:
        null = ColumnSql(f"{identifier(name)} IS NULL{needs}", (name,))
        yield Fault("keys", "null_key", f"`{name}` is null, and it is one of the keys", when=null)


def _of_order(keyed: Keyed, rows: Rows) -> Iterator[Fault]:
    """The faults of rows that have no place in the order of the rows of their key."""
    order = keyed.order[0]
    if order in (column.name for column in rows.kafka):
        return
    if keyed.versions:
        needs = "NOT _sluice_tombstone AND " if keyed.stands_in else ""
        null = ColumnSql(f"{needs}{identifier(order)} IS NULL", (order,))
        yield Fault("keys", "no_order", f"`{order}` is null, and it says since when the row is so", when=null)
    elif keyed.ends and not keyed.stands_in:
        message = f"a delete without `{order}`, which says what it is newer than: order by Kafka's timestamp, as is the default"
        yield Fault("keys", "no_order", message, when=ColumnSql(f"_sluice_tombstone AND {identifier(order)} IS NULL", (order,)))


def _key(name: str, where: Where, earlier_keys: Iterable[str], rows: Rows) -> bool:
    column = rows.column(name, where)
    if column is None:
        return False
    if name in earlier_keys:
        rows.problems.append(Problem(where, "duplicate-column", f"`{name}` is here twice", "name each column once"))
    elif not _comparable(column.type):
        message = f"`{name}` is {column.type}, which cannot be compared"
        rows.problems.append(Problem(where, "bad-key", message, "take a column that holds no map"))
    return True


def _comparable(type_: Type) -> bool:
    match type_:
        case Map():
            return False
        case Array():
            return _comparable(type_.element)
        case Struct():
            return all(_comparable(field.type) for field in type_.fields)
    return True


def _tombstones(into: WrittenInto, keys: Iterable[str], topics: tuple[Topic, ...], steps: tuple[Step, ...]) -> Iterable[Problem]:
    where = into.place("deletes")
    if changes_of(topics):
        hint = "its envelopes say what is deleted: remove `deletes`"
        yield Problem(where, "bad-deletes", "Debezium's tombstones say nothing that its envelopes have not said", hint)
        return
    for name in keys:
        if topics and not _has_value(name, topics, steps, headers=False):
            in_key = any(name in topic.key_columns for topic in topics)
            why = "a step computes it again" if in_key else "it comes from the message's value"
            hint = (
                "make the step give it another name"
                if in_key
                else f"read it from the message's key, `key: {{format: …, as: {name}}}`, or write `deletes: {{when: …}}`"
            )
            yield Problem(where, "tombstones-need-key", f"a tombstone has no value, and so no `{name}`: {why}", hint)


def _has_value(name: str, topics: tuple[Topic, ...], steps: tuple[Step, ...], headers: bool = True) -> bool:
    """Whether a message without a value still has a value for the column."""
    if _is_assigned(name, steps):
        return False
    kafka = name in (column.name for column in (KAFKA_TOPIC, *KAFKA_COLUMNS))
    return kafka or all(name in (*topic.key_columns, *(topic.headers if headers else ())) for topic in topics)


def _is_assigned(name: str, steps: Iterable[Step]) -> bool:
    return any(name not in holders((name,), step) and any(column.name == name for column in step.columns) for step in steps)


def _without_order(into: WrittenInto, rows: Rows) -> Iterable[Problem]:
    """A problem if rows may lack the column of `order_by` and nothing stands in for it, as Kafka's time does for a time."""
    column = next((candidate for candidate in rows.columns if candidate.name == into.order_by), None)
    if column is not None and column.type not in (*_TIMES, VOID):
        hint = "order by a time, for which Kafka's own stands in, or by a column of the key; or write `deletes: {when: …}`"
        message = f"a tombstone has no value, and so no `{column.name}` that says what it is newer than"
        yield Problem(into.place("order_by"), "tombstones-need-order", message, hint)


def _order_of_table(spec: WrittenPipeline, source: TableChanges, rows: Rows) -> list[str]:
    """Returns the columns that order the rows of a key. If rows of the source change, its commits say which row is newer."""
    tie = [column.name for column in rows.kafka if column in FROM_COLUMNS]
    if source.rows_change:
        return tie
    if spec.into.order_by:
        return [_asked(spec.into, rows), *tie]
    time_names = [column.name for column in source.kafka if column == KAFKA_COLUMNS[-1]]
    if not time_names and write_mode(spec.into.write).versions:
        message = f"{source.identifier} has no `{KAFKA_COLUMNS[-1].name}`, which would say since when a row is valid"
        rows.problems.append(
            Problem(spec.into.place("write"), "missing-key", message, "add `order_by:` with a column that holds a time")
        )
    place_names = [column.name for column in (*KAFKA_COLUMNS[:2], KAFKA_TOPIC) if time_names and column in source.kafka]
    return [*time_names, *place_names, *tie]


def _order(spec: WrittenPipeline, topics: tuple[Topic, ...], steps: tuple[Step, ...], rows: Rows) -> list[str]:
    """Returns the columns that order the rows of a key, the deciding one first."""
    tie = [column.name for column in (*KAFKA_COLUMNS[2:], *KAFKA_COLUMNS[:2])]
    tie += [KAFKA_TOPIC.name] if KAFKA_TOPIC in rows.kafka else []
    return [_first(spec, topics, steps, rows), *tie]


def _first(spec: WrittenPipeline, topics: tuple[Topic, ...], steps: tuple[Step, ...], rows: Rows) -> str:
    into = spec.into
    if into.order_by:
        return _asked(into, rows)
    time_column = topics[0].event_time if topics else None
    column_types = {column.name: column.type for column in rows.columns}
    if time_column is None or changes_of(topics):  # a connector sends changes of one key in their order
        return "_kafka_timestamp"
    holds_time = column_types.get(time_column) == TIMESTAMP and not _is_assigned(time_column, steps)  # a mask makes it coarser
    return time_column if holds_time else EVENT_TIME


def _asked(into: WrittenInto, rows: Rows) -> str:
    """Returns the column of `order_by`, and reports a problem if it cannot order rows."""
    name = into.order_by or ""
    column = rows.column(name, into.place("order_by"), kafka=True)
    if column is not None and not _comparable(column.type):
        message = f"`{column.name}` is {column.type}, which has no order"
        rows.problems.append(Problem(into.place("order_by"), "bad-order", message, "take a column that holds no map"))
    return name


def _deletes(into: WrittenInto, delete_flag: str, rows: Rows) -> tuple[ColumnSql | None, tuple[Fault, ...]]:
    """Returns SQL that is true for a row that deletes, and the faults of that SQL."""
    if not isinstance(into.deletes, WrittenDeletes) or "when" in into.deletes.gaps:
        return ColumnSql(delete_flag, ()) if delete_flag else None, ()
    checked = guarded(
        rows.unguarded_condition(into.deletes.when, into.deletes.place("when")), rows.quiet
    )  # the write reads it, too
    condition = " OR ".join(filter(None, (delete_flag, f"coalesce({checked.sql}, false)")))
    return ColumnSql(condition, checked.sql.reads), rows.faults("keys", into.deletes.when, checked)
