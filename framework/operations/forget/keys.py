"""The key of a person: values of columns, as they are written and as the table has them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

from framework.base.errors import SluiceError
from framework.base.spelling import did_you_mean, the_names
from framework.base.types import BIGINT, DATE, INT, SMALLINT, STRING, TINYINT, Type
from framework.core.context.context import Context
from framework.plan import Joined, MaskKey, Pipeline, TableSource
from framework.plan.lineage import by_source
from framework.sql import masks

_WHOLE = (TINYINT, SMALLINT, INT, BIGINT)


@dataclass(frozen=True, kw_only=True)
class Key:
    """Columns and their values. `stored` has for each column what the table may have: masked by each of the keys, or as it is."""

    columns: tuple[str, ...]
    given: tuple[str, ...]
    stored: tuple[tuple[str, ...], ...]

    @property
    def combinations(self) -> Iterator[tuple[str, ...]]:
        yield from itertools.product(*self.stored)

    @property
    def words(self) -> str:
        """Without the values, which belong into no log."""
        return ", ".join(f"`{name}`" for name in self.columns)


def of(context: Context, pipeline: Pipeline, written: Mapping[str, str]) -> Key:
    types = {column.name: column.type for column in pipeline.table.columns}
    for name in written:
        if name not in types:
            hint = did_you_mean(name, types, the_names("column", types))
            raise SluiceError("forget-key", f"{pipeline.table.identifier} has no column `{name}`", hint)
    totals = pipeline.table.accumulated
    if totals and not written.keys() <= set(totals.by):
        message = f"a row of {pipeline.table.identifier} is of many persons, unless `by` of its totals tells them apart"
        hint = (
            f"give `--key` for {' or '.join(totals.by)}"
            if totals.by
            else f"`sluice rebuild {pipeline.name}`, once the messages are gone"
        )
        raise SluiceError("forget-key", message, hint)
    for state in pipeline.table.states:
        if not written.keys() <= set(state.columns):
            hint = f"give `--key` for columns among {', '.join(state.columns)}"
            message = f"of deleted rows {pipeline.name} remembers the keys alone, so a person is found by them only"
            raise SluiceError("forget-key", message, hint)
    columns = tuple(sorted(written))
    given = tuple(_text(name, written[name], types[name]) for name in columns)
    stored = tuple(_stored(context, pipeline, name, text) for name, text in zip(columns, given, strict=True))
    return Key(columns=columns, given=given, stored=stored)


def _text(name: str, value: str, type_: Type) -> str:
    """The value as Spark writes it as text."""
    if not value:
        raise SluiceError("forget-key", f"the value of `{name}` is empty", "write COLUMN=VALUE")
    with suppress(ValueError):
        if type_ == STRING:
            return value
        if type_ in _WHOLE:
            return str(int(value))
        if type_ == DATE:
            return date.fromisoformat(value).isoformat()
    wanted = "a text, a whole number or a date" if type_ not in (STRING, *_WHOLE, DATE) else f"{type_}"
    raise SluiceError(
        "forget-key", f"`{name}` is {type_}, and its value is not {wanted}", "take a column that tells persons apart"
    )


def _stored(context: Context, pipeline: Pipeline, name: str, text: str) -> tuple[str, ...]:
    """The texts that a table may have for a value: as it comes from its sources, and masked by its own keys."""
    texts = tuple(dict.fromkeys((text, *_of_sources(context, pipeline, name, text))))
    for at, step in enumerate(pipeline.steps):
        of = step.masks
        if of is None:
            continue
        if name not in [column.name for column in step.columns] or any(
            name in dict(later.assign) for later in pipeline.steps[at + 1 :]
        ):
            hint = "take a column that is there when `mask` comes, or let `mask` come after the step that makes it"
            raise SluiceError("forget-key", f"`{name}` is made after `mask`, and may come from a masked column", hint)
        if (name,) not in of.paths:
            continue
        joined = next((each for each in of.joined if each.column == name), None)
        if joined is None:
            message = f"`{name}` is masked so that different persons can have equal values"
            raise SluiceError("forget-key", message, "take a column that tells persons apart, such as one masked by `hmac`")
        return (*texts, *(_masked(context, joined, key, each) for key in of.keys for each in texts))
    return texts


def _of_sources(context: Context, pipeline: Pipeline, name: str, text: str) -> Iterator[str]:
    """The texts that the tables have, from which the column comes: their pipelines may have masked it."""
    for source, column in by_source(pipeline).get(name, ()):
        if isinstance(source, TableSource):
            for writer in context.plan.pipelines:
                if (writer.table.catalog, writer.table.identifier) == (source.catalog, source.identifier):
                    yield from _stored(context, writer, column, text)


def _masked(context: Context, of: Joined, key: MaskKey, text: str) -> str:
    column = {"column": of.column} if of.does == "encrypt" else {}
    described = masks.description(of.does, [key], number=of.number, **column)
    return str(cast(Any, context.spark)._jvm.sluice.Mask.text(described, text))
