"""Topics whose messages are changes of rows: the SQL of which change a message is."""

from __future__ import annotations

from collections.abc import Iterable

from framework.plan import ChangeFormat, Topic
from framework.sql.quote import literal


def changes_of(read: tuple[Topic, ...]) -> ChangeFormat | None:
    """Returns the description of the changes in these topics, if they are changes. The topics of one pipeline have one format."""
    return read[0].changes if read else None


def is_one_of(topic: Topic, ops: Iterable[str]) -> str:
    """Returns SQL of whether a message is one of these changes. A message without an op is none."""
    op = dict(topic.decoding.columns).get(topic.changes.op.name, "NULL") if topic.changes else "NULL"
    return f"coalesce({op} IN ({', '.join(map(literal, ops))}), false)"


def is_end(topic: Topic, changes: ChangeFormat) -> str:
    return is_one_of(topic, (*changes.deletes, *changes.truncates))
