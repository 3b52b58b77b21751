"""The script of `sluice access trino`, run as printed by a Trino on this machine. TRINO_HOME is its folder, and TRINO_JAVA_HOME a Java that
it takes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from framework.machine.processes import end_group
from framework.machine.services import catalog, s3
from framework.machine.services.ports import free_port
from tests.support.access_scripts import steps_of
from tests.support.accessed_tables import plan
from tests.support.waiting import until

if TYPE_CHECKING:
    from framework.plan import Plan

HOME, JAVA = os.environ.get("TRINO_HOME", ""), os.environ.get("TRINO_JAVA_HOME", "")
pytestmark = [
    pytest.mark.slow, pytest.mark.long, pytest.mark.spark,
    pytest.mark.skipif(not HOME, reason="no Trino on this machine, which is 821 MB: TRINO_HOME would be its folder"),
]  # fmt: skip
NODE = "node.environment=test\nnode.data-dir={home}/data\nnode.internal-address=127.0.0.1\nnode.bind-ip=127.0.0.1\n"
SERVER = "coordinator=true\nnode-scheduler.include-coordinator=true\nhttp-server.http.port={port}\ndiscovery.uri={url}\n"
__all__ = ["plan"]


@contextmanager
def trino(home: Path, logins: Mapping[str, str]) -> Iterator[str]:
    """The address of a Trino with the catalogs of `home/etc/catalog`."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    (home / "etc/node.properties").write_text(NODE.format(home=home))
    (home / "etc/config.properties").write_text(SERVER.format(port=port, url=url))
    (home / "etc/jvm.config").write_text("-Xmx2G\n")
    command = [f"{HOME}/bin/launcher", "run", f"--etc-dir={home}/etc", f"--data-dir={home}/data"]
    environment = {**os.environ, **logins, **({"JAVA_HOME": JAVA, "PATH": f"{JAVA}/bin:{os.environ['PATH']}"} if JAVA else {})}
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            until(lambda: server.poll() is not None or ready(url), f"Trino does not start: {home}/log", 180)
            assert server.poll() is None, (home / "log").read_text()[-3000:]
            yield url
        finally:
            end_group(server)


def ready(url: str) -> bool:
    try:
        return query_trino(url, "SELECT 1") == [[1]]
    except (URLError, OSError, ValueError, Refused):  # it starts, or has no worker yet
        return False


class Refused(Exception):
    """Trino's own error."""


def query_trino(url: str, sql: str) -> list[list[Any]]:
    """The rows of an answer."""
    request = Request(f"{url}/v1/statement", data=sql.rstrip(";").encode(), headers={"X-Trino-User": "reader"})
    rows: list[list[Any]] = []
    while True:
        with urlopen(request, timeout=60) as answer:
            page = json.load(answer)
        if "error" in page:
            raise Refused(page["error"]["message"])
        rows += page.get("data", [])
        if "nextUri" not in page:
            return rows
        request = Request(page["nextUri"], headers={"X-Trino-User": "reader"})


def test_trino_reads_the_table_by_the_printed_script(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "etc/catalog").mkdir(parents=True)
    _, steps = steps_of(plan, "trino", "orders")
    for step in steps:
        if step.part == "create" and step.system.name == "In a shell":
            subprocess.run(["sh", "-c", step.run], cwd=tmp_path, check=True)
    (file,) = (tmp_path / "etc/catalog").iterdir()
    # Keys to the files are not in the script: a reader's machine has them, as those of AWS.
    logins = {
        "SHOWN_BY_ACCESS_CLIENT_ID": catalog.CLIENT, "SHOWN_BY_ACCESS_CLIENT_SECRET": catalog.SECRET,
        "AWS_ACCESS_KEY_ID": s3.KEY, "AWS_SECRET_ACCESS_KEY": s3.SECRET,
    }  # fmt: skip
    with trino(tmp_path, logins) as url:
        answers = {
            step.why: query_trino(url, step.run) for step in steps if step.system.name == "In Trino" and step.part != "cleanup"
        }
    assert len(answers["Rows."]) == 3
    assert [row[0] for row in answers["The table and its columns."]][:2] == ["id", "country"]
    assert len(answers["Its snapshots."]) >= 1
    for step in steps:
        if step.part == "cleanup" and step.system.name == "In a shell" and "rm " in step.run:
            subprocess.run(["sh", "-c", step.run.removeprefix("# ")], cwd=tmp_path, check=True)
    assert not file.exists()
