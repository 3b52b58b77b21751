"""The place of an export's file: here, a folder of the project; in `bucket.py`, an object store."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from framework.base.errors import SluiceError
from framework.features.export.window import Span
from framework.plan.export import Export

Link = Callable[[int, datetime], str]
"""Returns an address of a file that is valid for some seconds, from a time on."""


class Place(Protocol):
    @property
    def file(self) -> str:
        """The name of the file for people and in records."""

    @property
    def link(self) -> Link | None:
        """The function that gives an address of the file; None if others cannot reach the file."""

    def draft(self, scratch: Path) -> AbstractContextManager[Path]:
        """The path of a draft that becomes the export's file. At the end, a remaining draft is removed."""

    def take(self, draft: Path, about: Mapping[str, str]) -> None:
        """Makes the draft the export's file, whole or not at all."""


def name(export: Export, span: Span | None) -> str:
    return export.to.format(window_start=span.start, window_end=span.end) if span else export.to.format()


@dataclass(frozen=True)
class InFolder:
    """A file in the project."""

    file: str
    target: Path
    link: Link | None = None

    @contextmanager
    def draft(self, _scratch: Path) -> Iterator[Path]:
        """The path of a draft next to the file, on the same disk."""
        draft = self.target.with_name(f".{self.target.name[:100]}-{uuid.uuid4().hex}.part")
        try:
            yield draft
        finally:
            draft.unlink(missing_ok=True)

    def take(self, draft: Path, _about: Mapping[str, str]) -> None:
        draft.replace(self.target)


def in_folder(export: Export, span: Span | None) -> InFolder:
    """The file of an export in the project. Refuses a path that leads out of the project, also by a link."""
    file = name(export, span)
    target = Path.cwd() / file
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        message = f"{file}, the file of {export.name}, needs a folder where a file is: {error.filename}"
        raise SluiceError("bad-location", message, "move that file, or write another path under `file: {to: …}`") from None
    real = target.parent.resolve() / target.name
    if not real.is_relative_to(Path.cwd().resolve()) or target.is_dir():
        reason = "is a folder" if target.is_dir() else "leads out of the project"
        raise SluiceError(
            "bad-location", f"{file}, the file of {export.name}, {reason}", "write another path under `file: {to: …}`"
        )
    return InFolder(str(real.relative_to(Path.cwd().resolve())), real)
