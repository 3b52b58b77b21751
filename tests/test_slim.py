"""`sluice-slim`: what it needs, and what it does without Spark and Dagster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_export import put, specs, utc

ROOT = Path(__file__).resolve().parent.parent
WITHOUT = {
    *("pyspark", "dagster", "dagster-pyspark", "dagster-webserver"),
    *("deltalake", "starlette", "uvicorn"),  # what only a run or `sluice serve` needs
}
# As if they were not installed, in this process and in those that it starts.
BLOCK = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "dagster", "dagster_pyspark", "deltalake", "starlette", "uvicorn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def name(requirement: str) -> str:
    return requirement.partition(">")[0].partition("=")[0].partition("[")[0]


def test_it_is_the_whole_without_spark_and_dagster() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no reader of TOML")
    whole, slim = (tomllib.loads((ROOT / each).read_text()) for each in ("pyproject.toml", "deploy/slim/pyproject.toml"))
    assert slim["project"]["dependencies"] == [each for each in whole["project"]["dependencies"] if name(each) not in WITHOUT]
    for key in ("version", "requires-python", "license", "scripts"):
        assert slim["project"][key] == whole["project"][key]
    tools = slim["tool"]["setuptools"], whole["tool"]["setuptools"]
    assert tools[0]["package-data"] == tools[1]["package-data"]
    assert tools[0]["packages"]["find"]["include"] == tools[1]["packages"]["find"]["include"]


@pytest.mark.slow
@pytest.mark.usefixtures("kafka_away")
def test_it_checks_queries_and_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    specs("select channel, count(*) as orders from input group by channel")
    put(("o-1", "web", "10.50", utc("2026-11-10T12:00")))
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text(BLOCK)

    def sluice(*arguments: str) -> tuple[int, str]:
        ended = subprocess.run(
            [str(Path(sys.executable).with_name("sluice")), *arguments], text=True, check=False,
            env={**os.environ, "PYTHONPATH": f"{tmp_path / 'without'}:{ROOT}", "SLUICE_HOME": str(tmp_path / ".sluice")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return ended.returncode, ended.stdout

    assert sluice("check") == (0, "1 pipeline, 1 topic: no problems\n")
    status, told = sluice("query", "select order_id, amount from shop.orders")
    assert (status, "o-1" in told, "10.50" in told) == (0, True, True)
    status, told = sluice("export", "weekly", "--window", "2026-W46")
    assert (status, "1 rows" in told or "1 row" in told) == (0, True)
    status, told = sluice("lineage", "orders")
    assert status == 0, told
    assert sluice("plan")[1].startswith("pipeline orders  (specs/all.yaml:14:1)")
    assert "kafka-unreachable" in sluice("status")[1]
    for command in ("run", "test", "preview orders", "ui", "setup", "serve", "demo"):
        status, told = sluice(*command.split())
        assert (status, "Traceback" in told) == (1, False), told
        assert told.startswith("not-installed: this needs the Python package ")
        assert "install `sluice` in an environment of its own" in told
    status, told = sluice("doctor")
    assert "spark jars" not in told
