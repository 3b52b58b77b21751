"""One row per key: what `write: upsert` needs of the rows, and what messages without a value are to a pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from framework.errors import Problem, Where
from framework.plan.model import EVENT_TIME, KAFKA_COLUMNS, KAFKA_TOPIC, Column, Fault, Step, Topic, Upsert
from framework.plan.rows import Rows, named
from framework.spec import kinds
from framework.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, VOID, Array, Map, Struct, Type

_TIMES = (TIMESTAMP, TIMESTAMP_NTZ, DATE)
_DELETED = "_op = 'd'"
_NOT_SENT = "'__debezium_unavailable_value'"
_OWN = Column(EVENT_TIME, TIMESTAMP, "The topic's event time, which says which row of a key is newer")


def without_value(topic: Topic, into: kinds.Into) -> Topic:
    """The topic, whose messages without a value are no bad rows where `deletes` handles them."""
    if into.deletes not in ("tombstones", "ignore"):
        return topic
    there = "_sluice_value IS NOT NULL"
    faults = tuple(
        replace(fault, when=f"{there} AND ({fault.when})") if fault.stage == "value" else fault
        for fault in topic.decoding.faults
        if fault.code != "null_value"
    )
    keep = topic.decoding.keep
    if into.deletes == "ignore":
        keep = f"{there} AND ({keep})" if keep else there
    return replace(topic, decoding=replace(topic.decoding, faults=faults, keep=keep))


def resolve(
    said: kinds.Pipeline, read: tuple[Topic, ...], steps: tuple[Step, ...], rows: Rows
) -> tuple[Upsert | None, tuple[Step, ...]]:
    """How rows become one per key, and the step by which a row without a key is a bad row. `rows` are those behind the other
    steps. None where it cannot be said, for a reason that has been."""
    into = said.into
    before = len(rows.problems)
    keys = tuple(name for at, name in enumerate(into.keys) if _key(name, into.place("keys", at), into.keys[:at], rows))
    tombstones = into.deletes == "tombstones"
    if tombstones:
        rows.problems.extend(_tombstones(into, keys, read, steps))
    order = _order(said, read, rows)
    if tombstones and into.order_by and not _known(into.order_by, read, steps):
        rows.problems.extend(_without_order(into, rows))
    deletes, faults = _deletes(said, read, rows)
    if into.node.get("remember_deletes_for") is not None and not (deletes or tombstones) and len(rows.problems) == before:
        hint = "say what deletes, such as `deletes: tombstones`, or remove it"
        message = "`remember_deletes_for` means nothing where nothing is deleted"
        rows.problems.append(Problem(into.key_place("remember_deletes_for"), "unused-key", message, hint))
    if len(rows.problems) > before or not keys or not read:
        return None, ()
    tie = [column.name for column in (*KAFKA_COLUMNS[2:], *KAFKA_COLUMNS[:2])]
    tie += [KAFKA_TOPIC.name] if KAFKA_TOPIC in rows.kafka else []
    stands_in = tombstones and not _known(order, read, steps)
    order_ = tuple(dict.fromkeys([order, *tie]))
    upsert = Upsert(keys, order_, deletes, tombstones, into.remember_deletes_for, _says(into, deletes), stands_in)
    faults = (*_of_debezium(read, steps, rows, order), *_of_keys(keys), *faults)
    says = (f"{', '.join(keys)}: not null, else a bad row",)
    return upsert, (Step("keys", into.place("keys"), says, (), None, faults, rows.columns, of_tombstones=True),)


def columns(upsert: Upsert, rows: Rows) -> tuple[Column, ...]:
    """Those of the table: what says which row is newer is among them."""
    own = (_OWN,) if EVENT_TIME in upsert.order else ()
    return (*rows.columns, *own, *rows.kafka)


def _says(into: kinds.Into, deletes: str | None) -> str:
    if isinstance(into.deletes, kinds.Deletes):
        return f"a row with {into.deletes.when}"
    return f"a row with {_DELETED}" if deletes else "a message without a value" if into.deletes == "tombstones" else ""


def _of_keys(keys: Iterable[str]) -> Iterator[Fault]:
    for name in keys:
        yield Fault("keys", "null_key", f"`{name}` is null, and it is one of the keys", f"{named(name)} IS NULL")


def _of_debezium(read: tuple[Topic, ...], steps: tuple[Step, ...], rows: Rows, order: str) -> Iterator[Fault]:
    """What its envelopes say and no row can take."""
    if not _is_debezium(read):
        return
    there = {column.name: column.type for column in rows.columns}
    if "_op" in there:
        yield Fault(
            "keys", "truncated", "the source table was truncated, which this version does not do", "coalesce(_op = 't', false)"
        )
        if order in there:
            message = (
                f"a delete without `{order}`, which says what it is newer than: order by Kafka's timestamp, as is the default"
            )
            yield Fault("keys", "no_order", message, f"coalesce({_DELETED}, false) AND {named(order)} IS NULL")
    for column in read[0].columns:
        if column.type == STRING and there.get(column.name) == STRING and not _made_anew(column.name, steps):
            message = f"the database did not send `{column.name}`, which has not changed: give the table REPLICA IDENTITY FULL"
            yield Fault("keys", "value_not_sent", message, f"coalesce({named(column.name)} = {_NOT_SENT}, false)")


def _key(name: str, where: Where, others: Iterable[str], rows: Rows) -> bool:
    column = rows.column(name, where)
    if column is None:
        return False
    if name in others:
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
            return all(_comparable(each.type) for each in type_.fields)
    return True


def _tombstones(into: kinds.Into, keys: Iterable[str], read: tuple[Topic, ...], steps: tuple[Step, ...]) -> Iterable[Problem]:
    where = into.place("deletes")
    if _is_debezium(read):
        hint = "its envelopes say what is deleted: remove `deletes`"
        yield Problem(where, "bad-deletes", "Debezium's tombstones say nothing that its envelopes have not said", hint)
        return
    for name in keys:
        if read and not _known(name, read, steps, headers=False):
            made = any(name in topic.key_columns for topic in read)
            why = "a step makes it anew" if made else "it comes from the message's value"
            hint = (
                "make the step give it another name"
                if made
                else f"read it from the message's key, `key: {{format: …, as: {name}}}`, or write `deletes: {{when: …}}`"
            )
            yield Problem(where, "tombstones-need-key", f"a tombstone has no value, and so no `{name}`: {why}", hint)


def _known(name: str, read: tuple[Topic, ...], steps: tuple[Step, ...], headers: bool = True) -> bool:
    """Whether a column is known of a message without a value."""
    if _made_anew(name, steps):
        return False
    kafka = name in (column.name for column in (KAFKA_TOPIC, *KAFKA_COLUMNS))
    return kafka or all(name in (*topic.key_columns, *(topic.headers if headers else ())) for topic in read)


def _made_anew(name: str, steps: Iterable[Step]) -> bool:
    return any(name in dict(each.assign) or (each.each is not None and each.each.into == name) for each in steps)


def _is_debezium(read: tuple[Topic, ...]) -> bool:
    """Topics of one pipeline have one format."""
    return bool(read) and read[0].value.startswith("debezium_")


def _without_order(into: kinds.Into, rows: Rows) -> Iterable[Problem]:
    """Of a time, Kafka's own takes its place."""
    column = next((each for each in rows.columns if each.name == into.order_by), None)
    if column is not None and column.type not in (*_TIMES, VOID):
        hint = "order by a time, for which Kafka's own stands in, or by a column of the key; or write `deletes: {when: …}`"
        message = f"a tombstone has no value, and so no `{column.name}` that says what it is newer than"
        yield Problem(into.place("order_by"), "tombstones-need-order", message, hint)


