"""The table of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from framework.base.errors import Problem
from framework.documents.draft import Draft, only, unknown
from framework.documents.pipeline import keyed, memory, totals
from framework.documents.pipeline.partitions import partition_fields, sort_columns
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.documents.pipeline.written_into import Into as WrittenInto
from framework.documents.rows import Rows, stored_name_problems
from framework.documents.write_mode import write_mode
from framework.plan import Catalog, Column, Keyed, Rule, SchemaChanges, Step, Table
from framework.plan.totals import Totals


def plan_table(draft: Draft, spec: WrittenPipeline, rows: Rows, rule: Rule, steps: tuple[Step, ...]) -> Table | None:
    into = spec.into
    catalog = (
        draft.catalogs.get(into.catalog)
        if into.catalog
        else only(draft, draft.homes or draft.catalogs, "catalog", into.place("table"))
    )
    if into.catalog and ("catalog", into.catalog) not in draft.written.names:
        unknown(draft, "catalog", into.catalog, into.place("catalog"), draft.catalogs)
    catalog = catalog or Catalog("", "")  # the missing catalog was reported
    columns = _columns(into, rows, rule)
    draft.problems.extend(stored_name_problems(columns, into.place("table")))
    rows = replace(rows, columns=columns)
    partitions, order = partition_fields(into, rows), sort_columns(into, rows)
    if isinstance(rule, Totals):
        draft.problems.extend(totals.moving(rule, partitions, into))
    if "table" in into.gaps:
        return None
    namespace, name = into.table.split(".")
    step = next((candidate for candidate in steps if candidate.memory), None)
    if into.adopt and (step or write_mode(into.write).rows_change):
        reason = f"`{step.name}` remembers rows" if step else f"`write: {into.write}` decides by what Sluice knows of each row"
        message = f"`adopt` keeps the rows that are there, of which Sluice knows nothing, and {reason}"
        hint = "use `write: append` without such a step, or load the older rows from a topic"
        draft.problems.append(Problem(into.place("adopt"), "cannot-adopt", message, hint))
    options = ("table", "partition_by", "sort_by", "format_version", "kafka_columns", "schema_changes", "write", "adopt")
    return Table(
        catalog=catalog, namespace=namespace, name=name, columns=columns, write=write_mode(into.write),
        partition_by=partitions, sort_by=order,
        format_version=into.format_version, doc=spec.doc or "", masked=_masked(steps, columns), rule=rule,
        step_states=memory.states(steps, columns, draft.problems), adopt=into.adopt,
        schema_changes=SchemaChanges(
            add=into.schema_changes.add,
            widen=into.schema_changes.widen,
            drop=into.schema_changes.drop,
            rename=into.schema_changes.rename,
            narrow=into.schema_changes.narrow,
        ),
        places={option: into.place(option) for option in options},
    )  # fmt: skip


def _columns(into: WrittenInto, rows: Rows, rule: Rule) -> tuple[Column, ...]:
    """Returns the columns of the table: totals, or the steps' columns and those that the write mode or Kafka adds."""
    if isinstance(rule, Totals):
        return totals.columns(rule)
    if isinstance(rule, Keyed):
        return keyed.columns(rule, write_mode(into.write), rows)
    return (*rows.columns, *rows.kafka) if into.kafka_columns else rows.columns


def _masked(steps: tuple[Step, ...], columns: Iterable[Column]) -> tuple[tuple[str, ...], ...]:
    """Returns the masked paths of columns that the table has."""
    names = {column.name for column in columns}
    return tuple(dict.fromkeys(path for step in steps if step.masks for path in step.masks.paths if path[0] in names))
