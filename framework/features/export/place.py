"""Where the file of an export appears: in a folder of the project. `bucket.py` has object stores."""

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
"""An address of a file that is valid for so many seconds from a moment on."""


class Place(Protocol):
    @property
    def file(self) -> str:
        """As people and records name it."""

    @property
    def link(self) -> Link | None:
        """None where the file has no address by which others reach it."""

    def draft(self, scratch: Path) -> AbstractContextManager[Path]:
        """The name of a file that becomes the export's. What is left of it in the end is removed."""

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
        """Beside the file, which is on the same disk."""
        draft = self.target.with_name(f".{self.target.name[:100]}-{uuid.uuid4().hex}.part")
        try:
            yield draft
        finally:
            draft.unlink(missing_ok=True)

    def take(self, draft: Path, _about: Mapping[str, str]) -> None:
        draft.replace(self.target)


def in_folder(export: Export, span: Span | None) -> InFolder:
    """Inside the project also after links are followed."""
    written = name(export, span)
    target = Path.cwd() / written
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        what = f"{written}, the file of {export.name}, needs a folder where a file is: {error.filename}"
        raise SluiceError("bad-location", what, "move that file, or write another path under `file: {to: …}`") from None
    real = target.parent.resolve() / target.name
    if not real.is_relative_to(Path.cwd().resolve()) or target.is_dir():
        why = "is a folder" if target.is_dir() else "leads out of the project"
        raise SluiceError(
            "bad-location", f"{written}, the file of {export.name}, {why}", "write another path under `file: {to: …}`"
        )
    return InFolder(str(real.relative_to(Path.cwd().resolve())), real)
