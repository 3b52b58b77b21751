"""The format of a sample's messages, among formats whose columns a spec declares, and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framework.core.kafka.newest_messages import MessageSample
from framework.documents.topic.written import Key
from framework.messages.formats import DeclaredColumns, Guess, OneColumn, every
from framework.operations.init.infer import GuessedColumn
from framework.operations.init.lines import Line, comment_name, of_column, scalar
from framework.plan import ChangeFormat, MessagePart

MOSTLY = 0.9  # of the messages with a value
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Guessed:
    """A format, and the rows of the messages that have it."""

    name: str
    guess: Guess
    changes: ChangeFormat | None
    rows: tuple[Row, ...]

    def count_others(self, sample: MessageSample) -> int:
        """The number of messages with a value that do not have this format."""
        return sum(message.value is not None and self.guess.rows(message.value) is None for message in sample.messages)


def guesses(part: MessagePart) -> Mapping[str, tuple[DeclaredColumns, Guess]]:
    """The formats that can be guessed. Formats of changes come first, since their messages are plain ones, too."""
    formats = {name: format_ for name, format_ in every(part).items() if isinstance(format_, DeclaredColumns)}
    in_order = sorted(formats.items(), key=lambda item: item[1].changes is None)
    return {name: (format_, format_.guess) for name, format_ in in_order if format_.guess}


def of_values(values: Sequence[bytes]) -> Guessed | None:
    for name, (format_, guess) in guesses("value").items():
        lists = [rows for value in values if (rows := guess.rows(value)) is not None]
        rows = tuple(row for row_list in lists for row in row_list)
        if rows and len(lists) >= MOSTLY * len(values):
            return Guessed(name, guess, format_.changes, rows)
    return None


def of_no_columns(values: Sequence[bytes], of_a_registry: bool) -> str:
    """The narrowest format of one column that all of these values have."""
    singles = {name: format_ for name, format_ in every("value").items() if isinstance(format_, OneColumn)}
    return next(
        name
        for name in sorted(singles, key=lambda name: singles[name].wrong is None)
        if _fits(singles[name], values) and not (of_a_registry and singles[name].wrong)
    )


def of_keys(keys: Sequence[bytes]) -> tuple[str, str]:
    """The format of one column that all of these keys have, and why it is not the default."""
    singles = {name: format_ for name, format_ in every("key").items() if isinstance(format_, OneColumn)}
    in_order = sorted(singles, key=lambda name: (name != Key().format, singles[name].wrong is None))
    name = next(name for name in in_order if _fits(singles[name], keys))
    return name, "" if name == Key().format else singles[name].guessed


def _fits(single: OneColumn, data: Iterable[bytes]) -> bool:
    return single.wrong is None or all(single.wrong(value) is None for value in data)


def row_keys(guessed_format: Guessed, sample: MessageSample, columns: Sequence[GuessedColumn]) -> tuple[str, ...]:
    """The columns that the keys of changes name; none where the keys differ, or where a name is no column."""
    keys = [guessed_format.guess.key(message.key) for message in sample.messages if message.key is not None]
    fields = dict.fromkeys(name for key in keys if key is not None for name in key)
    same_fields = bool(keys) and all(key is not None and set(key) == set(fields) for key in keys)
    return tuple(fields) if same_fields and {column.name for column in columns}.issuperset(fields) else ()


def change_lines(
    guessed_format: Guessed, columns: Sequence[GuessedColumn], excluded_columns: Mapping[str, str], sample: MessageSample
) -> Iterator[Line]:
    assert guessed_format.changes is not None
    message_count = len(sample.messages)
    other_count = guessed_format.count_others(sample)
    tombstones = sum(message.value is None for message in sample.messages)
    yield Line(f"value: {guessed_format.name}", [
        *([f"{tombstones:,} of {message_count:,} messages are tombstones, which are left out"] if tombstones else []),
        *(
            [f"{other_count:,} of {message_count:,} messages are {guessed_format.guess.are_not}, which makes bad rows"]
            if other_count
            else []
        ),
    ])  # fmt: skip
    change_columns = " and ".join(f"`{column.name}`" for column in guessed_format.changes.columns)
    yield Line(f"# The columns are those of the table's rows; {change_columns} come behind them.")
    yield Line("columns:")
    yield from map(of_column, columns)
    yield from (Line(f"  # {comment_name(name)} is left out: {why}") for name, why in excluded_columns.items())


def write_options(row_keys: Sequence[str]) -> str:
    """The write mode for a table of changes, as options of `into`."""
    return f", write: upsert, keys: [{', '.join(map(scalar, row_keys))}]" if row_keys else ""


def pipeline_lines(row_keys: Sequence[str]) -> Iterator[Line]:
    if not row_keys:
        yield Line("# A row for each change. One row per key: `write: upsert, keys: […]` with the columns that name a row;")
        yield Line("# the messages' keys do not say which these are.")
