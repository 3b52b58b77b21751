"""The declaration of a kind of document, such as `topic`. Its file has one as `KIND`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from framework.language import components
from framework.language.options import Document

LATER = ("mirror",)


def leaves_the_plan_alone(_draft: Any, _documents: Any) -> None:
    """The `plan` of a kind that is used while specs are read and adds nothing to a plan."""


@dataclass(frozen=True)
class Kind:
    """A kind of document. Its file has one as `KIND`."""

    document: type[Document]
    plan: Callable[[Any, Any], None] = leaves_the_plan_alone  # adds the documents' part, and their problems, to a plan's draft
    _: KW_ONLY
    needs: tuple[str, ...] = ()  # the kinds that are resolved before it
    same_everywhere: bool = False  # no environment replaces such documents
    one_only: bool = False  # at most one such document is allowed


def document_kinds() -> Mapping[str, Kind]:
    """The kinds by name. A kind follows the kinds that it needs."""
    kinds: dict[str, Kind] = {name: file.KIND for name, file in components.current().kinds.load_all().items()}

    def depth(name: str) -> int:
        return 1 + max(map(depth, kinds[name].needs), default=0)

    return {name: kinds[name] for name in sorted(kinds, key=lambda name: (depth(name), name))}


def document_types() -> Mapping[str, type[Document]]:
    return {name: kind.document for name, kind in document_kinds().items()}


def later_kinds() -> tuple[str, ...]:
    """The kinds of the language that this version lacks."""
    return tuple(name for name in LATER if name not in components.current().kinds.names())
