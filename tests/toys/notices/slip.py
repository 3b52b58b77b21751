"""Writes a line about each written file, or alert, into another file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from framework.documents.draft import Draft
from framework.features.notices import NoticeUse
from framework.language.options import OptionGroup, option
from framework.plan import SecretStore
from framework.plan.notice import Notice, NoticeContent


@dataclass(frozen=True)
class Options(OptionGroup):
    """Write a line into a file."""

    known_by: ClassVar[str | None] = "slip"

    slip: str = option("The file.", example="slips.txt")


def plan_notice(written: Options, _use: NoticeUse, _draft: Draft) -> Notice:
    return Notice(type="slip", says=f"a line in {written.slip}", options=written.slip, send=send)


def send(notice: Notice, about: NoticeContent, _secrets: SecretStore) -> str:
    with Path(notice.options).open("a", encoding="utf-8") as file:
        file.write(f"{about.title}\n")
    return f"a line in {notice.options}"
