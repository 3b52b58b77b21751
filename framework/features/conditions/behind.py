"""A follower of a table, or an export, lags behind it for long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from framework.base.errors import Problem, Where
from framework.base.spelling import did_you_mean
from framework.documents.draft import Draft
from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration
from framework.plan import Pipeline
from framework.plan.alert import Condition, FollowerFacts, TableFacts, Verdict
from framework.plan.text import duration

_ANY = "any"


@dataclass(frozen=True)
class Options(OptionGroup):
    """A follower, which a pipeline names in `also` or `publish`, lags behind its table for so long, or an export's file has been due for so
    long."""

    known_by: ClassVar[str | None] = "behind"

    behind: str = option(
        "The topic, the catalog or the export that lags behind, `delta`, or `any` of them.", example="open_catalog"
    )
    for_: Duration = option("For how long.", default=3600, example="1h", aka=["longer_than", "in"])


def plan_condition(written: Options, _where: Where, pipelines: Sequence[Pipeline], draft: Draft) -> Condition:
    followers = [
        word for pipeline in pipelines for follower in (*pipeline.also, *pipeline.published) for word in follower.title.split()
    ]
    exports = [
        document.value
        for document in draft.documents
        if document.kind == "export" and document.value.pipeline.name in {pipeline.name for pipeline in pipelines}
    ]
    unscheduled = [export for export in exports if export.name == written.behind and export.schedule is None]
    names = [*followers, *(export.name for export in exports if export.schedule)]
    is_broken = ("export", written.behind) in draft.written.names and written.behind not in _planned_exports(draft)
    if unscheduled and written.behind not in followers:
        message = f"the export `{written.behind}` has no schedule, so it is never late"
        hint = f"remove it, or write a `schedule` into the export `{written.behind}`"
        draft.problems.append(Problem(written.place("behind"), "no-schedule", message, hint))
    elif not draft.lacks_pipelines and not is_broken and written.behind not in (*names, *([_ANY] if names else [])):
        message = f"these tables have no follower and no export of the name `{written.behind}`"
        hint = did_you_mean(written.behind, names, f"write `{_ANY}`" if names else "remove it: they have neither")
        draft.problems.append(Problem(written.place("behind"), "unknown-follower", message, hint))
    says = f"`{written.behind}` lags behind for {duration(written.for_)}"
    return Condition(type="behind", says=says, options=(written.behind, written.for_), judge=judge)


def _planned_exports(draft: Draft) -> set[str]:
    return {document.name for document in draft.documents if document.kind == "export"}


def judge(condition: Condition, table: TableFacts) -> Verdict:
    name, seconds = condition.options
    exports = {export: late for export, late in table.exports.items() if name in (_ANY, export)}
    late = [
        f"a file of the export {export} has been due for more than {duration(seconds)}"
        for export, due_for in exports.items()
        if due_for is not None and due_for >= seconds
    ]
    late += _late_followers(condition, table, table.followers or {})
    is_known = table.followers is not None and None not in exports.values()
    return "; ".join(late) or (False if is_known else None)


def _late_followers(condition: Condition, table: TableFacts, followers: Mapping[str, FollowerFacts]) -> Iterator[str]:
    """A follower that shows something meanwhile is not behind for long, however much waits."""
    name, seconds = condition.options
    for title, follower in followers.items():
        if name in (_ANY, *title.split()):
            lasted = table.lasted(f"behind {title} {follower.snapshot}", follower.rows > 0)
            if follower.rows and lasted >= seconds:
                yield f"the {title} lags behind by {follower.rows:,} for more than {duration(seconds)}"
