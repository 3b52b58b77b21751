"""The declaration of a kind of document, as a file of `framework.documents.kinds` makes it. The documents that every part of a plan
reads are here, too: topics, and pipelines with their tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from framework.base import components
from framework.documents.pipeline.written import Batch, From, Pipeline, Run
from framework.documents.pipeline.written_expectation import Expectation
from framework.documents.pipeline.written_into import Deletes, Into
from framework.documents.pipeline.written_maintain import Maintain
from framework.documents.pipeline.written_tests import BadRow, GivenMessage, Message, Test
from framework.documents.topic.written import Column, Generate, Generated, Key, Topic
from framework.language.options import Kind

PACKAGE = "framework.documents.kinds"
LATER = ("mirror",)


def leaves_the_plan_alone(_draft: Any, _documents: Any) -> None:
    """The `resolve` of a kind that is used while specs are read and adds nothing to a plan."""


@dataclass(frozen=True)
class DocumentKind:
    """A kind of document. Its file has one as `KIND`."""

    document: type[Kind]
    resolve: Callable[[Any, Any], None] = leaves_the_plan_alone  # adds the documents' part, and their problems, to a plan's draft
    _: KW_ONLY
    needs: tuple[str, ...] = ()  # the kinds that are resolved before it
    same_everywhere: bool = False  # no environment replaces such documents
    one_only: bool = False  # at most one such document is allowed


def document_kinds() -> Mapping[str, DocumentKind]:
    """The kinds by name. A kind follows the kinds that it needs."""
    kinds: dict[str, DocumentKind] = {name: file.KIND for name, file in components.load_all(PACKAGE).items()}

    def depth(name: str) -> int:
        return 1 + max(map(depth, kinds[name].needs), default=0)

    return {name: kinds[name] for name in sorted(kinds, key=lambda name: (depth(name), name))}


def document_types() -> Mapping[str, type[Kind]]:
    return {name: kind.document for name, kind in document_kinds().items()}


def later_kinds() -> tuple[str, ...]:
    """The kinds of the language that this version lacks."""
    return tuple(name for name in LATER if name not in components.names(PACKAGE))


__all__ = [
    "BadRow", "Batch", "Column", "Deletes", "DocumentKind", "Expectation", "From", "Generate", "Generated", "GivenMessage", "Into",
    "Key", "Kind", "Maintain", "Message", "Pipeline", "Run", "Test", "Topic", "document_kinds", "document_types", "later_kinds",
]  # fmt: skip
