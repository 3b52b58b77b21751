"""Dagster with AWS by `dagster-aws`, as the pages show it, on local services that speak the protocols of AWS."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from framework.core.rules import refusals
from framework.host.plans import make
from framework.machine.services import s3
from tests.support.project import BASE
from tests.support.repository import ROOT
from tests.support.shop import NOWHERE, made_by_hand, specs

pytestmark = pytest.mark.slow
EXPORT = "---\nexport: weekly\nfrom: {table: shop.trades}\nfile: {format: csv, to: exports/trades.csv}\n"
MINE = """
from dagster import Definitions, in_process_executor
from sluice.dagster import build_sluice_definitions

defs = Definitions.merge(build_sluice_definitions("specs"), Definitions(executor=in_process_executor))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_store: str) -> Path:
    """A project with a table that was made by hand and an export of it, and the login of the local services."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"AWS_ACCESS_KEY_ID": s3.KEY, "AWS_SECRET_ACCESS_KEY": s3.SECRET, "AWS_ENDPOINT_URL": quick_store}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "specs").mkdir()
    text = BASE.format(bootstrap=NOWHERE) + "---\n" + specs("n: bigint; price: double") + EXPORT
    Path("specs/main.yaml").write_text(text)
    made_by_hand(refusals.owner(make(Path("specs")).pipelines[0]))
    return tmp_path


def client(service: str, region: str = s3.REGION) -> Any:
    import boto3

    return boto3.client(service, region_name=region)


def materialize(folder: Path, asset: str) -> str:
    """Run one asset of `mine.py` by Dagster's command, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DAGSTER_HOME": str(folder / ".sluice" / "dagster")}
    command = [sys.executable, "-m", "dagster", "asset", "materialize", "-m", "mine", "--select", asset]
    result = subprocess.run(command, cwd=folder, env=environment, text=True, check=False, capture_output=True)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def block(page: str, language: str, word: str) -> str:
    """The one block of a page that has the word."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)
    (text,) = (text for text in blocks if word in text)
    return str(text)


def test_the_log_of_a_run_lands_in_the_bucket_that_dagster_yaml_names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from framework.base.home import dagster_home

    monkeypatch.setenv("SLUICE_HOME", str(folder / ".sluice"))
    settings = dagster_home() / "dagster.yaml"
    configuration = settings.read_text() + block("dagster.md", "yml", "S3ComputeLogManager").replace("my-logs", s3.BUCKET)
    settings.write_text(configuration)
    Path("mine.py").write_text(MINE)
    materialize(folder, "exports/weekly")
    assert dagster_home() and settings.read_text() == configuration, "the next command leaves it as it is"
    store = client("s3")
    keys = [entry["Key"] for entry in store.list_objects_v2(Bucket=s3.BUCKET, Prefix="sluice/").get("Contents", [])]
    assert sorted(key.rpartition(".")[2] for key in keys) == ["err", "out"]
    (errors,) = (key for key in keys if key.endswith(".err"))
    text = store.get_object(Bucket=s3.BUCKET, Key=errors)["Body"].read().decode()
    assert "Export_weekly - STEP_SUCCESS" in text


def test_an_asset_reads_a_secret_of_secrets_manager_as_the_page_shows(folder: Path) -> None:
    code = block("dagster.md", "python", "SecretsManagerSecretsResource")
    manager = client("secretsmanager", "eu-central-1")
    manager.create_secret(Name="sluice/report_token", SecretString="1234567", Tags=[{"Key": "sluice", "Value": "1"}])
    manager.create_secret(Name="another", SecretString="of somebody else")
    Path("mine.py").write_text(code)
    (folder / ".sluice" / "dagster").mkdir(parents=True, exist_ok=True)
    (folder / ".sluice" / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    output = materialize(folder, "sent")
    logs = [path.read_text() for path in (folder / ".sluice" / "dagster" / "storage").rglob("*.out")]
    assert "a token of 7 characters" in output + "".join(logs)
    assert "1234567" not in output
