"""The cases in which a batch must not begin, each with its code, its offsets, and what accepting it means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from framework.base.errors import NotOwned, OffsetsGone, RolledBack, SluiceError, SourceLost, TableRecreated, TopicRecreated
from framework.core.rules import protocol
from framework.core.rules.protocol import LostOffsets, Partition, Position, Standing, TableState, TopicState, parted, standing
from framework.plan import Pipeline


@dataclass(frozen=True)
class Acceptance:
    """The effect of `sluice accept`: the position at which the pipeline continues, also in words. It is valid for `refused` only,
    the table's state at the refusal: another person may accept meanwhile."""

    says: str
    position: Position
    refused: TableState
    main: int | None = None  # the snapshot to which main goes back; None: it stays


def owner(pipeline: Pipeline) -> str:
    # A select can read other tables tomorrow: all of its rows are computed again then.
    sources = [] if pipeline.select else sorted(pipeline.sources)
    return json.dumps({"pipeline": pipeline.name, "cluster": pipeline.source_system, "topics": sources}, sort_keys=True)


def same_owner(recorded_owner: str, current_owner: str) -> bool:
    """Whether two owners are one pipeline, which may have added topics, but has left none."""
    old, new = json.loads(recorded_owner), json.loads(current_owner)
    return {**old, "topics": new["topics"]} == new and set(old["topics"]) <= set(new["topics"])


def is_ours(pipeline: Pipeline, recorded: str | None) -> bool:
    """Whether a table with this owner is the pipeline's."""
    return recorded is not None and same_owner(recorded, owner(pipeline))


def check(pipeline: Pipeline, state: TableState, topic: TopicState) -> Position:
    """The position at which to continue; raises a refusal where the batch must not begin."""
    position = check_owner(pipeline, state)
    if pipeline.computes_all:  # it is computed again, so no row can be skipped or repeated
        return replace(position, ends={}) if standing(state) is Standing.ROLLED_BACK else position
    if standing(state) is Standing.ROLLED_BACK:
        raise _rolled_back(pipeline, state, position)
    if pipeline.read_tables:
        if position.topics != topic.topics:
            raise source_lost(pipeline, "source-recreated", "it is another table than the one that was read")
        return position
    is_other_cluster = position.cluster != topic.cluster
    recreated_names = [name for name, id_ in position.topics.items() if is_other_cluster or topic.topics.get(name) != id_]
    if recreated_names:
        raise _topic_recreated(pipeline, state, position, topic, recreated_names)
    lost_offsets = protocol.lost_offsets(position, topic) or protocol.offsets_beyond_end(position, topic)
    if lost_offsets:
        raise _offsets_gone(pipeline, state, position, lost_offsets)
    return position


def check_owner(pipeline: Pipeline, state: TableState) -> Position:
    """The table's position; raises the refusal of a table that is not this pipeline's."""
    table = pipeline.table.identifier
    if state.position is None or state.owner is None:
        raise NotOwned(
            "table-not-ours",
            f"the table {table} exists and Sluice did not create it",
            f"give `{pipeline.name}` another table, or rename that one; or take it over, with its rows, by `adopt: true` under `into`",
        )
    if not same_owner(state.owner, owner(pipeline)):
        raise NotOwned(
            "table-of-another",
            f"the table {table} belongs to {_describe_owner(state.owner)}, this is {_describe_owner(owner(pipeline))}",
            "two pipelines, topics or environments never share a table: give this one another table",
        )
    return state.position


def may_adopt(pipeline: Pipeline, state: TableState) -> bool:
    """Whether a run takes the table over: the spec says so, and it is no pipeline's."""
    return pipeline.table.adopt and state.position is None and state.owner is None


def no_table(pipeline: Pipeline) -> SluiceError:
    """The error for a table that no run has created yet."""
    message = f"the table {pipeline.table.identifier} does not exist"
    return SluiceError("no-table", message, f"`sluice run {pipeline.name}` creates it")


def leftover_bad_rows(pipeline: Pipeline) -> TableRecreated:
    """The refusal for a table that is missing or new while bad rows of its predecessor are still there."""
    reading = f"{pipeline.source_name} is read" if pipeline.read_tables else "the topic is read from `start_from`"
    return TableRecreated(
        "table-recreated",
        f"the table {pipeline.table.identifier} is gone or new, but {pipeline.table.bad_rows} still holds bad rows of its predecessor",
        f"`sluice accept {pipeline.name}`: those bad rows are dropped and {reading} into a new table",
        pipeline.table.bad_rows,
    )


def source_lost(pipeline: Pipeline, code: str, reason: str) -> SourceLost:
    """The refusal where the changes of a table since the position are not known. Its rows stay as they are, so only a rebuild helps."""
    source = pipeline.source_name
    hint = f"`sluice rebuild {pipeline.name}` computes {pipeline.table.identifier} from the whole table {source}"
    return SourceLost(code, f"{pipeline.name} cannot read the changes of {source}: {reason}", hint)


