"""A Kafka that dies under a run: the run ends with a name, and the next one lands each message once."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from framework.base.errors import UnreachableError
from framework.machine.services import kafka, process
from tests.support.kill_points import once
from tests.support.project import Project
from tests.support.refusals import begun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.long]


def kill(home: Path) -> None:
    """Kills the Kafka that was started under `home`; it has no time to write anything down."""
    running = process.running(home / "services" / "kafka")
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(running.pid, 0)


@pytest.mark.parametrize("point", ["branched", "staged", "checked"])
def test_a_kafka_that_dies_in_the_middle_of_a_batch(tmp_path: Path, lake: Path, spark: SparkSession, point: str) -> None:
    """Kafka dies before the batch reads its messages, and before and after the check that the topic is still the same one."""
    home = tmp_path / "own"
    with kafka.running(home) as address:
        project = begun(Project(tmp_path, lake, address, spark), 30, bad_every=10)
        project.send_good(60, bad_every=10)
        with pytest.raises(UnreachableError, match=f"Kafka at {address} does not answer") as raised:
            project.run(at=once(lambda: kill(home), point))
        assert raised.value.code == "kafka-unreachable"
        assert len(project.where()) == (90 if point == "checked" else 30)
    with kafka.running(home, int(address.rpartition(":")[2])):
        project.send_good(6)
        project.run()
        project.assert_exactly_once()
        assert len(project.where()) == 96 and project.branches() == []
        project.close()
