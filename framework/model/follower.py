"""Followers: what shows the rows of a table elsewhere, each commit once it is done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from framework.errors import Where

FOLLOWED = "sluice-also-"  # how the tags of followers begin


@dataclass(frozen=True, kw_only=True)
class Follower:
    """One item of `also`. `options` are as the file of `framework.followers` planned them."""

    type: str  # a file of `framework.followers`
    name: str  # of the place where rows are shown
    where: Where = field(compare=False, repr=False)
    says: tuple[str, ...]
    options: Any
    asset: tuple[str, ...] = ()  # its key as an asset; none where it is no thing of its own

    @property
    def title(self) -> str:
        return f"{self.type} {self.name}"

    @property
    def tag(self) -> str:
        """The table's tag on the last snapshot that is shown; maintenance keeps the snapshot."""
        return f"{FOLLOWED}{self.type}-{self.name}"
