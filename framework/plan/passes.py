"""From written documents to a plan: each kind of document resolves its own, behind the kinds that it needs."""

from __future__ import annotations

from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

from framework.errors import MOST_PROBLEMS, Problem, SpecError
from framework.model import Pipeline, Plan, Replanned
from framework.plan.draft import Draft
from framework.plan.registered import Also, Schemas
from framework.plan.runnable import sound
from framework.spec import Written, extensions, kinds, load, without_collection


def make(folder: Path, environment: str = "local") -> Plan:
    """The plan of the specs in a folder, or all their problems at once."""
    plan, problems = draft(folder, environment)
    if problems:
        raise SpecError(problems)
    return plan


def draft(folder: Path, environment: str = "local", logins: bool = True) -> tuple[Plan, tuple[Problem, ...]]:
    """What can be planned, and all problems. Without `logins` no registry is asked that wants one."""
    return parts(folder, environment, logins)[:2]


def parts(
    folder: Path, environment: str = "local", logins: bool = True
) -> tuple[Plan, tuple[Problem, ...], tuple[Pipeline, ...]]:
    """As `draft`, and the pipelines that can run whatever is wrong elsewhere."""
    with without_collection(), extensions.project(folder.absolute().parent):
        written = load(folder, environment)
        here = copy_context()  # planned again, own steps are those that were found the first time
        plan, problems, known = _parts(environment, written, {}, logins)

    def again(also: Also) -> Replanned:
        plan, problems, runnable = here.run(_parts, environment, written, also)
        return Replanned(replace(plan, again=again), problems, runnable)

    return replace(plan, again=again), problems, known


def _parts(
    environment: str, written: Written, also: Also, logins: bool = True
) -> tuple[Plan, tuple[Problem, ...], tuple[Pipeline, ...]]:
    made = resolve(Draft(written=written, problems=list(written.problems), schemas=Schemas(also=also, logins=logins)))
    plan = Plan(
        environment=environment,
        engine=made.engine,
        secrets=made.secrets,
        clusters=tuple(made.clusters.values()),
        catalogs=tuple(made.catalogs.values()),
        topics=tuple(topic for topic in made.topics.values() if topic.name not in made.broken),
        pipelines=made.pipelines,
        documents=tuple(made.documents),
    )
    known = () if len(made.problems) > MOST_PROBLEMS else made.pipelines  # of more, not all has been looked at
    return plan, SpecError(made.problems).problems, sound(made.written, known, made.problems)


def resolve(made: Draft, *only: str) -> Draft:
    """The draft with its documents resolved: those of these kinds, or all."""
    for name, kind in kinds.document_kinds().items():
        documents = made.written.of(kind.document) if not only or name in only else ()
        made.problems.extend(
            Problem(extra.place(), "one-only", f"there is a second `{name}`", f"the first is at {documents[0].place()}")
            for extra in (documents[1:] if kind.one_only else ())
        )
        kind.resolve(made, documents)
    return made