def _order(said: kinds.Pipeline, read: tuple[Topic, ...], rows: Rows) -> str:
    """The column that decides first."""
    into = said.into
    if into.order_by:
        column = rows.column(into.order_by, into.place("order_by"), kafka=True)
        if column is not None and not _comparable(column.type):
            message = f"`{column.name}` is {column.type}, which has no order"
            rows.problems.append(Problem(into.place("order_by"), "bad-order", message, "take a column that holds no map"))
        return into.order_by
    moment = read[0].event_time if read else None
    there = {column.name: column.type for column in rows.columns}
    if moment is None or _is_debezium(read):  # a connector sends changes of one key in their order
        return "_kafka_timestamp"
    return moment if there.get(moment) == TIMESTAMP else EVENT_TIME


def _deletes(said: kinds.Pipeline, read: tuple[Topic, ...], rows: Rows) -> tuple[str | None, tuple[Fault, ...]]:
    """SQL that is true of a row that deletes, and what can be wrong with it."""
    into = said.into
    if isinstance(into.deletes, kinds.Deletes):
        if "when" in into.deletes.gaps:
            return None, ()
        checked = rows.condition(into.deletes.when, into.deletes.place("when"))
        return f"coalesce({checked.sql}, false)", rows.faults("keys", into.deletes.when, checked)
    if into.deletes is None and _is_debezium(read):
        if any(column.name == "_op" for column in rows.columns):
            return f"coalesce({_DELETED}, false)", ()
        hint = "keep `_op`, or write `deletes: {when: …}` or `deletes: ignore`"
        where = into.place("write")
        rows.problems.append(Problem(where, "bad-deletes", "without `_op` nobody knows which rows are deleted", hint))
    return None, ()
