"""A word about a pipeline, which `sluice plan` shows. A toy: all that a kind of document needs is in this file."""

from __future__ import annotations

from dataclasses import dataclass

from framework.documents.draft import Draft, unknown
from framework.language.kind import Kind
from framework.language.options import Document, option
from framework.language.scalars import Name
from framework.plan import PlannedDocument

EXAMPLE = """\
reminder: hello
about: flagged_stock_trades
text: ask the sender for the currency
"""


@dataclass(frozen=True)
class Reminder(Document):
    """A word about a pipeline."""

    about: Name = option("The pipeline.", example="flagged_stock_trades", aka=["pipeline"])
    text: str = option("What to remember.", example="ask the sender for the currency", aka=["note"])


def plan_reminders(draft: Draft, documents: tuple[Reminder, ...]) -> None:
    pipelines = [name for kind, name in draft.written.names if kind == "pipeline"]
    for reminder in documents:
        if reminder.about not in pipelines:
            unknown(draft, "pipeline", reminder.about, reminder.place("about"), pipelines)
        says = (f"about {reminder.about}: {reminder.text}",)
        draft.documents.append(
            PlannedDocument(kind="reminder", name=reminder.name, where=reminder.place(), value=reminder, says=says)
        )


KIND = Kind(Reminder, plan_reminders, needs=("pipeline",))
