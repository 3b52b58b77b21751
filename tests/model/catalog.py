"""An Iceberg catalog as far as the protocol can tell: metadata that never changes, replaced by optimistic commits.

One that merges is a REST catalog: it refuses a commit only if a branch or tag that it sets is elsewhere than where it was, and applies
its changes to whatever is there by then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from framework.core.rules.protocol import Position, Snapshot, TableState


class Refused(Exception):
    """Something else was committed before."""


class AnswerLost(Exception):
    """The commit is done, or will be, and nobody says so."""


class Invalid(Exception):
    """Iceberg does not do this to this metadata: a branch that is missing or already there, a main that is no ancestor."""


class Span(NamedTuple):
    """Messages `first` to `behind` (without it) of a partition: in the table the good ones, in that of the bad rows the bad."""

    topic: str
    partition: str
    first: int
    behind: int
    batch: int


class Metadata(NamedTuple):
    uuid: str
    main: int
    snapshots: Mapping[int, Snapshot]
    branches: Mapping[str, int]
    sequence: int
    tag: int | None = None
    position: Position | None = None
    of: str = ""  # bad rows' table: the uuid of the table whose bad rows these are


class Catalog:
    """The state that all tables share: the rows of each snapshot, its parent even when it is expired, and the next answer's fate."""

    def __init__(self, merges: bool = False) -> None:
        self.merges = merges
        self.rows: dict[int, tuple[Span, ...]] = {}
        self.parents: dict[int, int | None] = {}
        self.answer = ""  # "lost", "late" or "refused": what becomes of the next commit
        self.under_way: list[Callable[[], None]] = []  # commits that were sent, and have not arrived

    def snapshot(self, parent: int | None, rows: tuple[Span, ...]) -> int:
        made = len(self.rows) + 1
        self.rows[made] = rows
        self.parents[made] = parent
        return made

    def lineage(self, snapshot: int | None) -> list[int]:
        found = []
        while snapshot is not None:
            found.append(snapshot)
            snapshot = self.parents[snapshot]
        return found


class Table:
    """A name in the catalog. `now` is the metadata it points at; None: no such table."""

    def __init__(self, catalog: Catalog, now: Metadata | None) -> None:
        self.catalog = catalog
        self.now = now

    def commit(self, base: Metadata, new: Metadata, claims: str = "") -> None:
        """Takes effect only on the metadata that it was made for, or on what a catalog that merges takes for that. It `claims` a branch
        that it removes if it is refused where that is elsewhere or gone."""
        answer, self.catalog.answer = self.catalog.answer, ""
        if answer == "late":
            self.catalog.under_way.append(lambda: self.commit(base, new, claims))
            raise AnswerLost
        if answer == "refused" or (self.now is not base and not self.catalog.merges):
            raise Refused
        if claims and (self.now is None or self.now.branches.get(claims) != base.branches.get(claims)):
            raise Refused
        self.now = new if self.now is base else merged(self.now, base, new)
        if answer == "lost":
            raise AnswerLost

    def current(self) -> Metadata:
        if self.now is None:
            raise Invalid
        return self.now

    def create(self, uuid: str, of: str = "", begins: Position | None = None) -> None:
        """A table is born with an empty snapshot; one that is there stays."""
        if self.now is not None:
            return
        text = written(begins) if begins else None
        born = self.catalog.snapshot(None, ())
        position = begins and begins.__class__(**{**vars(begins), "snapshot": born, "sequence": 1})
        self.now = Metadata(
            uuid, born, {born: Snapshot(born, None, 1, attempt=None, position=text)}, {}, 1, position=position, of=of
        )

    def branch(self, name: str, snapshot: int) -> None:
        base = self.current()
        if name in base.branches or snapshot not in base.snapshots:
            raise Invalid
        self.commit(base, base._replace(branches={**base.branches, name: snapshot}))

    def append(self, branch: str | None, rows: tuple[Span, ...], attempt: str | None = None, position: str | None = None) -> None:
        """Iceberg loads anew and tries again by itself. A branch that is missing is made, and begins where main is now."""
        base = self.current()
        parent = base.branches.get(branch, base.main) if branch else base.main
        self.commit(base, self._grown(base, branch, parent, self.catalog.rows[parent] + rows, attempt, position))

    def with_rows(self, base: Metadata, rows: tuple[Span, ...], attempt: str, position: str) -> Metadata:
        """The metadata with these rows in main, of which the catalog does not know yet."""
        return self._grown(base, None, base.main, self.catalog.rows[base.main] + rows, attempt, position)

    def fence(self) -> None:
        """A snapshot without rows, on a branch that the same commit removes."""
        base = self.current()
        grown = self._grown(base, "fence", base.main, self.catalog.rows[base.main], None, None)
        self.commit(base, grown._replace(branches=base.branches))

    def rewrite(self, base: Metadata, rows: tuple[Span, ...]) -> None:
        """Main with these rows instead of those it has."""
        self.commit(base, self._grown(base, None, base.main, rows, None, None))

    def empty(self, base: Metadata, of: str) -> None:
        """No rows and no branches any more, for another table."""
        self.commit(base, self._grown(base, None, base.main, (), None, None)._replace(of=of, branches={}))

    def join(self, base: Metadata, branch: str, attempt: str) -> None:
        """Fast-forward, or cherry-pick where main has gone on since; the branch goes in the same commit."""
        tip = base.snapshots[base.branches[branch]]
        branches = {name: at for name, at in base.branches.items() if name != branch}
        new = base
        if tip.attempt == attempt and tip.parent == base.main:
            new = base._replace(main=tip.id)
        elif tip.attempt == attempt:
            added = self.catalog.rows[tip.id][len(self.catalog.rows[tip.parent or 0]) :]
            new = self._grown(base, None, base.main, self.catalog.rows[base.main] + added, None, None)
        self.commit(base, new._replace(branches=branches), claims=branch)

    def sweep(self, name: str) -> None:
        base = self.current()
        tip = base.branches.get(name)
        if tip is None:
            raise Invalid
        branches = {each: at for each, at in base.branches.items() if each != name}
        self.commit(base, base._replace(branches=branches))

    def expire(self) -> None:
        """expire_snapshots(retain_last => 1): what main, the tag and the branches stand on stays."""
        base = self.current()
        left = kept(base)
        self.now = base._replace(snapshots={at: each for at, each in base.snapshots.items() if at in left})

    def expire_only(self, base: Metadata, chosen: Collection[int], pins: bool) -> None:
        """expire_snapshots with these ids: Iceberg has loaded the table again, and what a branch or tag stands on by then stays."""
        left = kept(base)
        gone = [at for at in chosen if at not in left]
        new = base._replace(snapshots={at: each for at, each in base.snapshots.items() if at not in gone})
        self.commit(base, self.pinned(new) if pins and gone else new)

    def compact(self, position: str | None) -> None:
        """Other files with the same rows, on whatever main is then."""
        base = self.current()
        rows = self.catalog.rows[base.main]
        self.commit(base, self._grown(base, None, base.main, rows, None, position, compacts=True))

    def pinned(self, new: Metadata) -> Metadata:
        """Main moves, too, so that a catalog that merges compares where it was."""
        return self._grown(new, None, new.main, self.catalog.rows[new.main], None, None) if self.catalog.merges else new

    def _grown(
        self, base: Metadata, branch: str | None, parent: int, rows: tuple[Span, ...], attempt: str | None, position: str | None,
        compacts: bool = False,
    ) -> Metadata:  # fmt: skip
        made = self.catalog.snapshot(parent, rows)
        grown = Snapshot(made, parent, base.sequence + 1, attempt=attempt, position=position, compacts=compacts)
        snapshots = {**base.snapshots, made: grown}
        if branch is None:
            return base._replace(main=made, snapshots=snapshots, sequence=base.sequence + 1)
        return base._replace(branches={**base.branches, branch: made}, snapshots=snapshots, sequence=base.sequence + 1)


