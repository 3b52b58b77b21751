"""Notices about written files and alerts, one file each. The file's name is the option of `notify` that names it.

A file has `Options`, `plan_notice(written, use, draft)`, which gives a `Notice` or reports problems, and `send(notice, about, secrets)`,
which returns what was sent, in words, or raises a `SluiceError`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from framework.base.errors import Where
from framework.documents.draft import Draft
from framework.language import components
from framework.language.options import ComponentOptions, OptionGroup
from framework.plan.notice import Notice

Notify = Annotated[OptionGroup, ComponentOptions("notices")]


@dataclass(frozen=True)
class NoticeUse:
    """The document that has the notices. `template` checks a text with times of a window in it. `linked`: whether its file is in an object
    store, and so can have a link."""

    of: Literal["export", "alert"]
    template: Callable[[str, Where], bool]
    linked: bool = False


def planned(notify: Iterable[Any], use: NoticeUse, draft: Draft) -> Iterator[Notice]:
    """Plans the items of a document's `notify`."""
    for written in notify:
        notice = components.current().notices.load(written.known_by or "").plan_notice(written, use, draft)
        if notice is not None:
            yield notice
