"""`sluice check`: all problems with their places, as text and as JSON, its exit status, and that it is fast."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from framework.host.cli import main
from tests.support.heavy_imports import HEAVY
from tests.support.time_limits import bar

ROOT = Path(__file__).resolve().parents[2]
BASE = (ROOT / "specs" / "main.yaml").read_text(encoding="utf-8")
TOPIC = "topic: {name}\nvalue: json\ncolumns: {{side: string, quantity: int, price: double, at: timestamp}}\n"
PIPELINE = """\
pipeline: {name}
from: {{topic: {name}}}
steps:
  - filter: quantity > 0
  - derive: {{notional: price * quantity, hour: "date_trunc('hour', at)"}}
  - flag:
      into: anomaly
      rules:
        - {{when: price < 0, label: NEGATIVE}}
        - {{when: "quantity > ${{var:LARGE_TRADE}}", label: LARGE}}
      otherwise: NORMAL
into: {{table: markets.{name}, partition_by: [day(at)]}}
"""
VALUES = "`avro`, `bytes`, `debezium_avro`, `debezium_json`, `json`, `json_schema`, `protobuf` or `string`"
WRONG = "topic: a\nvalue: jsn\n---\npipeline: b\nfrom: {topic: c}\ninto: {table: x.y}\nruns: often\n"
OUTPUT = f"""\
specs/a.yaml:1:1: no-cluster: there is no `cluster` in the specs
  hint: add a document `cluster: main`
specs/a.yaml:2:8: unknown-value: `value` must be {VALUES}, and is `jsn`
  hint: did you mean `json`?
specs/a.yaml:5:15: unknown-topic: there is no topic `c`
  hint: the topic is `a`
specs/a.yaml:6:15: no-catalog: there is no `catalog` in the specs
  hint: add a document `catalog: main`
specs/a.yaml:7:1: unknown-key: `runs` is not an option of pipeline `b`
  hint: did you mean `run`?
