"""From the last commit of a table that is late to the mail about it, by those who judge alerts without a stream."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.support.alerting import alert, mail_by
from tests.support.dagster_commands import started
from tests.support.mail_server import mail_server
from tests.support.project import Project
from tests.support.streaming import ROOT, SLUICE
from tests.support.time_limits import bar
from tests.support.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.long, pytest.mark.timed]
FRESH_WITHIN = 60


@contextmanager
def daemon(folder: Path, specs: Path, home: Path) -> Iterator[None]:
    """Dagster's daemon with its sensors, as `sluice ui` and production have it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICE_HOME", str(home))
        process = started(folder, "run", specs=specs, program="dagster-daemon")
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)


@contextmanager
def cron(_folder: Path, specs: Path, home: Path) -> Iterator[None]:
    """`sluice alerts` each minute."""
    over = threading.Event()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SLUICE_HOME": str(home)}

    def judge() -> None:
        while not over.is_set():
            subprocess.run([*SLUICE, "alerts", "--specs", str(specs)], env=environment, check=False, capture_output=True)
            over.wait(60 - time.time() % 60)

    thread = threading.Thread(target=judge)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("judges", [daemon, cron], ids=["dagster", "cron"])
def test_a_mail_tells_within_a_minute_that_a_table_is_late(
    project: Project, other_home: Path, tmp_path: Path, judges: Callable[[Path, Path, Path], AbstractContextManager[None]]
) -> None:
    with mail_server() as (box, port):
        project.more = f"run: by_hand\nfresh_within: {FRESH_WITHIN}s\n{mail_by(port)}{alert('late')}"
        project.make_topic()
        project.send_good(5)
        specs = Path(project.pipeline.where.file).parent
        with judges(tmp_path, specs, other_home):
            project.run()
            began = time.monotonic()
            project.send_good(5)
            until(lambda: bool(box.mails), "no mail tells that the table is late", 300)
            seconds = time.monotonic() - began
    assert [mail["Subject"] for mail in box.mails] == [f"stopped: {project.namespace}.trades"]
    print(f"the mail came {seconds:.0f} s after the last commit")
    assert FRESH_WITHIN - 5 <= seconds <= bar(FRESH_WITHIN + 60)
