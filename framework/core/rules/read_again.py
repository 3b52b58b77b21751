"""The bad rows that are affected by a position that went back, as conditions that Spark and PyIceberg both read."""

from __future__ import annotations

from framework.core.rules.protocol import Position, parted
from framework.sql.quote import literal


def read_again(position: Position) -> str:
    """SQL of whether a bad row's message is read again."""
    assert position.forget is not None
    above, up_to = position.forget
    batch_condition = f"batch > {above} AND batch <= {up_to}"
    if not position.rewound:
        return batch_condition
    places = [(*parted(partition), offset) for partition, offset in sorted(position.ends.items())]
    later_conditions = (
        f"(topic = {literal(topic)} AND partition = {number} AND offset >= {offset})" for topic, number, offset in places
    )
    return f"{batch_condition} AND ({' OR '.join(later_conditions)})"


def replay_undone(position: Position) -> str:
    """SQL of whether the replay that let a bad row through, or tried it, is undone. Bad rows that a rewind reads again are deleted by
    `read_again`; the rows of other replays are still in the table."""
    assert position.forget is not None
    if position.rewound:
        return "false"
    above, up_to = position.forget
    return f"replayed_in > {above} AND replayed_in <= {up_to}"
