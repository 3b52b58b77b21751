"""`sluice access`: each target for tables in each type of catalog, as its golden text, and what holds of all of them. A toy is among the
targets, `tests/toys/targets/smoke_signals.py`, of which nothing else knows. REWRITE=1 writes the texts anew: read the diff."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from framework import components, targets
from framework.access import described, script
from framework.access.about import About
from framework.access.steps import PARTS, Step
from framework.engine.query import database as database_module
from framework.errors import SluiceError
from framework.model import Plan
from framework.plan.passes import make
from framework.serve import server
from tests import toys
from tests.commands import Commands
from tests.test_serve import CLIENT, SECRET, fill, planned

HERE = Path(__file__).parent / "access"
CANARY = "canary-of-a-secret"
PIPELINES = ("flagged", "totals", "sensors")
with toys.installed():
    TARGETS = targets.names()
# What creates something that stays there.
MAKES = re.compile(r"^(CREATE (?!ICEBERG TABLE IF|OR REPLACE SECRET)|aws iam create-|ATTACH )", re.MULTILINE)


@pytest.fixture(autouse=True)
def with_toys() -> Iterator[None]:
    with toys.installed():
        yield


@pytest.fixture(scope="module")
def plan() -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("KAFKA_PASSWORD", "OC_ID", "OC_SECRET"):
            patch.setenv(f"SLUICE_SECRET_{name}", CANARY)
        return make(HERE)


def steps_of(plan: Plan, target: str, name: str) -> tuple[list[Any], list[Step]]:
    pipeline = plan.pipeline(name)
    assert pipeline is not None
    return script.script(script.targets()[target], About(plan, pipeline))


def refusal_or_steps(plan: Plan, target: str, name: str) -> tuple[SluiceError | None, list[Step]]:
    try:
        return None, steps_of(plan, target, name)[1]
    except SluiceError as refused:
        return refused, []


def text_of(plan: Plan, target: str, name: str) -> str:
    try:
        warned, steps = steps_of(plan, target, name)
    except SluiceError as error:
        return f"{error}\n"
    return "".join(f"{line}\n" for line in script.as_text(f"{name} in {target}", warned, steps, PARTS))


each = pytest.mark.parametrize(("target", "name"), list(itertools.product(TARGETS, PIPELINES)))


@each
def test_each_script_has_its_golden_text(plan: Plan, target: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for secret in ("KAFKA_PASSWORD", "OC_ID", "OC_SECRET"):
        monkeypatch.setenv(f"SLUICE_SECRET_{secret}", CANARY)
    golden, text = HERE / f"{target}.{name}.txt", text_of(plan, target, name)
    if os.environ.get("REWRITE") == "1" and target != "smoke-signals":
        golden.write_text(text, encoding="utf-8")
    assert CANARY not in text
    if target != "smoke-signals":
        assert text == golden.read_text(encoding="utf-8")


def test_no_golden_text_is_left_over() -> None:
    wanted = {f"{target}.{name}.txt" for target, name in itertools.product(TARGETS, PIPELINES) if target != "smoke-signals"}
    assert {path.name for path in HERE.glob("*.txt")} == wanted


@each
def test_what_is_created_is_taken_back_the_last_first(plan: Plan, target: str, name: str) -> None:
    refused, steps = refusal_or_steps(plan, target, name)
    assert refused is None or refused.hint
    created = [step for step in steps if step.part == "create"]
    cleanup = [step for step in steps if step.part == "cleanup"]
    assert [step.run for step in cleanup if step.run != step.in_.begins] == [step.undo for step in reversed(created) if step.undo]
    for step in created:
        assert not MAKES.search(step.run) or step.undo, step.run
        if step.undo and (made := re.search(r"(?:CREATE|create)[\w -]*?(?:IF NOT EXISTS |-name )([\w.-]+)", step.run)):
            assert made.group(1).rpartition(".")[2] in step.undo, step.undo


@each
def test_a_table_is_called_as_in_the_plan(plan: Plan, target: str, name: str) -> None:
    pipeline = plan.pipeline(name)
    assert pipeline is not None
    refused, steps = refusal_or_steps(plan, target, name)
    assert refused is None or pipeline.table.catalog.name in refused.message
    known = {*pipeline.table.identifier.split("."), pipeline.table.catalog.name, *(topic.kafka_name for topic in pipeline.topics)}
    assert not steps or any(word in step.run for word in known for step in steps)


def test_a_toy_is_a_target_with_one_file(plan: Plan) -> None:
    assert "smoke-signals" in TARGETS
    text = text_of(plan, "smoke-signals", "sensors")
    assert text.index("drop blanket wool") < text.index("drop fire sensors")
    assert "# Note: smoke is read by everybody" in text


def test_every_target_says_what_it_does() -> None:
    for file in components.load_all(script.PACKAGE).values():
        assert script.says(file).endswith(".")
        assert file.OF in ("table", "topic")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(tmp_path, monkeypatch)
    commands = Commands()
    assert "== In DuckDB: create" in commands.ok("access", "duckdb", "orders")
    assert commands.ok("access", "duckdb", "orders", "--part", "cleanup").rstrip().endswith("DROP SECRET lake_login;")
    told = json.loads(commands.ok("access", "duckdb", "orders", "--json"))
    assert {step["part"] for step in told["steps"]} == {"create", "check", "query"}
    refused = commands.refused("access", "snowflake", "orders")
    assert "not-reachable: Snowflake finds no table in the catalog `lake`" in refused
    assert "by `publish` of the pipeline `orders`" in " ".join(refused.split())
    assert "there is no pipeline `nothing`" in commands.refused("access", "duckdb", "nothing")


DESCRIBED = """
| parent_property   | property           | property_type | property_value | property_default |
|-------------------+--------------------+---------------+----------------+------------------|
|                   | ALLOW_WRITES       | Boolean       | false          | true             |
| STORAGE_LOCATIONS | STORAGE_LOCATION_1 | String        | {"STORAGE_AWS_IAM_USER_ARN":"arn:aws:iam::9:user/a",
  "STORAGE_AWS_EXTERNAL_ID":"X_1"} | |
