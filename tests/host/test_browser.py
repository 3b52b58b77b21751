"""Dagster's pages as a person sees them, in Debian's Chromium: the graph, a table's page, a broken spec, and a run from the page."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from framework.machine.services.ports import free_port
from tests.support.project import Project
from tests.support.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip
WAIT = 60_000  # milliseconds
OPTIONS = """
owner: team:markets
tags: {tier: gold}
run: by_hand
fresh_within: 15m
expect:
  - {column: price, not_null: true}
"""
BROKEN = "pipeline: orders\nfrom: {topic: trade}\ninto: {table: m.orders}\n"

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine: apt-get install chromium"),
]


@pytest.fixture
def served(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of `sluice ui` for a pipeline whose topic has messages, and a spec that is broken."""
    project.more, project.topic_more = OPTIONS, "steady: true"
    project.make_topic()
    project.send_good(60, bad_every=10)
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "main.yaml").write_text(Path(project.pipeline.where.file).read_text())
    (specs / "orders.yaml").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)  # its lake is where the server's is
    port = free_port()
    command = [sys.executable, "-c", "from framework.host.cli import main; main()", "ui", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert server.stdout is not None
        lines = iter(server.stdout.readline, "")
        assert any(f"http://127.0.0.1:{port}" in line for line in lines)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)


@pytest.fixture
def page(served: str) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1600, "height": 1400}, base_url=served)
        page.set_default_timeout(WAIT)
        yield page
        browser.close()


def wait_for_texts(page: Page, *texts: str) -> None:
    for text in texts:
        page.get_by_text(text).locator("visible=true").first.wait_for()


def test_what_a_person_sees_and_does(page: Page, project: Project, tmp_path: Path) -> None:
    groups = "%2C".join(f"global%40global%3A{group}" for group in ("topics", project.namespace, "broken"))
    page.goto(f"/asset-groups?expanded={groups}")
    wait_for_texts(page, project.topic, "trades__bad_rows", "specs_orders", "Kafka", "Iceberg", "Spark")
    page.screenshot(path=tmp_path / "graph.png")

    page.goto("/assets/broken/specs_orders")
    wait_for_texts(page, "specs/orders.yaml:2:15: unknown-topic: there is no topic `trade`", "did you mean `trades`?")
    page.screenshot(path=tmp_path / "broken.png")

    page.goto("/assets/lake/m/orders?view=checks")
    wait_for_texts(page, "can_run", "unknown-topic: there is no topic `trade`")
    page.screenshot(path=tmp_path / "kept.png")

    page.goto("/locations/__repository__@sluice/jobs/Preview/playground")
    wait_for_texts(page, "No errors", "No missing config")
    page.screenshot(path=tmp_path / "launchpad.png")

    page.goto(f"/assets/lake/{project.namespace}/trades")
    wait_for_texts(page, "from price", "tier: gold", "markets", "size", "Kafka offset of the message", "main.yaml")
    page.get_by_role("button", name="Materialize").first.click()
    until(lambda: len(project.rows()) == 54, "no rows came in three minutes", 180)

    ended(page)
    page.goto(f"/assets/lake/{project.namespace}/trades")
    wait_for_texts(
        page, "lag_messages", "bad_rows", "lag_seconds", "Freshness policy", "Fails if more than 15 minutes since last"
    )
    page.screenshot(path=tmp_path / "table.png")
    page.get_by_text("Plots", exact=True).first.click()
    page.locator("canvas").first.wait_for()
    page.screenshot(path=tmp_path / "plots.png")
    page.goto(f"/assets/lake/{project.namespace}/trades?view=lineage")
    wait_for_texts(page, project.topic, "trades")
    page.goto(f"/assets/lake/{project.namespace}/trades?view=checks")
    wait_for_texts(page, "price_is_not_null", "newest_event", "can_run", "fresh")
    page.screenshot(path=tmp_path / "checks.png")


def ended(page: Page) -> None:
    """Waits until Dagster shows the run's success: the rows are in the table before."""
    page.goto("/runs")
    wait_for_texts(page, "Success")
