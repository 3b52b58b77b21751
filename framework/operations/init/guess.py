"""The format of the messages of a sample, of those whose columns a spec gives, and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framework.core.kafka.newest_messages import Sample
from framework.documents.topic.written import Key
from framework.messages.formats import Given, Guess, Single, every
from framework.operations.init.infer import Column
from framework.operations.init.lines import Line, comment_name, of_column, scalar
from framework.plan import Changes, Of

MOSTLY = 0.9  # of the messages with a value
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Guessed:
    """A format, and the rows of the messages that are of it."""

    name: str
    guess: Guess
    changes: Changes | None
    rows: tuple[Row, ...]

    def others(self, sample: Sample) -> int:
        """The number of messages with a value that are of no such format."""
        return sum(message.value is not None and self.guess.rows(message.value) is None for message in sample.messages)


def guesses(of: Of) -> Mapping[str, tuple[Given, Guess]]:
    """Changes first: their messages are also plain ones."""
    formats = {name: each for name, each in every(of).items() if isinstance(each, Given)}
    in_order = sorted(formats.items(), key=lambda each: each[1].changes is None)
    return {name: (each, each.guess) for name, each in in_order if each.guess}


def of_values(values: Sequence[bytes]) -> Guessed | None:
    for name, (format_, guess) in guesses("value").items():
        lists = [rows for value in values if (rows := guess.rows(value)) is not None]
        rows = tuple(row for each in lists for row in each)
        if rows and len(lists) >= MOSTLY * len(values):
            return Guessed(name, guess, format_.changes, rows)
    return None


def of_no_columns(values: Sequence[bytes], of_a_registry: bool) -> str:
    """The format of one column that all of them have, the narrowest one."""
    singles = {name: each for name, each in every("value").items() if isinstance(each, Single)}
    return next(
        name
        for name in sorted(singles, key=lambda name: singles[name].wrong is None)
        if _fits(singles[name], values) and not (of_a_registry and singles[name].wrong)
    )


def of_keys(keys: Sequence[bytes]) -> tuple[str, str]:
    """The format of one column that all of them have, and why it is not the default."""
    singles = {name: each for name, each in every("key").items() if isinstance(each, Single)}
    in_order = sorted(singles, key=lambda name: (name != Key().format, singles[name].wrong is None))
    name = next(name for name in in_order if _fits(singles[name], keys))
    return name, "" if name == Key().format else singles[name].guessed


def _fits(single: Single, data: Iterable[bytes]) -> bool:
    return single.wrong is None or all(single.wrong(each) is None for each in data)


def row_keys(guessed: Guessed, sample: Sample, columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns that the keys of changes name; none where they do not, or where not all of them are columns."""
    keys = [guessed.guess.key(message.key) for message in sample.messages if message.key is not None]
    fields = dict.fromkeys(name for key in keys if key is not None for name in key)
    whole = bool(keys) and all(key is not None and set(key) == set(fields) for key in keys)
    return tuple(fields) if whole and {column.name for column in columns}.issuperset(fields) else ()


def change_lines(guessed: Guessed, columns: Sequence[Column], out: Mapping[str, str], sample: Sample) -> Iterator[Line]:
    assert guessed.changes is not None
    of = len(sample.messages)
    other = guessed.others(sample)
    tombstones = sum(message.value is None for message in sample.messages)
    yield Line(f"value: {guessed.name}", [
        *([f"{tombstones:,} of {of:,} messages are tombstones, which are left out"] if tombstones else []),
        *([f"{other:,} of {of:,} messages are {guessed.guess.are_not}, which makes bad rows"] if other else []),
    ])  # fmt: skip
    own = " and ".join(f"`{column.name}`" for column in guessed.changes.columns)
    yield Line(f"# The columns are those of the table's rows; {own} come behind them.")
    yield Line("columns:")
    yield from map(of_column, columns)
    yield from (Line(f"  # {comment_name(name)} is left out: {why}") for name, why in out.items())


def write_options(row_keys: Sequence[str]) -> str:
    """The write mode for a table of changes, as options of `into`."""
    return f", write: upsert, keys: [{', '.join(map(scalar, row_keys))}]" if row_keys else ""


def pipeline_lines(row_keys: Sequence[str]) -> Iterator[Line]:
    if not row_keys:
        yield Line("# A row for each change. One row per key: `write: upsert, keys: […]` with the columns that name a row;")
        yield Line("# the messages' keys do not say which these are.")