"""


def test_what_the_other_system_printed_is_filled_in(plan: Plan, tmp_path: Path) -> None:
    file = tmp_path / "described.txt"
    file.write_text(DESCRIBED)
    pipeline = plan.pipeline("totals")
    assert pipeline is not None
    _, steps = script.script(script.targets()["aws-trust"], About(plan, pipeline, described.read(file)))
    (role,) = [step.run for step in steps if step.run.startswith("aws iam create-role")]
    assert '"AWS": "arn:aws:iam::9:user/a"' in role
    assert '"sts:ExternalId": "X_1"' in role
    file.write_text("nothing of this kind")
    with pytest.raises(SluiceError, match="nothing-described"):
        described.read(file)


def run_in_duckdb(steps: list[Step], values: dict[str, str]) -> list[Any]:
    """The answers of the script's queries. Extensions are those of Sluice's own packages."""
    answers = []
    with duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}) as database:
        for extension in database_module._EXTENSIONS:
            database.execute(f"LOAD '{database_module._extension(extension)}'")
        for step in steps:
            if step.in_.name != "In DuckDB" or step.run.startswith("INSTALL"):
                continue
            run = step.run
            for placeholder, value in values.items():
                run = run.replace(placeholder, value)
            assert "<" not in run, run
            answers.append((step.part, database.execute(run).fetchall()))
    return answers


def test_duckdb_runs_the_script_of_a_table_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path, monkeypatch)
    fill(plan)
    _, steps = steps_of(plan, "duckdb", "orders")
    with server.running(plan, plan.catalogs[0], 0, CLIENT, SECRET) as url:
        answers = run_in_duckdb(steps, {"http://127.0.0.1:18183": url, "<secret of sluice serve>": SECRET})
    assert [rows for part, rows in answers if part == "query"][-1] == [(3,)]  # how many there are


def test_pyiceberg_runs_the_script_of_a_table_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(tmp_path, monkeypatch)
    fill(plan)
    _, steps = steps_of(plan, "pyiceberg", "orders")
    exec("\n".join(step.run for step in steps if step.in_.language == "python"), {})
    assert capsys.readouterr().out.splitlines()[-1] == "3"