def _rolled_back(pipeline: Pipeline, state: TableState, position: Position) -> RolledBack:
    main_position, acceptance = last_position(state), None
    if isinstance(resumed_position := going_back(pipeline, state, position), str):
        hint = resumed_position
    else:
        assert main_position is not None
        repeated = messages_between(main_position.ends, position.ends)
        says = f"{repeated:,} messages are read again, from {offsets(main_position.ends)}, so that the table holds them once more"
        if pipeline.read_tables:
            says = f"the changes of {pipeline.source_name} since its commit {_commit(main_position)} are read again"
        acceptance = Acceptance(says, resumed_position, state)
        hint = _accept_hint(pipeline, says)
    return RolledBack(
        "rolled-back",
        f"the table {pipeline.table.identifier} was rolled back: its position is "
        f"{f'commit {_commit(position)} of {pipeline.source_name}' if pipeline.read_tables else offsets(position.ends)}, "
        "but main no longer has those rows",
        hint,
        acceptance,
    )


def going_back(pipeline: Pipeline, state: TableState, position: Position) -> Position | str:
    """The position that belongs to main's rows, where main is behind the position; or a hint that says why there is none."""
    main_position = last_position(state)
    if main_position is None:
        return "restore the table's main branch; none of its snapshots has a position to return to"
    if main_position.batch < position.rebuilt:
        cause = "bad rows from before its last rebuild or rewind are gone"
        return f"`sluice rebuild {pipeline.name}` rebuilds it; going back cannot: {cause}"
    return replace(
        position, ends=main_position.ends, cluster=main_position.cluster, topics=main_position.topics,
        newest=main_position.newest, forget=(main_position.batch, position.batch),
        snapshot=state.main, sequence=state.snapshots[state.main].sequence, rewound=False, replay=False,
    )  # fmt: skip


def last_position(state: TableState) -> Position | None:
    """The position of the last batch that main has."""
    id_: int | None = state.main
    while id_ is not None and id_ in state.snapshots:
        snapshot = state.snapshots[id_]
        if snapshot.position:
            return Position.read(snapshot.position)
        id_ = snapshot.parent
    return None


def _topic_recreated(
    pipeline: Pipeline, state: TableState, position: Position, topic: TopicState, names: list[str]
) -> TopicRecreated:
    event = "deleted and created again" if position.cluster == topic.cluster else "created in another Kafka cluster"
    starts = {partition: offset for partition, offset in topic.starts.items() if parted(partition)[0] in names}
    other_ends = {partition: offset for partition, offset in position.ends.items() if parted(partition)[0] not in names}
    accepted = {partition: offset for partition, offset in position.accepted.items() if parted(partition)[0] not in names}
    says = f"reading begins at {offsets(starts)} of the new topic; rows of the old one stay"
    new_position = replace(position, cluster=topic.cluster, topics=topic.topics, ends={**other_ends, **starts}, accepted=accepted)
    new_position = replace(new_position, forget=None, rewound=False)
    return TopicRecreated(
        "topic-recreated",
        f"the topic {', '.join(names)} was {event}: the position {offsets(position.ends)} belongs to the old one",
        _accept_hint(pipeline, says),
        Acceptance(says, new_position, state),
    )


def _offsets_gone(
    pipeline: Pipeline, state: TableState, position: Position, lost_offsets: tuple[LostOffsets, ...]
) -> OffsetsGone:
    """The refusal where Kafka begins after the next messages, or ends before messages that were read."""
    first_offsets = {gap.partition: gap.first for gap in lost_offsets}
    says = f"reading continues at {offsets(first_offsets)}"
    if (count := sum(gap.first - gap.next for gap in lost_offsets)) > 0:
        code, says = "offsets-gone", f"{count:,} messages are never read; {says}"
        places = ", ".join(f"{gap.partition}: next is {gap.next}, Kafka begins at {gap.first}" for gap in lost_offsets)
        message = f"Kafka no longer has {count:,} messages that come next ({places})"
    else:
        code = "topic-shorter"
        places = ", ".join(f"{gap.partition}: read up to {gap.next}, Kafka ends at {gap.first}" for gap in lost_offsets)
        message = f"Kafka lost messages that were read already ({places})"
    new_position = replace(position, ends={**position.ends, **first_offsets}, forget=None, rewound=False)
    return OffsetsGone(code, message, _accept_hint(pipeline, says), Acceptance(says, new_position, state))


def _accept_hint(pipeline: Pipeline, says: str) -> str:
    return f"`sluice accept {pipeline.name}`: {says}"


def messages_between(start: Mapping[Partition, int], end: Mapping[Partition, int]) -> int:
    return sum(max(0, offset - start.get(partition, 0)) for partition, offset in end.items())


def offsets(ends: Mapping[Partition, int]) -> str:
    return "offsets " + " ".join(
        f"{partition}:{offset}" for partition, offset in sorted(ends.items(), key=lambda item: parted(item[0]))
    )


def _commit(position: Position) -> int:
    """The last commit that was read of a table; 0 before the first."""
    return max(position.ends.values(), default=0)


def _describe_owner(owner_: str) -> str:
    fields = json.loads(owner_)
    return f"the pipeline {fields['pipeline']} from {', '.join(fields['topics']) or 'several tables'} of {fields['cluster']}"
