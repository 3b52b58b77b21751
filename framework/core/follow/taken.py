"""The error of a process whose turn another one has taken."""

from __future__ import annotations

from framework.base.errors import TurnTaken
from framework.plan import Follower


def taken(follower: Follower) -> TurnTaken:
    """Return the error of a process that lost its turn to another one."""
    message = f"another process shows them in the {follower.title} now"
    return TurnTaken("turn-taken", message, "it shows all of them; run again if `sluice status` says that rows still wait")
