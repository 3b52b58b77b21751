"""The shipped specs of the markets, as they are, on a REST catalog with an object store by Dagster, and on Glue with S3 by `sluice run`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from framework.core.iceberg import table_state
from framework.host.plans import make
from tests.support.rest_catalog import LOGINS

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("users", "stock_trades", "flagged_stock_trades")
MESSAGES = 500
Row = dict[str, Any]


@pytest.fixture(scope="module")
def markets(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the specs, whose topics have messages and names that no other test uses."""
    folder = tmp_path_factory.mktemp("markets")
    shutil.copytree(ROOT / "specs", folder / "specs")
    shutil.copytree(ROOT / "pipelines", folder / "pipelines")
    for subject in ("shop", "sensors", "changes", "totals"):
        shutil.rmtree(folder / "specs" / subject)
    for path in (folder / "specs" / "markets").glob("*.yaml"):
        path.write_text(path.read_text().replace("sample_data", f"m{uuid.uuid4().hex[:8]}"))
    (folder / ".sluice").mkdir()
    secrets = folder / ".sluice" / "secrets"
    secrets.write_text("".join(f"{name.lower()}={value}\n" for name, value in LOGINS.items()))
    secrets.chmod(0o600)
    for topic in ("users", "stock_trades"):
        ran(folder, {"SLUICE_VAR_KAFKA": kafka}, "sluice", "generate", topic, "--count", str(MESSAGES))
    return folder


def ran(folder: Path, settings: dict[str, str], program: str, *arguments: str) -> str:
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def sent(kafka: str, topic: str) -> list[Row]:
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "markets"})
    places = [TopicPartition(topic, partition, 0) for partition in range(6)]
    count = sum(consumer.get_watermark_offsets(place)[1] for place in places)
    consumer.assign(places)
    rows: list[Row] = []
    while len(rows) < count:
        message = consumer.poll(10)
        assert message is not None and message.error() is None
        rows.append({**json.loads(message.value() or b""), "trade_key": (message.key() or b"").decode()})
    consumer.close()
    return rows


def flag(row: Row) -> str:
    if row["price"] < 0:
        return "NEGATIVE_PRICE"
    if row["quantity"] > 4000:
        return "LARGE_TRADE"
    return "UNUSUAL_PRICE" if row["price"] > 900 else "NORMAL"


def check(folder: Path, environment: str, kafka: str, patch: pytest.MonkeyPatch) -> None:
    patch.chdir(folder)
    plan = make(Path("specs"), environment)
    for name in NAMES:
        pipeline = plan.pipeline(name)
        assert pipeline is not None
        table: Any = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
        rows = table.scan().to_arrow().to_pylist()
        messages = sent(kafka, pipeline.topic.kafka_name)
        assert len(rows) == len(messages) == MESSAGES
        if name == "flagged_stock_trades":
            names = ("trade_key", "symbol", "quantity", "price")
            expected = sorted((*(row[column] for column in names), flag(row)) for row in messages)
            assert sorted((*(row[column] for column in names), row["anomaly_flag"]) for row in rows) == expected


def test_dagster_on_a_rest_catalog(
    markets: Path, kafka: str, rest_catalog: str, quick_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_VAR_KAFKA", kafka)
    monkeypatch.setenv("SLUICE_VAR_CATALOG", rest_catalog)
    monkeypatch.setenv("SLUICE_VAR_STORE", quick_store)
    (markets / "dagster").mkdir()
    settings = {"SLUICE_ENV": "rest", "DAGSTER_HOME": str(markets / "dagster")}
    for _ in range(2):  # the second run has nothing to do
        ran(markets, settings, "dagster", "asset", "materialize", "--select", "*", "-m", "pipelines.definitions")
        check(markets, "rest", kafka, monkeypatch)


def test_shipped_specs_run_in_glue(markets: Path, kafka: str, aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_VAR_KAFKA", kafka)
    monkeypatch.setenv("SLUICE_VAR_AWS", aws)
    printed = ran(markets, {}, "sluice", "run", "--env", "glue")
    assert all(f"{name} is caught up" in printed for name in NAMES)
    check(markets, "glue", kafka, monkeypatch)
    assert "LARGE_TRADE" in ran(
        markets, {}, "sluice", "query", "--env", "glue", "select distinct anomaly_flag from markets.flagged_stock_trades"
    )
