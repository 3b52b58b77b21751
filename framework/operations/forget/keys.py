"""The key of a person: values of columns, as they are written and as the table has them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

from framework.base.errors import SluiceError
from framework.base.spelling import did_you_mean, the_names
from framework.base.types import BIGINT, DATE, INT, SMALLINT, STRING, TINYINT, Type
from framework.core.context.context import Context
from framework.plan import Joined, MaskKey, Pipeline, TableChanges
from framework.plan.lineage import by_source
from framework.plan.totals import Totals
from framework.sql import masks
from framework.systems import mask_keys

_WHOLE = (TINYINT, SMALLINT, INT, BIGINT)


@dataclass(frozen=True, kw_only=True)
class PersonKey:
    """Columns and their values. `stored` has for each column the texts that the table may have: masked by each key, or as they are."""

    columns: tuple[str, ...]
    texts: tuple[str, ...]
    stored: tuple[tuple[str, ...], ...]

    @property
    def combinations(self) -> Iterator[tuple[str, ...]]:
        yield from itertools.product(*self.stored)

    @property
    def words(self) -> str:
        """The names of the columns, without the values, which belong in no log."""
        return ", ".join(f"`{name}`" for name in self.columns)


def read_key(context: Context, pipeline: Pipeline, values: Mapping[str, str]) -> PersonKey:
    types = {column.name: column.type for column in pipeline.table.columns}
    for name in values:
        if name not in types:
            hint = did_you_mean(name, types, the_names("column", types))
            raise SluiceError("forget-key", f"{pipeline.table.identifier} has no column `{name}`", hint)
    totals = pipeline.table.rule
    if isinstance(totals, Totals) and not values.keys() <= set(totals.by):
        message = f"a row of {pipeline.table.identifier} is of many persons, unless `by` of its totals tells them apart"
        hint = (
            f"give `--key` for {' or '.join(totals.by)}"
            if totals.by
            else f"`sluice rebuild {pipeline.name}`, once the messages are gone"
        )
        raise SluiceError("forget-key", message, hint)
    for state in pipeline.table.states:
        if not values.keys() <= set(state.columns):
            hint = f"give `--key` for columns among {', '.join(state.columns)}"
            message = f"of deleted rows {pipeline.name} remembers the keys alone, so a person is found by them only"
            raise SluiceError("forget-key", message, hint)
    columns = tuple(sorted(values))
    texts = tuple(_text(name, values[name], types[name]) for name in columns)
    stored = tuple(_stored(context, pipeline, name, text) for name, text in zip(columns, texts, strict=True))
    return PersonKey(columns=columns, texts=texts, stored=stored)


def _text(name: str, value: str, type_: Type) -> str:
    """The text that Spark writes for the value."""
    if not value:
        raise SluiceError("forget-key", f"the value of `{name}` is empty", "write COLUMN=VALUE")
    with suppress(ValueError):
        if type_ == STRING:
            return value
        if type_ in _WHOLE:
            return str(int(value))
        if type_ == DATE:
            return date.fromisoformat(value).isoformat()
    accepted_values = "a text, a whole number or a date" if type_ not in (STRING, *_WHOLE, DATE) else f"{type_}"
    raise SluiceError(
        "forget-key", f"`{name}` is {type_}, and its value is not {accepted_values}", "take a column that tells persons apart"
    )


def _stored(context: Context, pipeline: Pipeline, name: str, text: str) -> tuple[str, ...]:
    """The texts that a table may have for a value: those of its sources, and masked by its own keys."""
    texts = tuple(dict.fromkeys((text, *_of_sources(context, pipeline, name, text))))
    for index, step in enumerate(pipeline.steps):
        mask = step.masks
        if mask is None:
            continue
        if name not in [column.name for column in step.columns] or any(
            name in dict(later_step.assign) for later_step in pipeline.steps[index + 1 :]
        ):
            hint = "take a column that is there when `mask` comes, or let `mask` come after the step that makes it"
            raise SluiceError("forget-key", f"`{name}` is made after `mask`, and may come from a masked column", hint)
        if (name,) not in mask.paths:
            continue
        column_mask = next((candidate for candidate in mask.joined if candidate.column == name), None)
        if column_mask is None:
            message = f"`{name}` is masked so that different persons can have equal values"
            raise SluiceError("forget-key", message, "take a column that tells persons apart, such as one masked by `hmac`")
        if column_mask.does == "encrypt" and _is_replaced(context, mask.keys[0]):
            message = f"`{name}` is encrypted by a key that is replaced, and who comes again by a later key would not be known"
            raise SluiceError("forget-key", message, "take a column that is masked by `hmac`")
        return (*texts, *(masked for stored_text in texts for masked in _masked(context, column_mask, mask.keys, stored_text)))
    return texts


def _of_sources(context: Context, pipeline: Pipeline, name: str, text: str) -> Iterator[str]:
    """The texts for the value in the tables from which the column comes, whose pipelines may have masked it."""
    for source, column in by_source(pipeline).get(name, ()):
        if isinstance(source, TableChanges):
            for writer in context.plan.pipelines:
                if (writer.table.catalog, writer.table.identifier) == (source.catalog, source.identifier):
                    context.provide_keys(writer)
                    yield from _stored(context, writer, column, text)


def _is_replaced(context: Context, key: MaskKey) -> bool:
    secrets = context.plan.secrets
    return key.secret.name in secrets.masking or len(mask_keys.ring(key.secret.name, secrets).suffixes) > 1


def _masked(context: Context, column_mask: Joined, keys: Sequence[MaskKey], text: str) -> Iterator[str]:
    """The texts that a table can have for a value: masked by each key that there was."""
    column = {"column": column_mask.column} if column_mask.does == "encrypt" else {}
    description = masks.description(column_mask.does, keys, number=column_mask.number, **column)
    yield from map(str, cast(Any, context.spark)._jvm.sluice.Mask.texts(description, text))
