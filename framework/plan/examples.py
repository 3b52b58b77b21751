"""A pipeline's tests: what is written becomes messages as Kafka would have them, or rows of the table that it reads, and typed
rows that are to come of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from framework.errors import MOST_PROBLEMS, Problem, Where
from framework.model import Column, Example, GivenRow, Pipeline
from framework.plan.messages import Messages, kafka_name
from framework.plan.values import Wrong, read
from framework.spec import kinds
from framework.spec.node import Node
from framework.spelling import did_you_mean


def resolve(
    pipeline: Pipeline, said: kinds.Pipeline, topics: Iterable[kinds.Topic], problems: list[Problem], sure: bool
) -> tuple[Example, ...]:
    """The tests that have no problems. Only where it is `sure` how rows can fail it is asked whether bad rows are as expected."""
    # All topics of one pipeline have one shape.
    topic = None if pipeline.source else next(topic for topic in topics if topic.name == pipeline.topic.name)
    if topic and "value" in topic.gaps:
        return ()  # how a message is written is not known
    reader = _Reader(pipeline, topic, problems, sure)
    seen: dict[str, kinds.Test] = {}
    found = []
    for test in said.tests:
        if len(problems) > MOST_PROBLEMS:
            break
        first = seen.setdefault(test.name, test)
        if first is not test:
            hint = f"the first is at {first.place()}: name one of them otherwise"
            problems.append(Problem(test.place("name"), "duplicate-name", f"there are two tests `{test.name}`", hint))
        before = len(problems)
        example = reader.example(test)
        if len(problems) == before:
            found.append(example)
    return tuple(found)


@dataclass(frozen=True)
class _Reader:
    pipeline: Pipeline
    topic: kinds.Topic | None  # None: the pipeline reads a table
    problems: list[Problem]
    sure: bool

    def example(self, test: kinds.Test) -> Example:
        message = Messages(self.pipeline, self.topic, self.problems, test).message if self.topic else None
        given = tuple(message(*each) if message else self.given_row(test, *each) for each in self.given(test))
        expect = None
        if test.expect is not None:
            table = self.pipeline.table
            expect = tuple(
                self.row(row, test, ("expect", at), table.columns, table.identifier) for at, row in enumerate(test.expect)
            )
        bad = tuple(self.bad_row(row) for row in test.expect_bad or ())
        return Example(name=test.name, where=test.place(), given=given, expect=expect, expect_bad=bad)

    def given(self, test: kinds.Test) -> Iterator[tuple[int, int, kinds.GivenMessage | Mapping[str, Node]]]:
        """What is given, each with its batch and its place in the list."""
        batch, last = 1, True
        for at, given in enumerate(test.given):
            if not isinstance(given, str):
                yield batch, at, given
                last = False
                continue
            if last or at + 1 == len(test.given):
                what = "messages" if self.topic else "rows"
                hint = f"write {what} before and behind it, or remove it"
                self.refuse(test.place("given", at), "empty-batch", f"a batch without {what}", hint)
            batch, last = batch + 1, True

    def given_row(self, test: kinds.Test, batch: int, at: int, given: kinds.GivenMessage | Mapping[str, Node]) -> GivenRow:
        source = self.pipeline.source
        assert source is not None
        if isinstance(given, kinds.GivenMessage):
            hint = f"write a row of `{source.identifier}`, such as `{{{source.columns[0].name}: …}}`"
            message = f"`{self.pipeline.name}` reads a table, not messages"
            self.refuse(test.key_place("given", at, "message"), "not-a-row", message, hint)
            return GivenRow(batch, {})
        columns = (*source.columns, *source.kafka)
        return GivenRow(batch, self.row(given, test, ("given", at), columns, source.identifier))

    def row(
        self, said: Mapping[str, Node], test: kinds.Test, path: tuple[str, int], known: tuple[Column, ...], table: str
    ) -> Mapping[str, Any]:
        """The values of a row's columns, as Python has them."""
        columns = {column.name: column for column in known}
        found = {}
        for name, node in said.items():
            if name not in columns:
                hint = did_you_mean(name, columns, f"the table has {', '.join(f'`{each}`' for each in columns)}")
                message = f"the table `{table}` has no column `{name}`"
                self.refuse(test.key_place(*path, name), "unknown-column", message, hint)
                continue
            try:
                found[name] = read(node, columns[name].type)
            except Wrong as wrong:
                hint = wrong.hint or "write values as the column has them"
                self.refuse(wrong.where, wrong.code, f"`{name}`: {wrong.message}", hint)
        return found

    def bad_row(self, said: kinds.BadRow) -> Mapping[str, Any]:
        faults = self.pipeline.faults
        known = {"error": {fault.code for fault in faults}, "stage": {fault.stage for fault in faults}}
        for option, names in known.items():
            name = getattr(said, option)
            if name is not None and name not in names and self.sure:
                hint = did_you_mean(name, names, f"there is {', '.join(f'`{each}`' for each in sorted(names)) or 'none'}")
                noun = "error" if option == "error" else "stage"
                self.refuse(
                    said.place(option), f"unknown-{noun}", f"no row of this pipeline can fail with the {noun} `{name}`", hint
                )
        topic = kafka_name(self.pipeline, said, self.problems) if said.topic else None
        found = {
            "code": said.error, "stage": said.stage, "message": said.message, "item": said.item,
            "topic": topic, "partition": said.partition, "offset": said.offset,
            "key": None if said.key is None else said.key.encode(), "value": None if said.value is None else said.value.encode(),
        }  # fmt: skip
        return {name: value for name, value in found.items() if value is not None}

    def refuse(self, where: Where, code: str, message: str, hint: str) -> None:
        self.problems.append(Problem(where, code, message, hint))
