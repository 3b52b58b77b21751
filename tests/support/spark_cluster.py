"""A cluster of pyspark's own master and workers on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import requests

from framework.machine.java import ivy
from framework.machine.java.java import java
from framework.machine.services.ports import free_port
from tests.support.waiting import until

_HOST = "127.0.0.1"


@dataclass
class Cluster:
    folder: Path
    port: int
    pages: int  # the port on which the master tells what it has
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"spark://{_HOST}:{self.port}"

    def state(self) -> dict[str, object]:
        state: dict[str, object] = requests.get(f"http://{_HOST}:{self.pages}/json/", timeout=10).json()
        return state

    def executors(self) -> dict[int, int]:
        """The processes in which tasks run, with the seconds of a processor that each has used."""
        return {
            pid: seconds
            for process in self.processes[1:]
            if process.poll() is None
            for pid, seconds in _children(process.pid).items()
        }

    def kill_a_worker(self) -> None:
        """Kills one worker and its executors at once."""
        worker = next(process for process in self.processes[1:] if process.poll() is None and _children(process.pid))
        for pid in (*_children(worker.pid), worker.pid):
            os.kill(pid, signal.SIGKILL)
        worker.wait(30)

    def start(self, *main: str) -> None:
        home = str(ivy.of_pyspark()[0].parent.parent)
        log = (self.folder / f"{len(self.processes)}.log").open("wb")
        path = os.pathsep.join(map(str, ivy.of_pyspark()))
        environment = {**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": _HOST, "SPARK_SCALA_VERSION": "2.13"}
        command = [str(java()), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", path, *main]
        self.processes.append(
            subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self.folder, start_new_session=True)
        )

    def add_worker(self) -> None:
        before = len(self._alive())
        work = str(self.folder / f"work{len(self.processes)}")
        worker = "org.apache.spark.deploy.worker.Worker"
        pages = str(free_port())
        self.start(worker, "--host", _HOST, "--cores", "1", "--memory", "1g", "--webui-port", pages, "-d", work, self.url)
        until(lambda: len(self._alive()) > before, "the worker does not join", 60)

    def _alive(self) -> list[object]:
        workers = self.state()["workers"]
        assert isinstance(workers, list)
        return [worker for worker in workers if worker["state"] == "ALIVE"]

    def answers(self) -> bool:
        try:
            return bool(self.state())
        except (requests.ConnectionError, ValueError):
            return False


def _children(pid: int) -> dict[int, int]:
    """The processes that a process has started, with the seconds of a processor that each has used."""
    output = subprocess.run(
        ["ps", "-o", "pid=,cputimes=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return {int(child): int(seconds) for child, seconds in (line.split() for line in output.splitlines())}


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """A cluster that runs until the end of the block, with all that it started."""
    folder.mkdir(parents=True, exist_ok=True)
    spark_cluster = Cluster(folder, free_port(), free_port())
    master = "org.apache.spark.deploy.master.Master"
    try:
        spark_cluster.start(master, "--host", _HOST, "--port", str(spark_cluster.port), "--webui-port", str(spark_cluster.pages))
        until(spark_cluster.answers, "the master does not answer", 60)
        for _ in range(workers):
            spark_cluster.add_worker()
        yield spark_cluster
    finally:
        for process in reversed(spark_cluster.processes):
            if process.poll() is None:
                for pid in (*_children(process.pid), process.pid):
                    os.kill(pid, signal.SIGKILL)
            process.wait(30)
