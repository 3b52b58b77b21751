"""The specs as Dagster shows and runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import Project, good

ROOT = Path(__file__).resolve().parent.parent


def dagster(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Dagster's own command, on a module that does what pipelines/definitions.py does."""
    (folder / "shown.py").write_text(
        "from pathlib import Path\nfrom framework.assets import definitions\ndefs = definitions(Path('specs'))\n"
    )
    (folder / "dagster").mkdir(exist_ok=True)
    (folder / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}", "DAGSTER_HOME": str(folder / "dagster")}
    command = [sys.executable, "-m", "dagster", *arguments, "-m", "shown"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300, check=False)


def test_the_definitions_are_short() -> None:
    assert len((ROOT / "pipelines" / "definitions.py").read_text().splitlines()) <= 20


@pytest.mark.slow
def test_assets_have_what_the_specs_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dagster import AssetKey

    from framework.assets import definitions

    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    (tmp_path / "jars").symlink_to(ROOT / ".sluice" / "jars")
    monkeypatch.chdir(ROOT)
    defs = definitions(Path("specs"))
    graph = defs.resolve_asset_graph()

    table = graph.get(AssetKey(["lake", "markets", "flagged_stock_trades"]))
    assert table.parent_keys == {AssetKey(["kafka", "main", "sample_data_stock_trades"])}
    assert (table.group_name, table.owners, table.tags["tier"]) == ("markets", ["team:markets"], "gold")
    assert {"iceberg", "spark"} <= table.kinds
    assert [column.name for column in table.metadata["dagster/column_schema"].columns][:3] == [
        "side",
        "quantity",
        "symbol",
    ]
    (reference,) = table.metadata["dagster/code_references"].code_references
    line = Path(reference.file_path).read_text().splitlines()[reference.line_number - 1]
    assert line == "pipeline: flagged_stock_trades"
    assert graph.has(AssetKey(["lake", "markets", "flagged_stock_trades__bad_rows"]))
    assert {sensor.name for sensor in defs.sensors or []} == {
        "flagged_stock_trades_waits",
        "sensor_readings_waits",
        "users_waits",
    }


@pytest.mark.slow
def test_a_broken_spec_is_shown_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.yaml").write_text("cluster: main\nbootstrapp: 127.0.0.1:9092\n")
    shown = dagster(tmp_path, "definitions", "validate")
    assert shown.returncode == 1
    assert "specs/a.yaml:2:1: unknown-key" in shown.stdout + shown.stderr


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_materialize_brings_everything_up_to_date(project: Project, tmp_path: Path) -> None:
    project.make_topic()
    project.send_good(50, bad_every=10)
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "main.yaml").write_text(Path(project.pipeline.where.file).read_text())

    done = dagster(tmp_path, "asset", "materialize", "--select", "*")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "batch 1: 45 rows, 5 bad" in done.stdout + done.stderr

    project.send([good(1), good(2)])
    project.delete_topic()
    failed = dagster(tmp_path, "asset", "materialize", "--select", "*")
    assert failed.returncode == 1
    assert "there is no topic" in failed.stdout + failed.stderr
