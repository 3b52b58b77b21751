"""`sluice-slim`: its packages, and its commands without Spark and Dagster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from framework.host.cli import _named
from tests.support.exports import put, specs, utc

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = {
    *("pyspark", "dagster", "dagster-pyspark", "dagster-aws", "dagster-webserver"),
    *("deltalake", "starlette", "uvicorn", "aiosmtpd"),  # what only a run, `sluice serve` or `sluice services up mail` needs
}
# As if they were not installed.
BLOCK = """
import sys
from importlib.machinery import PathFinder

class Slim(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        missing = ("pyspark", "py4j", "dagster", "dagster_pyspark", "dagster_webserver", "deltalake", "starlette", "uvicorn")
        return None if name.partition(".")[0] in missing else super().find_spec(name, path, target)

sys.meta_path = [Slim if each is PathFinder else each for each in sys.meta_path]
"""


LISTED = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").partition("write exports: ")[2].partition(" are the same")[0]
WORDS = {
    "query": ("query", "select 1 from shop.orders"), "export": ("export", "weekly", "--window", "2026-W46"),
    "access": ("access", "duckdb", "orders"), "peek": ("peek", "orders"), "generate": ("generate", "orders", "--count", "1"),
}  # fmt: skip


def name(requirement: str) -> str:
    return requirement.partition(">")[0].partition("=")[0].partition("[")[0]


def test_it_is_the_whole_without_spark_and_dagster() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no reader of TOML")
    whole, slim = (tomllib.loads((ROOT / file).read_text()) for file in ("pyproject.toml", "deploy/slim/pyproject.toml"))
    assert slim["project"]["dependencies"] == [
        requirement for requirement in whole["project"]["dependencies"] if name(requirement) not in WITHOUT
    ]
    for key in ("version", "requires-python", "license", "scripts"):
        assert slim["project"][key] == whole["project"][key]
    tools = slim["tool"]["setuptools"], whole["tool"]["setuptools"]
    assert tools[0]["package-data"] == tools[1]["package-data"]
    assert tools[0]["packages"]["find"]["include"] == tools[1]["packages"]["find"]["include"]


@pytest.mark.usefixtures("kafka_away")
def test_it_checks_queries_and_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    specs("select channel, count(*) as orders from input group by channel")
    whole = tmp_path / "specs" / "all.yaml"
    whole.write_text(
        whole.read_text().replace("value: json\n", "value: json\ngenerate: {rate: 1/s, columns: {order_id: {pattern: o-1}}}\n")
    )
    put(("o-1", "web", "10.50", utc("2026-11-10T12:00")))
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text(BLOCK)

    def sluice(*arguments: str) -> tuple[int, str]:
        result = subprocess.run(
            [str(Path(sys.executable).with_name("sluice")), *arguments], text=True, check=False,
            env={**os.environ, "PYTHONPATH": f"{tmp_path / 'without'}:{ROOT}", "SLUICE_HOME": str(tmp_path / ".sluice")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return result.returncode, result.stdout

    for line in re.findall(r"`(?:sluice )?([a-z -]+)`", LISTED):
        status, output = sluice(*WORDS.get(line, (line,)))
        assert "not-installed" not in output and "Traceback" not in output and status != 2, output
        assert status == 0 or "kafka-unreachable" in output or line == "plan", output  # Sluice did not create the table
    status, output = sluice("query", "select order_id, amount from shop.orders")
    assert (status, "o-1" in output, "10.50" in output) == (0, True, True)
    assert Path("exports/weekly_2026-11-09.csv").exists()
    for command in ("run", "test", "preview orders", "ui", "setup", "serve", "demo", "diff orders --from 1"):
        status, output = sluice(*command.split())
        assert (status, "Traceback" in output) == (1, False), output
        assert output.startswith("not-installed: this needs the Python package "), output
        assert "install `sluice` in an environment of its own" in output
    status, output = sluice("doctor")
    assert [line.split()[1] for line in output.splitlines() if not line.startswith(" ")][:3] == ["Python", "packages", "disk"], (
        output
    )
    assert status == 0, output


def test_another_error_has_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error is logged and named also in a process without Spark."""
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.delitem(sys.modules, "py4j", raising=False)
    monkeypatch.setitem(sys.modules, "framework.core.spark.java_errors", None)
    error = _named("x", ValueError("boom"))
    assert (error.code, error.message) == ("unexpected-error", "ValueError: boom")
    assert len(list((tmp_path / "logs").iterdir())) == 1
    assert _named("x", ModuleNotFoundError("No module named 'yaml'", name="yaml")).code == "unexpected-error"
