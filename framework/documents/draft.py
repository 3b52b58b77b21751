"""The draft of a plan, and problems that several kinds of documents report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from framework.base.errors import Problem, Where
from framework.base.spelling import did_you_mean, the_names
from framework.documents.topic.registered import RegistrySchemas
from framework.language import Documents
from framework.plan import Catalog, Cluster, Engine, Pipeline, PlannedDocument, SecretStore, Topic

Thing = TypeVar("Thing")


@dataclass(kw_only=True)
class Draft:
    """The draft of a plan. Not frozen: each kind of document adds its part and its problems."""

    written: Documents
    problems: list[Problem]
    engine: Engine = field(default_factory=Engine)
    secrets: SecretStore = field(default_factory=SecretStore)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    catalogs: dict[str, Catalog] = field(default_factory=dict)
    homes: dict[str, Catalog] = field(default_factory=dict)  # catalogs that do not list the tables of another catalog
    topics: dict[str, Topic] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)  # topics that have problems
    unclear: set[str] = field(default_factory=set)  # topics whose columns are unknown
    pipelines: tuple[Pipeline, ...] = ()
    without_columns: list[Pipeline] = field(default_factory=list)  # pipelines from topics whose columns are unknown
    documents: list[PlannedDocument] = field(default_factory=list)  # of all other kinds
    schemas: RegistrySchemas = field(default_factory=RegistrySchemas)

    @property
    def lacks_pipelines(self) -> bool:
        """Whether some pipelines have problems, which were reported, and are not in the draft."""
        return len(self.pipelines) < sum(document.kind == "pipeline" for document in self.written.documents)


def only(draft: Draft, things: dict[str, Thing], noun: str, where: Where) -> Thing | None:
    """Returns the only thing of its kind, which other documents need not name. Otherwise reports a problem and returns None."""
    if len(things) == 1:
        return next(iter(things.values()))
    if not things and (draft.written.lost or any(kind == noun for kind, _ in draft.written.names)):
        return None  # its own problem was reported
    if not things:
        draft.problems.append(
            Problem(where, f"no-{noun}", f"there is no `{noun}` in the specs", f"add a document `{noun}: main`")
        )
    else:
        names = ", ".join(f"`{name}`" for name in things)
        hint = f"name one: {names}" if noun == "catalog" else "keep one of them: a topic cannot name its cluster in this version"
        draft.problems.append(Problem(where, f"several-{noun}s", f"there are {len(things)} {noun}s: {names}", hint))
    return None


def unknown(draft: Draft, noun: str, name: str, where: Where, existing: Iterable[str]) -> None:
    """Report a missing thing, unless part of the specs could not be read and may hold it."""
    if not draft.written.lost:
        hint = did_you_mean(name, existing, _existing(noun, existing))
        draft.problems.append(Problem(where, f"unknown-{noun}", f"there is no {noun} `{name}`", hint))


def _existing(noun: str, existing: Iterable[str]) -> str:
    names = sorted(existing)
    if not names and noun == "table":
        return "write a pipeline that writes it: `into: {table: …}`"
    return the_names(noun, names) if names else f"write a document `{noun}: …`"
