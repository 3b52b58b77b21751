"""An alert: conditions on tables, and who is told when one of them begins to hold, and when it no longer does.

`sluice stream` judges alerts while it runs, Dagster's sensor `Alerts` every half a minute, and `sluice alerts` once. Whoever judges: one
message tells that a table's incident has begun, and one that it is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from framework.base.errors import Problem, Where
from framework.documents.draft import Draft, unknown
from framework.features.notices import NoticeUse, Notify, planned
from framework.language import components
from framework.language.kind import Kind
from framework.language.options import ComponentName, ComponentOptions, Document, OptionGroup, option
from framework.language.scalars import Duration, TableName
from framework.plan import Pipeline, PlannedDocument
from framework.plan.alert import Alert as Planned, Condition
from framework.plan.text import duration

EXAMPLE = """\
alert: late_trades
on: {table: markets.flagged_stock_trades}
when: late
notify: [{email: {to: [ops@example.com]}}]
"""
Word = Annotated[str, ComponentName("conditions", having="DOES")]
Conditions = Annotated[OptionGroup, ComponentOptions("conditions")]


@dataclass(frozen=True)
class On(OptionGroup):
    """The tables."""

    exactly_one: ClassVar[bool] = True

    table: TableName | None = option("A table of a pipeline.", default=None, example="markets.flagged_stock_trades")
    tag: dict[str, str] | None = option("Tables of pipelines that have these `tags`.", default=None, example="{tier: gold}")
    all: Literal[True] | None = option("All tables.", default=None, example="true")


@dataclass(frozen=True)
class Alert(Document):
    """Conditions on tables, and who is told of them."""

    when: Word | Conditions | tuple[Word | Conditions, ...] = option(
        "The condition, or a list of them, of which any holds. `late`, `failing` and `suspended` are what `sluice status` says.",
        example="late", aka=["if", "condition", "conditions"],
    )  # fmt: skip
    on: On = option("Which tables; default: all.", default=On(), example="{table: markets.trades}", aka=["for", "tables"])
    doc: str | None = option("What to do then.", default=None, example="Call the desk.", aka=["description"])
    notify: tuple[Notify, ...] = option(
        "Who is told. Without it, `sluice alerts` and Dagster show the alert.",
        default=(),
        example="[{email: {to: [ops@example.com]}}]",
        aka=["send", "to"],
    )
    repeat_every: Duration | None = option(
        "Tell it again while it lasts; default: never.", default=None, example="4h", at_least="1m", aka=["repeat", "remind_every"]
    )
    recovered: bool = option("Tell when it is over, too.", default=True, example="false", aka=["resolve", "resolved"])


def plan_alerts(draft: Draft, documents: tuple[Alert, ...]) -> None:
    for spec in documents:
        pipelines = () if spec.gaps else tuple(_chosen(draft, spec))
        if not pipelines:
            continue
        conditions = tuple(_conditions(draft, spec, pipelines))
        notices = tuple(planned(spec.notify, NoticeUse("alert", lambda text, where: _is_plain(draft, text, where)), draft))
        alert = Planned(
            name=spec.name, environment=pipelines[0].environment, where=spec.place(), doc=spec.doc or "", pipelines=pipelines,
            conditions=conditions, notices=notices, repeat_every=spec.repeat_every, recovered=spec.recovered,
        )  # fmt: skip
        draft.documents.append(
            PlannedDocument(kind="alert", name=spec.name, where=spec.place(), value=alert, says=tuple(_says(alert)))
        )
        names = {pipeline.name for pipeline in pipelines}
        draft.pipelines = tuple(
            replace(pipeline, alerts=(*pipeline.alerts, alert.name)) if pipeline.name in names else pipeline
            for pipeline in draft.pipelines
        )


def _chosen(draft: Draft, spec: Alert) -> Iterator[Pipeline]:
    if spec.on.gaps:
        return
    if spec.on.table is not None:
        named = [pipeline for pipeline in draft.pipelines if pipeline.table.identifier == spec.on.table]
        if not named and not draft.lacks_pipelines:
            unknown(
                draft, "table", spec.on.table, spec.on.place("table"), [pipeline.table.identifier for pipeline in draft.pipelines]
            )
        yield from named
    elif spec.on.tag is not None:
        tagged = [pipeline for pipeline in draft.pipelines if set(spec.on.tag.items()) <= set(pipeline.tags)]
        if not tagged and not draft.lacks_pipelines:
            message = "no pipeline has these tags"
            draft.problems.append(
                Problem(spec.on.place("tag"), "unknown-tag", message, "give pipelines the tags, or name a table")
            )
        yield from tagged
    else:
        yield from draft.pipelines


def _conditions(draft: Draft, spec: Alert, pipelines: Sequence[Pipeline]) -> Iterator[Condition]:
    files = components.current().conditions
    is_list = isinstance(spec.when, tuple)
    written_conditions: Iterable[Any] = spec.when if isinstance(spec.when, tuple) else (spec.when,)
    for index, written in enumerate(written_conditions):
        is_word = isinstance(written, str)
        where = spec.place("when", index) if is_list else spec.place("when")
        file = files.load(written if is_word else written.known_by or "")
        condition = file.plan_condition(None if is_word else written, where, pipelines, draft)
        if condition is not None:
            yield condition


def _is_plain(draft: Draft, text: str, where: Where) -> bool:
    """Whether a text has no times of a window in it."""
    if "{" not in text and "}" not in text:
        return True
    draft.problems.append(
        Problem(
            where, "bad-template", "an alert has no window whose times could stand here", "remove it, or write one without `{…}`"
        )
    )
    return False


def _says(alert: Planned) -> Iterator[str]:
    names = [pipeline.table.identifier for pipeline in alert.pipelines]
    yield f"on {', '.join(names)}" if len(names) <= 3 else f"on {len(names)} tables"
    yield f"when {' or '.join(condition.says for condition in alert.conditions)}"
    yield from (f"then {notice.says}" for notice in alert.notices)
    if alert.repeat_every:
        yield f"again every {duration(alert.repeat_every)}"


KIND = Kind(Alert, plan_alerts, needs=("pipeline", "catalog", "mail", "export", "keys"))