5 problems
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, without specs."""
    for name in [name for name in os.environ if name.startswith("SLUICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    return tmp_path


def write(project: Path, text: str, name: str = "a.yaml") -> None:
    path = project / "specs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", *arguments])


def topic_and_pipeline(name: str) -> str:
    return f"{TOPIC.format(name=name)}---\n{PIPELINE.format(name=name)}"


def test_specs_without_problems_are_counted(project: Path) -> None:
    write(project, BASE)
    write(project, topic_and_pipeline("t1"), "b.yaml")
    result = check()
    assert (result.exit_code, result.stdout, result.stderr) == (0, "1 pipeline, 1 topic: no problems\n", "")
    write(project, topic_and_pipeline("t2"), "c.yaml")
    assert check().stdout == "2 pipelines, 2 topics: no problems\n"
    result = check("--json")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "[]\n", "")


def test_all_problems_at_once(project: Path) -> None:
    write(project, WRONG)
    result = check()
    assert (result.exit_code, result.stdout, result.stderr) == (1, OUTPUT, "")


def test_problems_of_the_plan_are_problems(project: Path) -> None:
    write(project, f"{BASE}---\n{topic_and_pipeline('t1').replace('filter: quantity', 'filter: quantty')}")
    result = check()
    assert result.exit_code == 1
    assert "unknown-column" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 problem"


def test_problems_are_printed_as_json(project: Path) -> None:
    write(project, WRONG)
    result = check("--json")
    assert (result.exit_code, result.stderr) == (1, "")
    problems = json.loads(result.stdout)
    assert [problem["code"] for problem in problems] == [
        "no-cluster",
        "unknown-value",
        "unknown-topic",
        "no-catalog",
        "unknown-key",
    ]
    assert problems[1::3] == [
        {
            "file": "specs/a.yaml",
            "line": 2,
            "column": 8,
            "code": "unknown-value",
            "message": f"`value` must be {VALUES}, and is `jsn`",
            "hint": "did you mean `json`?",
        },
        {
            "file": "specs/a.yaml",
            "line": 7,
            "column": 1,
            "code": "unknown-key",
            "message": "`runs` is not an option of pipeline `b`",
            "hint": "did you mean `run`?",
        },
    ]


def test_each_environment_is_checked_by_itself(project: Path) -> None:
    write(project, f"{BASE}---\n{topic_and_pipeline('t1')}")
    write(project, "engine: spark\nmemory: lots\n", "environments/prod/engine.yaml")
    assert check().exit_code == 0
    result = check("--env", "prod")
    assert result.exit_code == 1
    assert "specs/environments/prod/engine.yaml:2:9: bad-memory" in result.stdout
    assert "unknown-environment" in check("--env", "nowhere").stdout


def test_specs_of_another_folder_are_checked(project: Path) -> None:
    (project / "specs").rename(project / "other")
    (project / "other" / "a.yaml").write_text(WRONG, encoding="utf-8")
    assert check("--specs", "other").stdout == OUTPUT.replace("specs/", "other/")
    result = check("--specs", "nowhere")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (1, "nowhere: no-folder: the folder of the specs does not exist")


def test_check_of_an_empty_folder_suggests_sluice_init(project: Path) -> None:
    assert "hint: `sluice init` creates a project" in check("--specs", "nowhere").stdout
    (project / "empty").mkdir()
    assert check("--specs", "empty").stdout.splitlines()[:2] == [
        "empty: no-specs: there are no specs in this folder",
        "  hint: `sluice init` writes a first one that runs",
    ]


def test_a_format_of_a_registry_needs_one_in_the_cluster(project: Path) -> None:
    write(project, "cluster: main\nbootstrap: a:1\n---\ntopic: more\nvalue: avro\ncolumns: {id: bigint}\n", "more.yaml")
    result = check()
    assert result.exit_code == 1
    assert (
        "specs/more.yaml:5:8: no-registry: the cluster `main` names no schema registry\n  hint: add `registry:`" in result.stdout
    )


def test_a_plan_of_nothing_says_so(project: Path) -> None:
    (project / "specs" / "a.yaml").write_text("cluster: main\nbootstrap: a:1\n")
    result = CliRunner().invoke(main, ["plan"])
    assert (result.exit_code, result.stdout) == (0, "there are no pipelines\n")


@pytest.mark.parametrize("arguments", [["--what"], ["--env"], ["specs"]])
def test_wrong_usage_exits_with_2(project: Path, arguments: list[str]) -> None:
    assert check(*arguments).exit_code == 2


@pytest.mark.parametrize(("arguments", "loads"), [(["check"], "duckdb"), (["schema"], "")])
@pytest.mark.slow
def test_what_it_does_not_load(arguments: list[str], loads: str) -> None:
    """DuckDB checks the query of an export."""
    work = f"from framework.host.cli import main; main({arguments!r}, standalone_mode=False)"
    program = (
        f"import sys\ntry: {work}\nexcept SystemExit: pass\nprint(); print('loaded:', *sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == f"loaded: {loads}".strip()


def timed(folder: Path) -> tuple[str, float]:
    """The output of `sluice check` in its own process, and the processor time that it takes."""
    program = "import sys; from framework.host.cli import main; sys.argv[1:] = ['check']; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    usage_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return result.stdout, usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime


@pytest.mark.slow
@pytest.mark.timed
def test_the_shipped_specs_are_checked_at_once() -> None:
    output, seconds = min((timed(ROOT) for _ in range(3)), key=lambda timing: timing[1])
    assert output.endswith(": no problems\n")
    assert seconds < bar(1)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timed
def test_a_thousand_pipelines_are_checked_in_seconds(project: Path) -> None:
    write(project, BASE, "main.yaml")
    for file in range(100):
        write(project, "---\n".join(topic_and_pipeline(f"t{10 * file + number}") for number in range(10)), f"f{file}.yaml")
    output, seconds = timed(project)
    assert output == "1,000 pipelines, 1,000 topics: no problems\n"
    assert seconds < bar(10)
