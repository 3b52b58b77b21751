"""A plan in the making, and what every pass says in the same words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from framework.errors import Problem, Where
from framework.model import Catalog, Cluster, Engine, Pipeline, PlannedDocument, SecretStore, Topic
from framework.plan.registered import Schemas
from framework.spec import Written
from framework.spelling import did_you_mean

Thing = TypeVar("Thing")


@dataclass(kw_only=True)
class Draft:
    """A plan in the making, not frozen: each kind of document adds its part and its problems."""

    written: Written
    problems: list[Problem]
    engine: Engine = field(default_factory=Engine)
    secrets: SecretStore = field(default_factory=SecretStore)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    catalogs: dict[str, Catalog] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)  # topics that have problems
    unclear: set[str] = field(default_factory=set)  # those of which not even the columns' names are known
    pipelines: tuple[Pipeline, ...] = ()
    documents: list[PlannedDocument] = field(default_factory=list)  # of all other kinds
    schemas: Schemas = field(default_factory=Schemas)


def only(made: Draft, found: dict[str, Thing], noun: str, where: Where) -> Thing | None:
    """The one thing of its kind, which others need not name."""
    if len(found) == 1:
        return next(iter(found.values()))
    if not found and (made.written.lost or any(kind == noun for kind, _ in made.written.names)):
        return None  # it has a problem, which has been said
    if not found:
        made.problems.append(Problem(where, f"no-{noun}", f"there is no `{noun}` in the specs", f"add a document `{noun}: main`"))
    else:
        names = ", ".join(f"`{name}`" for name in found)
        hint = f"say which one: {names}" if noun == "catalog" else "keep one of them: topics cannot name theirs in this version"
        made.problems.append(Problem(where, f"several-{noun}s", f"there are {len(found)} {noun}s: {names}", hint))
    return None


def unknown(made: Draft, noun: str, name: str, where: Where, known: Iterable[str]) -> None:
    """There is no such thing, unless it is what could not be read."""
    if not made.written.lost:
        hint = did_you_mean(name, known, _existing(noun, known))
        made.problems.append(Problem(where, f"unknown-{noun}", f"there is no {noun} `{name}`", hint))


def _existing(noun: str, known: Iterable[str]) -> str:
    names = ", ".join(f"`{name}`" for name in sorted(known))
    if not names and noun == "table":
        return "write a pipeline that writes it: `into: {table: …}`"
    return f"there is {names}" if names else f"write a document `{noun}: …`"
