"""Followers: sinks that show the rows of a table elsewhere, each commit once it is done."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from framework.base.errors import Where
from framework.plan.catalog import Catalog
from framework.plan.topic import Cluster, Topic

FOLLOWED = "sluice-also-"  # the beginning of the followers' tags
PUBLISHED = f"{FOLLOWED}catalog-"  # the beginning of the tags of followers that list a table in another catalog
_TAG = re.compile(rf"{FOLLOWED}(?P<type>[a-z0-9_]+)-[0-9a-f]{{12}}(-showing|-before)?|{PUBLISHED}.+")


def is_follower_tag(name: str, type_: str = "") -> bool:
    """Whether the name is that of a follower's tag, or of a follower of this type. Other programs give their tags any name."""
    match = _TAG.fullmatch(name)
    return match is not None and type_ in ("", match["type"])


@dataclass(frozen=True)
class ListedTable:
    """A table in another catalog."""

    catalog: Catalog
    identifier: str


def _shows_nothing(_input: Any) -> int:
    """The `follow` of a listing that is only to be ended."""
    raise AssertionError("this follower is only to be ended")


@dataclass(frozen=True, kw_only=True)
class Follower:
    """One item of `also` or `publish`. `options` are as the file of its type planned them."""

    type: str  # the name of its file among the followers
    name: str  # of the place where rows are shown
    where: Where = field(compare=False, repr=False)
    says: tuple[str, ...]
    options: Any
    asset: tuple[str, ...] = ()  # its key as an asset; empty if it is not an asset
    identity: str = ""  # the options that decide which rows are shown, and where
    sends_to: tuple[Cluster, str] | None = None  # a topic, by its name in Kafka
    topic: Topic | None = field(
        default=None, compare=False, repr=False
    )  # the topic of `sends_to`, with the columns of its messages
    # Shows one step of commits, and returns the number of rows.
    follow: Callable[[Any], int] = field(default=_shows_nothing, compare=False, repr=False)
    # Ends all earlier writers before the first step, where a process that wakes up late could still write.
    take_turn: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)
    reads_back: bool = False  # whether it reads what its topic has before it sends
    by_files: bool = False  # whether it shows whole snapshots by their files, not rows that changed
    latest_only: bool = False  # whether it shows the newest snapshot as it is, whatever came before

    @property
    def by_rows(self) -> bool:
        return not (self.by_files or self.latest_only)

    @property
    def title(self) -> str:
        return f"{self.type} {self.name}"

    @property
    def tag(self) -> str:
        """The table's tag on the last snapshot that is shown; maintenance keeps the snapshot. Another `identity` begins again."""
        if self.latest_only:  # readable, so that it can be ended without the spec
            return f"{PUBLISHED}{self.name}"
        digest = hashlib.sha256(f"{self.name} {self.identity}".encode()).hexdigest()[:12]
        return f"{FOLLOWED}{self.type}-{digest}"

    @property
    def showing(self) -> str:
        """The tag on the snapshot that is being shown: a run that died is repeated exactly."""
        return f"{self.tag}-showing"

    @property
    def before(self) -> str:
        """The tag on the snapshot that was shown before, whose files somebody may be reading."""
        return f"{self.tag}-before"

    @property
    def tags(self) -> tuple[str, ...]:
        return self.tag, self.showing, self.before
