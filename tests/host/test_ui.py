"""`sluice ui` as people start it: a real Dagster, in a folder with nothing but specs."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from framework.core.rules import journal
from framework.host import ui
from framework.host.cli import main
from framework.machine.services.ports import free_port, is_free
from tests.support.selection import few
from tests.support.spec_parts import LAKE
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
SLUICE = (sys.executable, "-c", "from framework.host.cli import main; main(prog_name='sluice')")
SPECS = f"""
cluster: main
bootstrap: ${{var:KAFKA}}
---
{LAKE}---
variables: main
values: {{PLACE: here}}
---
topic: orders
kafka_name: orders_of_${{var:PLACE}}
value: json
columns: {{id: int}}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: shop.orders}}
run: {{every: 1h}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "main.yaml").write_text(SPECS)
    replaced = tmp_path / "words" / "environments" / "prod"
    replaced.mkdir(parents=True)
    (replaced / "place.yaml").write_text("variables: main\nvalues: {PLACE: prod}\n")
    (tmp_path / "pipelines").mkdir()  # for own steps: it hides Sluice's package of this name
    (tmp_path / ".sluice" / "jars").parent.mkdir()
    (tmp_path / ".sluice" / "jars").symlink_to(ROOT / ".sluice" / "jars")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    monkeypatch.setenv("SLUICE_VAR_KAFKA", "127.0.0.1:1")
    return tmp_path


@contextmanager
def served(folder: Path, port: int, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Starts `sluice ui`, and yields the process and its first two lines once it answers."""
    command = [*SLUICE, "ui", "--port", str(port), "--specs", "words", "--env", "prod", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    ) as child:
        try:
            assert child.stdout is not None
            yield child, child.stdout.readline() + child.stdout.readline()
        finally:
            child.kill()


def ask_dagster(port: int, query: str) -> Any:
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/graphql", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["data"]


def of_this_server(folder: Path) -> list[str]:
    """Returns the command lines of processes whose Dagster home is in this test's folder."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"DAGSTER_HOME={folder}".encode() in (process / "environ").read_bytes():
                commands.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # the process ended, or belongs to another user
            pass
    return commands


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("read_only", "ask"), few([(False, signal.SIGINT), (True, signal.SIGHUP), (False, signal.SIGKILL)], (True, signal.SIGHUP))
)
def test_dagster_answers_and_leaves_no_process(folder: Path, read_only: bool, ask: signal.Signals) -> None:
    port = free_port()
    with served(folder, port, *(["--read-only"] if read_only else [])) as (child, output):
        assert f"\nhttp://127.0.0.1:{port}: words, environment prod, " in output, output
        assets = [asset["assetKey"]["path"] for asset in ask_dagster(port, "{assetNodes{assetKey{path}}}")["assetNodes"]]
        assert ["lake", "shop", "orders"] in assets and ["kafka", "main", "orders_of_prod"] in assets
        assert ask_dagster(port, "{repositoriesOrError{... on RepositoryConnection{nodes{location{name}}}}}") == {
            "repositoriesOrError": {"nodes": [{"location": {"name": "sluice"}}]}
        }
        allowed = [permission["value"] for permission in ask_dagster(port, "{permissions{value}}")["permissions"]]
        assert any(allowed) is not read_only
        daemons = [line for line in of_this_server(folder) if "dagster._daemon" in line]
        assert (daemons == []) is read_only
        assert ui.running() == (None if read_only else f"http://127.0.0.1:{port}")
        if not read_only:
            second = CliRunner().invoke(main, ["ui", "--port", str(free_port()), "--specs", "words"])
            assert second.exit_code == 1 and f"ui-running: Dagster already runs here, at http://127.0.0.1:{port}" in second.stderr
        child.send_signal(ask)
        assert child.wait(60) == (-ask if ask == signal.SIGKILL else 0)
    until(lambda: not of_this_server(folder), "processes are left", 150 if ask == signal.SIGKILL else 30)
    assert is_free(port) and ui.running() is None


TICKS = """{sensorOrError(
  sensorSelector: {repositoryName: "__repository__", repositoryLocationName: "sluice", sensorName: "orders_waits"}
) {
  ... on Sensor {sensorState {ticks {status error {causes {message}}}}}}}"""
CHECKS = """{assetNodeOrError(assetKey: {path: ["lake", "shop", "%s"]}) {... on AssetNode {assetChecksOrError {... on AssetChecks {checks {
  name executionForLatestMaterialization {status evaluation {severity description}}}}}}}}"""


@pytest.mark.slow
@pytest.mark.long
def test_the_pages_show_why_a_table_cannot_run(folder: Path) -> None:
    """Kafka does not answer, one pipeline is paused, and the spec of another is broken."""
    (folder / "words" / "more.yaml").write_text(
        "pipeline: still\nfrom: {topic: orders}\ninto: {table: shop.still}\n---\n"
        "pipeline: wrong\nfrom: {topic: orderz}\ninto: {table: shop.wrong}\n"
    )
    journal.pause("prod/still")

    def can_run(table: str, port: int) -> tuple[str, str] | None:
        (check,) = ask_dagster(port, CHECKS % table)["assetNodeOrError"]["assetChecksOrError"]["checks"]
        execution = check["executionForLatestMaterialization"]
        return execution and (
            f"{check['name']} {execution['status']} {execution['evaluation']['severity']}",
            execution["evaluation"]["description"],
        )

    port = free_port()
    with served(folder, port) as (child, _):
        until(lambda: can_run("orders", port), "the states of tables were not looked at in two minutes", 120)
        ticks = until(lambda: ask_dagster(port, TICKS)["sensorOrError"]["sensorState"]["ticks"], "no tick in two minutes", 120)
        assert ticks[-1]["status"] == "FAILURE"
        assert "kafka-unreachable: Kafka at 127.0.0.1:1 does not answer" in ticks[-1]["error"]["causes"][0]["message"]
        answers = {name: can_run(name, port) or ("", "") for name in ("orders", "still", "wrong")}
        child.send_signal(signal.SIGINT)
        child.wait(60)
    assert {name: verdict for name, (verdict, _) in answers.items()} == {
        "orders": "can_run FAILED WARN",
        "still": "can_run FAILED WARN",
        "wrong": "can_run FAILED ERROR",
    }
    assert answers["orders"][1].startswith("kafka-unreachable: Kafka at 127.0.0.1:1 does not answer")
    assert answers["still"][1].startswith("paused since ")
    assert "unknown-topic: there is no topic `orderz`" in answers["wrong"][1]


@pytest.mark.slow
def test_ctrl_c_ends_dagster_before_it_answers(folder: Path) -> None:
    command = [*SLUICE, "ui", "--port", str(free_port()), "--specs", "words"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as child:
        assert child.stdout is not None and "starting Dagster" in child.stdout.readline()
        until(lambda: of_this_server(folder), "no Dagster was started")
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 0
    assert of_this_server(folder) == []


def test_a_busy_port_is_one_clear_line(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = CliRunner().invoke(main, ["ui", "--port", str(port), "--specs", "words"])
    assert result.exit_code == 1 and result.stdout == ""
    assert re.fullmatch(
        rf"port-busy: Dagster needs port {port}, but process {os.getpid()} \(.*\) holds it\n  hint: choose another with --port\n",
        result.stderr,
    )
    assert not (folder / ".sluice" / "dagster").exists()


def test_a_folder_without_specs_is_an_error(folder: Path) -> None:
    result = CliRunner().invoke(main, ["ui", "--specs", "nowhere"])
    assert result.exit_code == 1 and "no-folder" in result.stderr
