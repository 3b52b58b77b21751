"""Type the steps of a pipeline, each by the rows before it. After a step that cannot be read, the known columns stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, cast

from framework.base import types
from framework.base.errors import Problem, Where
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.documents.rows import Resolved, Rows
from framework.language import extensions
from framework.language.node import YamlNode
from framework.language.options import StepDocument
from framework.plan import Column, Computed, Step, digest
from framework.plan.totals import Groups


def plan_steps(spec: WrittenPipeline, rows: Rows) -> tuple[tuple[Step, ...], Rows, dict[int, Any], Groups | None]:
    """Returns the steps, the rows after them, the judges of how rows land by step index, and the groups of `aggregate`."""
    steps: list[Step] = []
    groups = None
    judges: dict[int, Any] = {}
    steps_by_node = {step.node: step for step in spec.steps}
    node = spec.node.get("steps")
    if "steps" in spec.gaps and not (node and node.items):
        rows = replace(rows, columns=(), more=True)
    for item in node.items if node else ():
        written = steps_by_node.get(item)
        if written is None:
            rows = _after(item, rows)
            continue
        resolved = _resolved_step(written, rows)
        attempts = tuple((name, sql) for sql, name in rows.attempts.items())
        rows = replace(rows, columns=resolved.columns, more=rows.more or resolved.more, attempts={})
        groups = resolved.groups or groups
        if resolved.landing:
            judges[len(steps)] = resolved.landing
        steps.append(Step.of(resolved, name=written.name, where=written.place(), attempts=attempts))
    return tuple(steps), rows, judges, groups


def _after(step: YamlNode, rows: Rows) -> Rows:
    """The known columns after a step that could not be read."""
    added = _added_columns(step)
    if added is None:
        return replace(rows, columns=(), more=True)
    return replace(rows, columns=rows.with_columns(Column(name, types.VOID, "", where=where) for name, where in added))


def _added_columns(step: YamlNode) -> list[tuple[str, Where]] | None:
    """The columns that a step adds, if the step changes no others; else None."""
    name, options = (step.entries[0][0].text, step.entries[0][1]) if step.entries else ("", step)
    extension = extensions.find(extensions.STEPS).get(name)
    if extension is None or extension.adds is None:
        return None
    if extension.adds == "*":
        return [(key.text, key.where) for key, _ in options.entries] if options.kind == "map" else None
    if not extension.adds:
        return []
    name_node = options.get(extension.adds)
    return [(name_node.text, name_node.where)] if name_node and name_node.kind == "scalar" else None


def without_type(spec: WrittenPipeline, steps: tuple[Step, ...], rows: Rows) -> Iterator[Problem]:
    joined = [column for step in steps if step.join for column in step.join.source.columns]
    if any(column.type == types.VOID for column in (*rows.columns, *joined)):
        return  # why it is unknown was reported
    for column in steps[-1].columns if steps else ():
        if column.type == types.VOID:
            hint = "give it a type: `cast(null as string)`"
            yield Problem(column.where or spec.place("steps"), "no-type", f"the column `{column.name}` has no type", hint)


def _resolved_step(written: StepDocument, rows: Rows) -> Resolved:
    extension = extensions.find(extensions.STEPS)[written.name]
    if not extension.loaded:
        return Resolved((), more=True)
    if extension.built_in:
        return cast(Resolved, extension.resolve(written, rows))
    if rows.more or any(column.type == types.VOID for column in rows.columns):  # own steps need not handle unknown types
        return Resolved(rows.columns, more=True)
    try:
        resolved = extension.resolve(written, rows)
        if not isinstance(resolved, Resolved):
            raise TypeError("resolve must return a Resolved")
        _require_plain(resolved)
    except (Exception, SystemExit) as error:  # the step's code is the user's
        rows.problems.append(extensions.broken(error, extension.file))
        return Resolved(rows.columns, more=True)
    return resolved


def _require_plain(resolved: Resolved) -> None:
    """Raise a TypeError if a step of a user's own returns objects by which one plan cannot be told from another."""
    digest.text(tuple(getattr(resolved, part.name) for part in fields(Computed)))
