"""Refusals of `rollback`, `rewind` and `replay` name commands, and these commands work."""

from __future__ import annotations

import re
import shlex
from datetime import datetime, timezone

import pytest
from click.testing import CliRunner, Result

from framework.base import iso_times
from framework.host.cli import main
from tests.support.project import BASE, Project
from tests.support.rollbacks import PLAIN, QUOTES, send, snapshots

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


class Typed:
    """Runs commands with the project's specs and the session's Spark."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def __call__(self, *words: str) -> Result:
        specs = self.project.lake / "specs" / "typed"
        specs.mkdir(exist_ok=True)
        names = {"topic": self.project.topic, "namespace": self.project.namespace, "more": self.project.more, "topic_more": ""}
        text = BASE.format(bootstrap=self.project.bootstrap) + "---\n" + self.project.template.format(**names)
        (specs / "main.yaml").write_text(text)
        return CliRunner().invoke(main, [*words, *(() if "--specs" in words else ("--specs", str(specs)))])

    def refused(self, *words: str) -> list[str]:
        """Returns the commands that a refusal names."""
        result = self(*words)
        assert result.exit_code == 1, result.output
        return re.findall(r"`sluice ([^`]*)`", result.output.partition("hint: ")[2])

    def obeys(self, command: str) -> str:
        yes = ["--yes"] if command.split()[0] in ("rewind", "rollback", "rebuild") else []
        result = self(*shlex.split(command), *yes)
        assert result.exit_code == 0, f"sluice {command}\n{result.output}"
        return result.output


@pytest.fixture
def typed(project: Project, lent_spark: None) -> Typed:
    return Typed(project)


def test_an_append_that_cannot_be_rewound_is_read_into_another_table_or_rolled_back(project: Project, typed: Typed) -> None:
    project.make_topic(1)
    project.send_good(3, partition=0)
    project.run()
    begun = datetime.now(timezone.utc)
    project.send_good(4, partition=0)
    project.run()
    rewind = ("rewind", "trades", "--to", iso_times.text(begun))
    into, rollback = typed.refused(*rewind)
    assert "trades: batch 2, 4 rows" in typed.obeys(into).replace("batch 1", "batch 2")
    read_table = project.spark.table(f"lake.{project.namespace}.trades_again")
    assert read_table.count() == 4

    next_into, _ = typed.refused(*rewind)
    assert f"{project.namespace}.trades_again2" in next_into
    own_name = f"{project.namespace}.trades"
    assert typed.refused(*rewind, "--into", own_name) == [next_into]
    other_rewind = ("rewind", "trades", "--to", "2020-01-05", "--into", f"{own_name}_again")
    continues, reads = typed.refused(*other_rewind)
    assert "has all that" in typed.obeys(continues)
    assert "has all that" in typed.obeys(reads)
    assert project.spark.table(f"lake.{own_name}_again2").count() == 7

    typed.obeys(rollback)
    assert len(project.rows()) == 3
    project.run()
    project.assert_exactly_once()


def test_a_rollback_behind_a_rewind_names_how_far_the_table_can_go_back(project: Project, typed: Typed) -> None:
    project.template, project.more = QUOTES, "price"
    project.make_topic(1)
    send(project, {"a": 1})
    project.run()
    first_snapshot = snapshots(project)[-1]
    typed.obeys("rewind trades --to 2020-01-05")
    assert [command.split()[0] for command in typed.refused("rollback", "trades", "--to", str(first_snapshot))] == ["rebuild"]
    project.run()
    send(project, {"a": 2})
    project.run()
    rollback, rebuild = typed.refused("rollback", "trades", "--to", str(first_snapshot))
    typed.obeys(rollback)
    assert [row["price"] for row in project.rows()] == [1]
    typed.obeys(rebuild)
    assert [row["price"] for row in project.rows()] == [2]


def test_bad_rows_that_are_not_kept_are_read_again(project: Project, typed: Typed) -> None:
    project.template, project.more = PLAIN + "bad_rows: drop\n", "id"
    project.make_topic(1)
    project.send([b"{", b'{"id": 1}'], partition=0)
    project.run()
    (into,) = typed.refused("replay", "trades")
    typed.obeys(into)
    assert project.spark.table(f"lake.{project.namespace}.trades_again").count() == 1
