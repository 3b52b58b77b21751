"""Which pipelines can run although other specs have problems: those that no problem stands in or behind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from framework.errors import Problem
from framework.model import Pipeline
from framework.spec import Written


def sound(written: Written, pipelines: Iterable[Pipeline], problems: Iterable[Problem]) -> tuple[Pipeline, ...]:
    broken = set(_broken(written, problems))
    if any(kind not in ("pipeline", "topic") for kind, _ in broken):
        return ()  # what all pipelines use
    found = {each.name: each for each in pipelines if _stands(each, broken)}
    while left := [name for name, each in found.items() if each.source and each.source.pipeline not in found]:
        for name in left:
            del found[name]
    return tuple(found.values())


def _stands(pipeline: Pipeline, broken: set[tuple[str, str]]) -> bool:
    uses = {("pipeline", pipeline.name), *(("topic", topic.name) for topic in pipeline.topics)}
    return not uses & broken


def _broken(written: Written, problems: Iterable[Problem]) -> Iterator[tuple[str, str]]:
    """The documents in which problems stand. What is no document, because it cannot be read or has no kind, is used by none."""
    places = sorted(written.places)
    documents = {document.node.where: (document.kind, document.name) for document in written.documents}
    for problem in problems:
        at = bisect_right(places, problem.where) - 1
        if at >= 0 and places[at].file == problem.where.file and places[at] in documents:
            yield documents[places[at]]
