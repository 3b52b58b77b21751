"""The events of a stream besides those of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from framework.base.errors import SluiceError, UnreachableError
from framework.core.run.events import Event
from framework.plan import Pipeline


@dataclass(frozen=True)
class Started:
    """The stream begins, with pipelines of these names."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Away:
    """A system does not answer. Told once, however many pipelines need it."""

    error: UnreachableError


@dataclass(frozen=True)
class Back:
    """The system answers again, after so many seconds."""

    error: UnreachableError
    seconds: float


@dataclass(frozen=True)
class Rests:
    """A pipeline failed, and is tried again after so many seconds. Told once for one reason."""

    pipeline: Pipeline
    error: SluiceError
    seconds: float


@dataclass(frozen=True)
class Recovered:
    """A pipeline that failed goes on."""

    pipeline: Pipeline


@dataclass(frozen=True)
class Changed:
    """Another plan was taken over: the names of pipelines that are new, that changed, and that are gone."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotTaken:
    """The specs changed, and have problems. What ran goes on."""

    error: SluiceError


@dataclass(frozen=True)
class StandsBy:
    """Another process streams pipelines of these names. When it ends, this one goes on with them."""

    names: tuple[str, ...]
    owner: str


@dataclass(frozen=True)
class TookOver:
    """The process that streamed these pipelines is gone."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Unseen:
    """The stream cannot see what is new, for a reason that is no outage. Told once."""

    error: SluiceError


@dataclass(frozen=True)
class Aside:
    """Something was done beside the pipelines, in lines."""

    lines: tuple[str, ...]


class Alerted(Aside):
    """Alerts were judged: who was told, and what could not be sent."""


class KeysReplaced(Aside):
    """Keys were replaced or retired, or could not be."""


StreamEvent: TypeAlias = (
    Event | Started | Away | Back | Rests | Recovered | Changed | NotTaken | StandsBy | TookOver | Unseen | Aside
)
