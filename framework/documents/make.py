"""Turn documents into a plan. Each kind of document is resolved after the kinds that it needs."""

from __future__ import annotations

from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

from framework.base.errors import MOST_PROBLEMS, Problem, SpecError
from framework.documents.draft import Draft
from framework.documents.runnable import runnable_pipelines
from framework.documents.topic.registered import OtherSubjects, RegistrySchemas
from framework.language import Documents, extensions, kind as kinds, load, without_collection
from framework.plan import LaterPlan, Pipeline, Plan


def make(folder: Path, environment: str = "local") -> Plan:
    """The plan of the specs in a folder. Raises SpecError with all problems."""
    plan, problems = draft(folder, environment)
    if problems:
        raise SpecError(problems)
    return plan


_REGISTRY_CODES = ("registry-", "no-subject", "unsupported-schema")
"""Prefixes of the codes of problems with registries, which leave a topic without columns and need no edit of the specs."""


def make_without_registries(folder: Path, environment: str = "local") -> Plan:
    """Returns a plan for work that needs no schemas, also with topics and pipelines whose columns a registry does not tell now.
    Raises SpecError with all other problems."""
    with without_collection(), extensions.project(folder.absolute().parent):
        written = load(folder, environment)
        resolved = plan_documents(Draft(written=written, problems=list(written.problems)))
    problems = [problem for problem in resolved.problems if not problem.code.startswith(_REGISTRY_CODES)]
    if problems:
        raise SpecError(problems)
    pipelines = sorted((*resolved.pipelines, *resolved.without_columns), key=lambda pipeline: pipeline.name)
    return replace(_plan(environment, resolved), topics=tuple(resolved.topics.values()), pipelines=tuple(pipelines))


def draft(folder: Path, environment: str = "local", logins: bool = True) -> tuple[Plan, tuple[Problem, ...]]:
    """The plan of everything that has no problem, and all problems. Without `logins`, no registry with a login is asked."""
    return parts(folder, environment, logins)[:2]


def parts(
    folder: Path, environment: str = "local", logins: bool = True
) -> tuple[Plan, tuple[Problem, ...], tuple[Pipeline, ...]]:
    """The result of `draft`, and the pipelines that can run in spite of the problems."""
    with without_collection(), extensions.project(folder.absolute().parent):
        written = load(folder, environment)
        context = copy_context()  # planning again uses the same steps of the user
        plan, problems, runnable = _parts(environment, written, {}, logins)

    def again(extra_schemas: OtherSubjects) -> LaterPlan:
        plan, problems, runnable = context.copy().run(_parts, environment, written, extra_schemas)
        return LaterPlan(replace(plan, again=again), problems, runnable)

    return replace(plan, again=again), problems, runnable


def _parts(
    environment: str, written: Documents, extra_schemas: OtherSubjects, logins: bool = True
) -> tuple[Plan, tuple[Problem, ...], tuple[Pipeline, ...]]:
    draft = plan_documents(
        Draft(written=written, problems=list(written.problems), schemas=RegistrySchemas(also=extra_schemas, logins=logins))
    )
    plan = _plan(environment, draft)
    candidates = () if len(draft.problems) > MOST_PROBLEMS else draft.pipelines  # beyond that number, checks stop early
    return plan, SpecError(draft.problems).problems, runnable_pipelines(draft.written, candidates, draft.problems)


def _plan(environment: str, draft: Draft) -> Plan:
    return Plan(
        environment=environment,
        engine=draft.engine,
        secrets=draft.secrets,
        clusters=tuple(draft.clusters.values()),
        catalogs=tuple(draft.catalogs.values()),
        topics=tuple(topic for topic in draft.topics.values() if topic.name not in draft.broken),
        pipelines=draft.pipelines,
        documents=tuple(draft.documents),
    )


def plan_documents(draft: Draft, *kind_names: str) -> Draft:
    """Resolves the documents of these kinds and of the kinds that they need, or all documents, and returns the draft."""
    all_kinds = kinds.document_kinds()
    needed_names = {
        *kind_names,
        *(needed_name for name in kind_names for needed_name in all_kinds[name].needs),
    } or all_kinds.keys()
    for name, kind in all_kinds.items():
        documents = draft.written.of(kind.document) if name in needed_names else ()
        draft.problems.extend(
            Problem(extra.place(), "one-only", f"there is a second `{name}`", f"the first is at {documents[0].place()}")
            for extra in (documents[1:] if kind.one_only else ())
        )
        kind.plan(draft, documents)
    return draft