def merged(now: Metadata | None, base: Metadata, new: Metadata) -> Metadata:
    """The metadata after a commit on another base, as a REST catalog decides it: a new snapshot needs a new sequence number, a branch
    or tag that is set has to be where it was, and one whose snapshot goes is gone."""
    if now is None or now.uuid != base.uuid:
        raise Refused
    added = {at: each for at, each in new.snapshots.items() if at not in base.snapshots}
    left = {at: each for at, each in now.snapshots.items() if at not in base.snapshots or at in new.snapshots}
    snapshots = {**left, **added}
    refs, were, are = ({"main": each.main, "tag": each.tag, **each.branches} for each in (new, base, now))
    changed = {name: at for name, at in refs.items() if were.get(name) != at}
    if (added and now.sequence != base.sequence) or any(are.get(name) != were.get(name) for name in changed):
        raise Refused
    if any(at not in snapshots for at in changed.values()):
        raise Refused
    kept = {name: at for name, at in are.items() if (name in refs or name not in were) and at in snapshots}
    after = {**kept, **changed}
    main, tag = after.pop("main", 0), after.pop("tag", None)
    return now._replace(
        main=main or 0,
        tag=tag,
        branches={name: at for name, at in after.items() if at is not None},
        snapshots=snapshots,
        sequence=max(now.sequence, new.sequence),
        position=now.position if new.position == base.position else new.position,
        of=now.of if new.of == base.of else new.of,
    )


def lineage(table: Metadata) -> Iterator[Snapshot]:
    """Main's snapshots that are still known, the newest first."""
    at: int | None = table.main
    while at is not None and at in table.snapshots:
        yield table.snapshots[at]
        at = table.snapshots[at].parent


def kept(table: Metadata) -> set[int | None]:
    return {table.main, table.tag, *table.branches.values()}


def state(table: Metadata, owner: str) -> TableState:
    return TableState(uuid=table.uuid, main=table.main, snapshots=table.snapshots, position=table.position, owner=owner)


_texts: dict[tuple[str, int, str, tuple[tuple[str, int], ...]], str] = {}


def written(position: Position) -> str:
    """The text of a position in a snapshot's summary; remembered, as the same ones come again in every schedule."""
    key = (position.attempt, position.batch, position.topics["t"], tuple(position.ends.items()))
    if key not in _texts:
        _texts[key] = position.text()
    return _texts[key]
