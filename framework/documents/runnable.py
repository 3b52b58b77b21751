"""The pipelines that can run although other specs have problems: those that use no document with a problem."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path

from framework.base.errors import Problem
from framework.language import ENVIRONMENTS, Documents
from framework.plan import Pipeline

_OF_NO_PIPELINE = ("alert", "prices")  # kinds of documents that no pipeline uses


def runnable_pipelines(written: Documents, pipelines: Iterable[Pipeline], problems: Iterable[Problem]) -> tuple[Pipeline, ...]:
    problems = tuple(problems)
    if any(_is_of_environment(problem) for problem in problems):
        return ()  # without the values of its environment, a pipeline would run somewhere else
    broken = set(_broken(written, problems))
    if any(kind not in ("pipeline", "topic", *_OF_NO_PIPELINE) for kind, _ in broken):
        return ()  # all pipelines use these documents
    candidates = {pipeline.name: pipeline for pipeline in pipelines if _stands(pipeline, broken)}
    while unfed_names := [name for name, pipeline in candidates.items() if not pipeline.made_of <= candidates.keys()]:
        for name in unfed_names:
            del candidates[name]
    return tuple(candidates.values())


def _is_of_environment(problem: Problem) -> bool:
    return ENVIRONMENTS in Path(problem.where.file).parts and problem.code != "no-environment"


def _stands(pipeline: Pipeline, broken: set[tuple[str, str]]) -> bool:
    uses = {("pipeline", pipeline.name), *(("topic", topic.name) for topic in pipeline.topics)}
    return not uses & broken


def _broken(written: Documents, problems: Iterable[Problem]) -> Iterator[tuple[str, str]]:
    """The documents with problems. Text that cannot be read or has no kind is no document, and no pipeline uses it."""
    places = sorted(written.places)
    documents = {document.node.where: (document.kind, document.name) for document in written.documents}
    for problem in problems:
        index = bisect_right(places, problem.where) - 1
        if index >= 0 and places[index].file == problem.where.file and places[index] in documents:
            yield documents[places[index]]
