"""The state of a stream for those who ask: a service manager, a load balancer, a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from framework.base.errors import Paused
from framework.core.stream.schedule import Slot
from framework.core.stream.state import Memory

_TURNS = 30.0  # seconds in which a stream that lives looks around at least once

PipelineState = Literal[
    "runs", "waits", "has a backlog", "rests after a failure", "is paused", "waits for another system", "stands by"
]


@dataclass(frozen=True, kw_only=True)
class PipelineHealth:
    """A pipeline's state. `waiting`: messages behind its last batch; `error`: why it rests; `failures`: how often it failed in a row."""

    state: PipelineState
    waiting: int = 0
    error: str = ""
    failures: int = 0


def of(slot: Slot, state: Memory, runs: bool, is_away: bool) -> PipelineHealth:
    """The health of a pipeline. `is_away`: something that it needs does not answer."""
    error = "" if slot.error is None or isinstance(slot.error, Paused) else str(slot.error)
    word = "runs" if runs else _word(state, error, is_away)
    return PipelineHealth(state=word, waiting=state.waiting, error=error, failures=slot.failures)


def _word(state: Memory, error: str, is_away: bool) -> PipelineState:
    if state.owner:
        return "stands by"
    if state.paused:
        return "is paused"
    if is_away:
        return "waits for another system"
    if error:
        return "rests after a failure"
    return "has a backlog" if state.waiting else "waits"


@dataclass(frozen=True, kw_only=True)
class Health:
    """`idle`: seconds since the stream looked around; `away`: the systems that do not answer; `problems`: those of specs that changed."""

    idle: float
    away: tuple[str, ...] = ()
    problems: str = ""
    has_seen: bool = True
    pipelines: Mapping[str, PipelineHealth] = field(default_factory=dict)

    @property
    def lives(self) -> bool:
        return self.idle < _TURNS

    @property
    def is_ready(self) -> bool:
        return self.lives and self.has_seen and not self.away and not self.problems
