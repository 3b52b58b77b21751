"""A key of a document `keys` is to be replaced soon, or should have been: one of the table's pipeline, or of no pipeline at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from framework.base.amounts import span
from framework.base.errors import Problem, Where
from framework.documents.draft import Draft
from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration
from framework.plan import Pipeline
from framework.plan.alert import Condition, TableFacts, Verdict
from framework.plan.text import duration


@dataclass(frozen=True)
class Options(OptionGroup):
    """A key of a document `keys` is to be replaced so soon, or should have been."""

    known_by: ClassVar[str | None] = "key_ends_within"

    key_ends_within: Duration = option("How soon.", example="7d")


def plan_condition(written: Options, _where: Where, _pipelines: Sequence[Pipeline], draft: Draft) -> Condition:
    planned = [document.value for document in draft.documents if document.kind == "keys"]
    lacks_none = len(planned) == sum(kind == "keys" for kind, _ in draft.written.names)
    if lacks_none and not any(keys.rotate_every for keys in planned):
        message = "no key ends: no document `keys` has `rotate_every`"
        hint = "add a document `keys: …` with `rotate_every: 30d`"
        draft.problems.append(Problem(written.key_place("key_ends_within"), "no-keys", message, hint))
    says = f"a key ends within {duration(written.key_ends_within)}"
    return Condition(type="key_ends_within", says=says, options=written.key_ends_within, judge=judge)


def judge(condition: Condition, table: TableFacts) -> Verdict:
    soon = [(name, left) for name, left in sorted(table.keys().items()) if left <= condition.options]
    texts = (f"the key {name} is to be replaced {f'in {span(left)}' if left > 0 else 'now'}" for name, left in soon)
    return "; ".join(texts) or False
