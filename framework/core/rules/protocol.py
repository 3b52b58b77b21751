"""The rules by which batches are published exactly once: pure functions over the state of a table and of a topic.

The core calls them, and so does the model of the protocol that the tests search; there is no second copy of a rule.
DECISIONS.md says why each is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from enum import Enum

from framework.base.errors import RefusedError
from framework.core.rules.packed import packed, unpacked

POSITION = "sluice.position"  # the table property that the publishing commit sets
OWNER = "sluice.owner"
ADOPTED = "sluice.adopted"  # that another program created the table
ACCEPTED = "sluice.accepted"  # changes of columns that a run refuses and that were accepted
JOINED = "sluice.joined"  # in the summary of a staged snapshot: the snapshots of tables that its steps read
TIME = "sluice.time"  # there, too: the time in microseconds by which rows wait
PINNED = "sluice.pinned"  # in the summary of an empty snapshot, by which main moves with a commit
ATTEMPT = "sluice.attempt"  # in the summary of a staged snapshot
BASE = "sluice.base"  # in the summary of staged bad rows: the last sequence number of the table when their attempt began
BRANCH = "sluice_"  # each attempt's branch is this and the attempt's id
OF = "sluice.of"  # of a table of bad rows: the uuid of the table whose bad rows these are
SETTLED = "sluice.settled"  # of a table of bad rows: how many are not open any more
BORN = "born"  # in place of an attempt's id: of a table without a batch yet
REBUILT = "sluice.rebuilt"  # the uuid of the second table whose files the last rebuild took
EMPTY = "sluice-empty"  # a tag on the first snapshot of a table that keeps state, which has no rows
WRITE = "sluice.write"  # how a table that has one row per key was written, and by which keys
COMPACTED = "sluice.compacted"  # when a table was last compacted; in the summary of the snapshot, that it is a compaction
DELETE_LATER = "sluice.delete_later"  # the lists of files of expired snapshots that are deleted later
COMPACTING = "sluice.compacting"  # the number of the commit of which files are being rewritten, and the second since when
TAG = "sluice"  # on the snapshot that the position belongs to, which expiry then keeps

KILL_POINTS = (
    "opened",  # the table is loaded; where it was missing, it is created
    "rolled_forward",  # the side rows that the last batch did not publish are published
    "ranged",  # the offsets are chosen
    "branched",  # the attempt has the table for itself, with an empty branch
    "staged",  # the rows are on that branch, of which no catalog knows
    "staged_bad_rows",  # the bad rows are on theirs
    "checked",  # all checks are done; the only commit to the table is next
    "published",  # the table's commit is done
    "published_bad_rows",  # the bad rows' commit is done
    "swept",  # branches of dead attempts are gone
)
UPSERT_POINTS = (  # between `branched` and `staged`
    "merged",  # the rows are on the branch
    "staged_state",  # the state they add is on branches of its own
)


_STATE = re.compile(r"sluice-[a-z]+-(\d{4}-\d\d-\d\d|all)")


def state_branch(state: str, part: str) -> str:
    """The branch of a part of a state: of a day, or `all`."""
    return f"sluice-{state}-{part}"


def is_state(branch: str) -> bool:
    """Whether a branch has the name of a state. Other programs may give a branch such a name: `is_state_line` tells."""
    return _STATE.fullmatch(branch) is not None


def is_state_line(line: Iterable[tuple[Mapping[str, str], int | None]]) -> bool:
    """Whether the snapshots of a branch, the newest first, each with its summary and its parent, are those of a state: they begin at a
    snapshot without rows. A branch of another program begins at a batch."""
    for summary, parent in line:
        if summary.get(REBUILT) is not None:
            return True
        if parent is None:
            return not int(summary.get("total-records") or 0)
        if summary.get(POSITION) is not None:
            return False
        if summary.get(ATTEMPT) is not None:
            return True
    return True  # the older ones have expired


def staged_state(branch: str, attempt: str) -> str:
    """The branch on which an attempt adds to a part of a state."""
    return f"{branch}_{attempt}"


TABLES = "tables"  # in a position, in place of a topic's name: the tables that a select reads, with their uuids
Partition = str  # `topic/number`: a topic's name has no slash


def partition(topic: str, number: int) -> Partition:
    return f"{topic}/{number}"


def parted(partition: Partition) -> tuple[str, int]:
    """The topic and the number."""
    topic, _, number = partition.rpartition("/")
    return topic, int(number)


@dataclass(frozen=True)
class Snapshot:
    id: int
    parent: int | None
    sequence: int
    _: KW_ONLY
    attempt: str | None = None
    position: str | None = None  # the one in its summary, to return to
    compacts: bool = False  # other files with the same rows


_ALWAYS = ("attempt", "batch", "cluster", "topics", "ends", "snapshot", "sequence")  # of a position's text


@dataclass(frozen=True, kw_only=True)
class Position:
    """The offsets a table has loaded: a property of the table, set by the commit that it describes."""

    attempt: str
    batch: int
    cluster: str
    topics: Mapping[str, str]  # ids by name
    ends: Mapping[Partition, int]
    snapshot: int = 0  # none yet
    sequence: int = 0
    spec: str = ""
    bad: int = 0  # bad rows of this batch, which wait on a branch of their own until they are published
    accepted: Mapping[Partition, int] = field(default_factory=dict)  # bad rows below these offsets do not stop the pipeline
    forget: tuple[int, int] | None = None  # bad rows of batches above the first, up to the second, whose messages are read again
    rebuilt: int = 0  # the batch that rebuilt or rewound the table: bad rows of earlier batches are deleted for good
    rewound: bool = False  # bad rows of earlier batches are deleted only if their messages are read again
    replay: bool = False  # this batch's bad rows are what became of bad rows that were tried again
    newest: int = 0  # the greatest time of rows that were added to windows of time, in microseconds

    @property
    def is_rebuild(self) -> bool:
        """Whether this batch is a rebuild's."""
        return 0 < self.batch == self.rebuilt

    @property
    def is_followed(self) -> bool:
        """Whether bad rows are published or deleted after this position's commit."""
        return bool(self.bad) or self.replay or self.forget is not None

    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    def short_text(self) -> str:
        """The text for a snapshot's summary, where it must not grow much with the partitions."""
        fields = {name: value for name, value in asdict(self).items() if name in _ALWAYS or value}
        return json.dumps({**fields, "ends": packed(self.ends)}, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def read(text: str) -> Position:
        try:
            fields = json.loads(text)
            fields["ends"] = unpacked(fields["ends"])
            fields["forget"] = tuple(fields["forget"]) if fields.get("forget") else None
            return Position(**fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            hint = "another program changed it, or a newer Sluice wrote it: restore the table's metadata, or run that version"
            message = f"a table's property `{POSITION}` cannot be read as a position: {error}"
            raise RefusedError("position-unreadable", message, hint) from None


@dataclass(frozen=True, kw_only=True)
class TableState:
    """A table at one moment, read from one metadata file."""

    uuid: str
    main: int
    snapshots: Mapping[int, Snapshot]
    position: Position | None
    owner: str | None
    branches: Mapping[str, int] = field(default_factory=dict)  # Sluice's own, with the snapshot at the tip of each
    last_sequence: int = 0  # the greatest number that a snapshot of the table has ever had


class Standing(Enum):
    HERE = "main contains the snapshot of the position"
    EXPIRED = "main's older snapshots have expired, and it has newer ones since"
    ROLLED_BACK = "main does not contain the snapshot of the position"
    FOREIGN = "the table has no position"


def standing(state: TableState) -> Standing:
    """Whether the position still describes the table's rows."""
    if state.position is None:
        return Standing.FOREIGN
    id_ = state.main
    while True:
        if id_ == state.position.snapshot:
            return Standing.HERE
        snapshot = state.snapshots.get(id_)
        if snapshot is None:
            # A parent is missing, and all snapshots up to it are younger than the position.
            return Standing.EXPIRED
        # Below the position's own sequence number nothing can be its descendant, whatever was committed on top since.
        if snapshot.parent is None or snapshot.sequence <= state.position.sequence:
            return Standing.ROLLED_BACK
        id_ = snapshot.parent


def settled(state: TableState) -> Position | None:
    """The position moved to main, if only compactions came since; else None."""
    position, id_ = state.position, state.main
    if position is None or id_ == position.snapshot:
        return None
    while id_ != position.snapshot:
        snapshot = state.snapshots.get(id_)
        if snapshot is None or not snapshot.compacts or snapshot.parent is None:
            return None
        id_ = snapshot.parent
    return replace(position, snapshot=state.main, sequence=state.snapshots[state.main].sequence)


def needed(main: Sequence[Snapshot], position: Position | None, kept: Collection[int]) -> frozenset[int]:
    """The snapshots of main, the newest first, that are needed where some are kept: all down to that of the position, since a gap
    would look like expiry by somebody else; and below one that says no position the next that does, for a rollback to it."""
    keep = set(kept)
    ids = [snapshot.id for snapshot in main]
    if position is not None and position.snapshot in ids:
        keep.update(ids[: ids.index(position.snapshot) + 1])
    needs_next = False
    for snapshot in main:
        if needs_next or snapshot.id in keep:
            keep.add(snapshot.id)
            needs_next = snapshot.position is None
    return frozenset(keep)


class Verdict(Enum):
    PUBLISH = "nothing has changed: publish"
    DONE = "this attempt was published already"
    AGAIN = "another batch was published: begin again from its position"
    RESTAGE = "a foreign commit came between: stage again on the new main"
    RECREATED = "this is another table by the same name"


def verdict(opened: TableState, now: TableState, attempt: str, staged: Snapshot | None) -> Verdict:
    """Whether an attempt that was staged on `opened` may be published on `now`."""
    if now.uuid != opened.uuid:
        return Verdict.RECREATED
    if now.position is not None and now.position.attempt == attempt:
        return Verdict.DONE
    if now.position != opened.position:
        return Verdict.AGAIN
    if now.main != opened.main:
        return Verdict.RESTAGE
    if staged is None or staged.parent != opened.main or staged.attempt != attempt:
        return Verdict.RESTAGE
    return Verdict.PUBLISH


@dataclass(frozen=True)
class TopicState:
    """A pipeline's topics at one moment, with their ids by name: `ends` are the last stable offsets, below which no transaction is open."""

    cluster: str
    topics: Mapping[str, str]
    starts: Mapping[Partition, int]
    ends: Mapping[Partition, int]


@dataclass(frozen=True)
class Range:
    starts: Mapping[Partition, int]
    ends: Mapping[Partition, int]
    waiting: int  # messages up to the last stable offsets, this batch's among them
    _: KW_ONLY
    topics: Mapping[str, str] = field(default_factory=dict)  # their ids by name
    rows: int | None = None  # if a table is read: the numbers of its commits do not tell how many rows there are

    @classmethod
    def of_all(cls, ends: Mapping[Partition, int], rows: int) -> Range:
        """All rows that tables have, up to these commits."""
        return cls({}, ends, rows, rows=rows)

    @property
    def size(self) -> int:
        return (
            self.rows
            if self.rows is not None
            else sum(self.ends[partition] - self.starts[partition] for partition in self.starts)
        )


@dataclass(frozen=True)
class LostOffsets:
    """Offsets that come next and that Kafka no longer has: partition, next offset, first offset that is left."""

    partition: Partition
    next: int
    first: int


def born(topic: TopicState, ends: Mapping[Partition, int], spec: str) -> Position:
    """The position of a table without a batch yet."""
    return Position(attempt=BORN, batch=0, cluster=topic.cluster, topics=topic.topics, ends=ends, spec=spec)


def lost_offsets(position: Position, topic: TopicState) -> tuple[LostOffsets, ...]:
    return tuple(
        LostOffsets(partition, position.ends.get(partition, 0), first)
        for partition, first in sorted(topic.starts.items())
        if first > position.ends.get(partition, 0)
    )


def offsets_beyond_end(position: Position, topic: TopicState) -> tuple[LostOffsets, ...]:
    """Partitions that end before the position, which no topic does that only grows."""
    return tuple(
        LostOffsets(partition, end, topic.ends.get(partition, 0))
        for partition, end in sorted(position.ends.items())
        if topic.ends.get(partition, 0) < end
    )


def next_range(position: Position, topic: TopicState, limit: int) -> Range | None:
    """The next offsets: from the position to the last stable offsets, cut to `limit` in proportion to what waits in each
    partition. A partition that the position does not know begins where the topic does. None if nothing waits."""
    starts = {partition: position.ends.get(partition, first) for partition, first in topic.starts.items()}
    waiting = {partition: max(0, topic.ends[partition] - start) for partition, start in starts.items()}
    total = sum(waiting.values())
    if total == 0:
        return None
    ends = dict(starts)
    unassigned = min(limit, total)
    # The fullest first and rounded up, so that a limit below the number of partitions still gets on.
    for partition in sorted(starts, key=lambda name: (-waiting[name], name)):
        share = min(unassigned, waiting[partition], -(-waiting[partition] * min(limit, total) // total))
        ends[partition] += share
        unassigned -= share
    return Range(starts, ends, total, topics=topic.topics)
