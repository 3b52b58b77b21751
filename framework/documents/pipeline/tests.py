"""Resolve a pipeline's tests: the given messages, or rows of the table that the pipeline reads, and the expected typed rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from framework.base.errors import MOST_PROBLEMS, Problem, Where
from framework.base.spelling import did_you_mean, the_names
from framework.documents.pipeline.test_messages import TestMessages, kafka_name
from framework.documents.pipeline.test_values import BadValue, read
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.documents.pipeline.written_tests import (
    BadRow as WrittenBadRow,
    GivenMessage as WrittenGivenMessage,
    Test as WrittenTest,
)
from framework.documents.topic.written import Topic as WrittenTopic
from framework.language.node import YamlNode
from framework.plan import Column, Pipeline, SpecTest, SpecTestRow


def plan_tests(
    pipeline: Pipeline, spec: WrittenPipeline, topics: Iterable[WrittenTopic], problems: list[Problem], sure: bool
) -> tuple[SpecTest, ...]:
    """The tests without problems. If the pipeline's faults are not `sure`, the codes and stages of bad rows are not checked."""
    if not spec.tests:
        return ()
    # All topics of one pipeline have the same columns.
    topic = next((topic for topic in topics if pipeline.topics and topic.name == pipeline.topic.name), None)
    if topic and "value" in topic.gaps:
        return ()  # the format of messages is unknown
    reader = _Reader(pipeline, topic, problems, sure)
    by_name: dict[str, WrittenTest] = {}
    examples = []
    for test in spec.tests:
        if len(problems) > MOST_PROBLEMS:
            break
        first_test = by_name.setdefault(test.name, test)
        if first_test is not test:
            hint = f"the first is at {first_test.place()}: rename one of them"
            problems.append(Problem(test.place("name"), "duplicate-name", f"there are two tests `{test.name}`", hint))
        problems_before = len(problems)
        example = reader.example(test)
        if len(problems) == problems_before:
            examples.append(example)
    return tuple(examples)


