"""Commands in errors and hints name the environment, and each environment has its own records."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from framework.base import hints
from framework.core.rules import journal
from framework.features.export import records
from framework.host.cli import main

SPECS = """\
catalog: lake
type: sql
uri: sqlite:///{name}.db
warehouse: warehouse
---
"""
PIPELINE = """\
cluster: main
bootstrap: 127.0.0.1:1
---
topic: trades
value: json
columns: {n: bigint}
---
pipeline: copy
from: {topic: trades}
into: {table: shop.copy}
"""


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("`sluice run a` continues", "`sluice run a --env prod` continues"),
        ("`sluice run` continues", "`sluice run --env prod` continues"),
        ("`sluice run a --env prod`", "`sluice run a --env prod`"),
        ("`sluice run prod`", "`sluice run prod --env prod`"),
        ("`sluice services up kafka` starts one", "`sluice services up kafka` starts one"),
        ("write `sluice` there, and `a: b`", "write `sluice` there, and `a: b`"),
    ],
)
def test_a_command_in_a_text_has_the_options_that_it_needs(text: str, becomes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_ENV", raising=False)
    assert hints.of_environment(text, "prod") == becomes
    assert hints.of_environment(text, "local") == text
    folder = hints.options("local", Path("my specs"))
    assert hints.with_options("`sluice run a`", folder) == "`sluice run a --specs 'my specs'`"
    monkeypatch.setenv("SLUICE_ENV", "prod")
    assert hints.of_environment("`sluice run a`", "local") == "`sluice run a --env local`"


def test_commands_that_take_no_such_options_are_known() -> None:
    def takes(name: str) -> bool:
        command = main.get_command(click.Context(main), name)
        inner = command.commands.values() if isinstance(command, click.Group) else [command]
        return all(
            {"--env", "--specs"} <= {opt for param in subcommand.params for opt in param.opts}
            for subcommand in inner
            if subcommand
        )

    assert tuple(name for name in main.list_commands(click.Context(main)) if not takes(name)) == hints.WITHOUT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    monkeypatch.delenv("SLUICE_ENV", raising=False)
    (tmp_path / "specs" / "environments" / "prod").mkdir(parents=True)
    (tmp_path / "specs" / "a.yaml").write_text(SPECS.format(name="lake") + PIPELINE)
    (tmp_path / "specs" / "environments" / "prod" / "a.yaml").write_text(SPECS.format(name="prod"))
    return tmp_path


def sluice(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, words)
    return done.exit_code, done.output


@pytest.mark.usefixtures("folder")
def test_an_environment_has_its_own_pause() -> None:
    assert sluice("pause", "copy", "--env", "prod")[0] == 0
    assert journal.read("prod/copy").paused and not journal.read("copy").paused
    assert journal.recorded() == ["prod/copy"]
    code, says = sluice("run", "copy", "--env", "prod")
    assert code == 1 and "pipeline-paused: copy is paused since" in says
    assert "hint: `sluice resume copy --env prod` resumes it" in says
    assert sluice("resume", "copy") == (0, "copy: was not paused\n")
    assert "copy: resumed" in sluice("resume", "copy", "--env", "prod")[1]
    assert not journal.recorded()


def test_a_pause_needs_no_other_specs(folder: Path) -> None:
    """Dagster still runs the other pipelines, so people must be able to pause them."""
    (folder / "specs" / "b.yaml").write_text("pipeline: broken\nfrom: {topic: nobody}\ninto: {table: shop.broken}\n")
    assert sluice("pause", "copy", "broken")[0] == 0
    assert journal.recorded() == ["broken", "copy"]
    assert "copy: resumed" in sluice("resume", "copy")[1]
    assert sluice("pause", "nobody")[0] == 1 and sluice("pause", "copy", "--env", "nowhere")[0] == 1
    assert journal.recorded() == ["broken"]


def test_json_stays_json_whatever_the_folder_is_called(folder: Path) -> None:
    (folder / "specs").rename(folder / 'my "s')
    (folder / 'my "s' / "b.yaml").write_text("pipeline: broken\n")
    code, says = sluice("check", "--json", "--specs", 'my "s')
    assert code == 1 and json.loads(says)


@pytest.mark.usefixtures("folder")
def test_clean_removes_the_records_of_all_environments(folder: Path) -> None:
    sluice("pause", "copy", "--env", "prod")
    record = records.Record(window="", file="a.csv", snapshot=1, rows=1, bytes=1, sha256="", at="")
    records.add("prod/weekly", record)
    records.add("weekly", record)
    assert records.exports() == ["prod/weekly", "weekly"]
    assert sluice("clean", "--yes")[0] == 0
    assert not (folder / ".sluice" / "pipelines").exists() and not (folder / ".sluice" / "exports").exists()


@pytest.mark.usefixtures("folder")
def test_doctor_checks_what_these_specs_name() -> None:
    code, says = sluice("doctor", "--specs", "others")
    assert code == 1 and "no-folder" in says
