"""A follower of a table lags behind it for long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from framework.base.errors import Problem, Where
from framework.base.spelling import did_you_mean
from framework.documents.draft import Draft
from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration
from framework.plan import Pipeline
from framework.plan.alert import Condition, TableFacts, Verdict
from framework.plan.text import duration

_ANY = "any"


@dataclass(frozen=True)
class Options(OptionGroup):
    """A follower, which a pipeline names in `also` or `publish`, lags behind its table for so long."""

    known_by: ClassVar[str | None] = "behind"

    behind: str = option("The topic or catalog that lags behind, `delta`, or `any` of them.", example="open_catalog")
    for_: Duration = option("For how long.", default=3600, example="1h", aka=["longer_than", "in"])


def plan_condition(written: Options, _where: Where, pipelines: Sequence[Pipeline], draft: Draft) -> Condition:
    names = [
        word for pipeline in pipelines for follower in (*pipeline.also, *pipeline.published) for word in follower.title.split()
    ]
    if any(kind == "export" and name == written.behind for kind, name in draft.written.names):
        message, hint = (
            "an alert for an export that is late is not in this version of Sluice",
            "remove it: Dagster shows it on the export's page",
        )
        draft.problems.append(Problem(written.place("behind"), "not-in-this-version", message, hint))
    elif not draft.lacks_pipelines and written.behind not in (*names, *([_ANY] if names else [])):
        message = f"nothing that these pipelines name in `also` or `publish` is called `{written.behind}`"
        hint = did_you_mean(written.behind, names, f"write `{_ANY}`" if names else "remove it: they have neither")
        draft.problems.append(Problem(written.place("behind"), "unknown-follower", message, hint))
    says = f"`{written.behind}` lags behind for {duration(written.for_)}"
    return Condition(type="behind", says=says, options=(written.behind, written.for_), judge=judge)


def judge(condition: Condition, table: TableFacts) -> Verdict:
    """A follower that shows something meanwhile is not behind for long, however much waits."""
    if table.followers is None:
        return None
    name, seconds = condition.options
    late = []
    for title, follower in table.followers.items():
        if name in (_ANY, *title.split()):
            lasted = table.lasted(f"behind {title} {follower.snapshot}", follower.rows > 0)
            if follower.rows and lasted >= seconds:
                late.append(f"the {title} lags behind by {follower.rows:,} for more than {duration(seconds)}")
    return "; ".join(late) or False