@dataclass
class _Reader:
    pipeline: Pipeline
    topic: WrittenTopic | None  # None: the pipeline reads a table
    problems: list[Problem]
    sure: bool

    def example(self, test: WrittenTest) -> SpecTest:
        self.refuse_missing(test)
        message = (
            TestMessages(pipeline=self.pipeline, topic=self.topic, problems=self.problems, test=test).message
            if self.topic
            else None
        )
        items = [] if self.pipeline.select else self.given(test)
        given_items = tuple(message(*item) if message else self.given_row(test, *item) for item in items)
        expect = None
        if test.expect is not None:
            table = self.pipeline.table
            expect = tuple(
                self.row(row, test, ("expect", index), table.columns, table.identifier) for index, row in enumerate(test.expect)
            )
        bad = tuple(self.bad_row(row) for row in test.expect_bad or ())
        return SpecTest(
            name=test.name, where=test.place(), given=given_items, expect=expect, expect_bad=bad, tables=dict(self.tables(test))
        )

    def refuse_missing(self, test: WrittenTest) -> None:
        """Refuses a test without what its pipeline reads."""
        selects = self.pipeline.select is not None
        if selects and test.given:
            hint = f"write `tables: {{{self.pipeline.sources[0]}: […]}}`"
            self.refuse(
                test.key_place("given"),
                "not-a-row",
                f"`{self.pipeline.name}` reads tables: their rows stand under `tables`",
                hint,
            )
        elif not test.given and "given" not in test.gaps and not selects:
            hint = "write `given: [{…}]`, each with some columns"
            self.refuse(test.place(), "missing-key", "a test needs `given`, the messages or rows", hint)
        elif selects and not test.tables:
            hint = f"write `tables: {{{self.pipeline.sources[0]}: […]}}`"
            self.refuse(test.place(), "missing-key", "a test needs `tables`, the rows of the tables that are read", hint)

    def tables(self, test: WrittenTest) -> Iterator[tuple[str, tuple[Mapping[str, Any], ...]]]:
        tables = self.pipeline.read_tables if self.pipeline.select else ()
        sources = {source.identifier: source for source in (*tables, *self.pipeline.looked_up)}
        for name, rows in test.tables.items():
            if name not in sources:
                hint = did_you_mean(name, sources, the_names("table", sources) if sources else "remove `tables`")
                message = f"`{self.pipeline.name}` looks no rows up in `{name}`"
                self.refuse(test.key_place("tables", name), "unknown-table", message, hint)
                continue
            columns = (*sources[name].columns, *sources[name].kafka)
            yield name, tuple(self.row(row, test, ("tables", name, index), columns, name) for index, row in enumerate(rows))

    def given(self, test: WrittenTest) -> Iterator[tuple[int, int, WrittenGivenMessage | Mapping[str, YamlNode]]]:
        """The given messages or rows, each with its batch and its index in the list."""
        batch, is_empty = 1, True
        for index, item in enumerate(test.given):
            if not isinstance(item, str):
                yield batch, index, item
                is_empty = False
                continue
            if is_empty or index + 1 == len(test.given):
                noun = "messages" if self.topic else "rows"
                hint = f"write {noun} before and after it, or remove it"
                self.refuse(test.place("given", index), "empty-batch", f"a batch without {noun}", hint)
            batch, is_empty = batch + 1, True

    def given_row(
        self, test: WrittenTest, batch: int, index: int, item: WrittenGivenMessage | Mapping[str, YamlNode]
    ) -> SpecTestRow:
        (source,) = self.pipeline.read_tables
        if isinstance(item, WrittenGivenMessage):
            hint = f"write a row of `{source.identifier}`, such as `{{{source.columns[0].name}: …}}`"
            message = f"`{self.pipeline.name}` reads a table, not messages"
            self.refuse(test.key_place("given", index, "message"), "not-a-row", message, hint)
            return SpecTestRow(batch, {})
        columns = (*source.columns, *source.kafka)
        return SpecTestRow(batch, self.row(item, test, ("given", index), columns, source.identifier))

    def row(
        self,
        fields: Mapping[str, YamlNode],
        test: WrittenTest,
        path: tuple[str | int, ...],
        table_columns: tuple[Column, ...],
        table: str,
    ) -> Mapping[str, Any]:
        """The values of a row's columns, in Python."""
        columns = {column.name: column for column in table_columns}
        values = {}
        for name, node in fields.items():
            if name not in columns:
                hint = did_you_mean(name, columns, f"the table has {', '.join(f'`{known_name}`' for known_name in columns)}")
                message = f"the table `{table}` has no column `{name}`"
                self.refuse(test.key_place(*path, name), "unknown-column", message, hint)
                continue
            try:
                values[name] = read(node, columns[name].type)
            except BadValue as bad_value:
                hint = bad_value.hint or "write a value of the column's type"
                self.refuse(bad_value.where, bad_value.code, f"`{name}`: {bad_value.message}", hint)
        return values

    def bad_row(self, spec: WrittenBadRow) -> Mapping[str, Any]:
        faults = self.pipeline.faults
        possible = {"error": {fault.code for fault in faults}, "stage": {fault.stage for fault in faults}}
        for option, names in possible.items():
            name = getattr(spec, option)
            if name is not None and name not in names and self.sure:
                noun = "error" if option == "error" else "stage"
                otherwise = the_names(noun, sorted(names)) if names else "remove it: each row becomes a row of the table"
                hint = did_you_mean(name, names, otherwise)
                self.refuse(
                    spec.place(option), f"unknown-{noun}", f"no row of this pipeline can fail with the {noun} `{name}`", hint
                )
        topic = kafka_name(self.pipeline, spec, self.problems) if spec.topic else None
        values = {
            "code": spec.error, "stage": spec.stage, "message": spec.message, "item": spec.item,
            "topic": topic, "partition": spec.partition, "offset": spec.offset,
            "key": None if spec.key is None else spec.key.encode(), "value": None if spec.value is None else spec.value.encode(),
        }  # fmt: skip
        return {name: value for name, value in values.items() if value is not None}

    def refuse(self, where: Where, code: str, message: str, hint: str) -> None:
        self.problems.append(Problem(where, code, message, hint))
