"""`sluice demo` over the shipped specs, as `make demo` runs it: every part of the stories shows once, and it does not take long."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

from framework.machine import services
from framework.machine.services.ports import free_port
from tests.support.time_limits import bar

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.long, pytest.mark.timed]

ROOT = Path(__file__).resolve().parents[2]
SLUICE = (sys.executable, "-c", "from framework.host.cli import main; main(prog_name='sluice')")


def test_the_demo_shows_each_part_of_the_stories_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("specs", "pipelines"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / ".sluice").mkdir()
    (tmp_path / ".sluice" / "jars").symlink_to(ROOT / ".sluice" / "jars")
    monkeypatch.chdir(tmp_path)
    for service in ("KAFKA", "REGISTRY", "MAIL"):
        monkeypatch.setenv(f"SLUICE_{service}_PORT", str(free_port(2)))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_VAR_", "SLUICE_HOME"))}
    start_time = time.monotonic()
    result = subprocess.run(
        [*SLUICE, "demo"], env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=500
    )
    seconds = time.monotonic() - start_time
    assert result.returncode == 0, result.stdout + result.stderr
    assert seconds < bar(90)
    output = result.stdout

    flags = re.search(r"flagged_stock_trades by anomaly_flag\n(.*?)totals", output, re.DOTALL)
    unusual = re.search(r"unusual_stock_trades by price_flag\n(.*?)Bad messages", output, re.DOTALL)
    assert flags and set(re.findall(r"[A-Z]+_?[A-Z]+", flags[1])) == {"NORMAL", "NEGATIVE_PRICE", "LARGE_TRADE", "UNUSUAL_PRICE"}
    assert unusual and set(re.findall(r"[A-Z]+_?[A-Z]+", unusual[1])) == {"NORMAL", "NEGATIVE_PRICE", "UNUSUAL_PRICE"}
    assert output.count("Bad messages of") == 1 and output.count(" not json ") == 1
    for table, topic in (("shop.sales_orders", "clean_orders"), ("markets.flagged_stock_trades", "flagged_stock_trades")):
        assert re.search(rf"{table} +{topic} +[\d,]+", output)
    mail = re.search(
        r"to sales@example.com: Weekly sales .*, with (weekly_sales_\S+\.csv)\n  http://127.0.0.1:(\d+)(/mail/\S+)", output
    )
    assert mail, output
    assert re.search(r"^Stopped: kafka, mail, registry; ", output, re.MULTILINE)

    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    try:
        services.up(["mail"])  # the demo stopped it, and it has its mails again
        page = fetched(int(mail[2]), mail[3]).decode()
        (link,) = re.findall(r'href="(/mail/[^"]+\.csv)"', page)
        assert fetched(int(mail[2]), link) == Path("exports", mail[1]).read_bytes()
    finally:
        services.down(["mail"])


def fetched(port: int, path: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read()
    finally:
        connection.close()
