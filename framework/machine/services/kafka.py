"""One Kafka broker that is its own controller (KRaft), from the jars of jars.lock.

*Limit* One replica of everything and no retention by default; for demos and tests, not for production.
"""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.patience import CONNECTING
from framework.machine.java.java import java
from framework.machine.services import process
from framework.machine.services.ports import pair
from framework.machine.services.process import Service, last_lines

_PORT = "SLUICE_KAFKA_PORT"
_CONFIG = Path(__file__).parent


def ports() -> tuple[int, int]:
    """The broker's port, and the controller's, which is the next one."""
    return pair(_PORT, 19092)


@contextmanager
def running(home: Path, port: int | None = None) -> Iterator[str]:
    """A private Kafka under `home`, on `port` or on free ports. Yields its address and always stops it."""
    with process.private_service(SERVICE, home, port) as started:
        yield started.address


def _get(say: Callable[[str], object]) -> None:
    """Downloads the jars, where no other folder of this user has them."""
    from framework.machine.java import jars

    java()
    if not jars.are_here("kafka"):
        say("kafka: downloading its jars, 44 MB, once ...")
        jars.fetch("kafka")


def _prepare(folder: Path, ports: tuple[int, ...]) -> tuple[str, ...]:
    from framework.machine.java.jars import class_path

    (folder / "tmp").mkdir(exist_ok=True)
    shutil.copyfile(_CONFIG / "kafka_log.properties", folder / "log.properties")
    java_command = (
        *(str(java()), "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
        *("-XX:ErrorFile=crash.log", "-Djava.io.tmpdir=tmp", "-Dlog4j2.configurationFile=log.properties"),
        *("-cp", class_path("kafka")),
    )
    if not (folder / "data").exists():
        _format(folder, java_command, ports)
    _configure(folder, "data", ports)
    return (*java_command, "kafka.Kafka", "server.properties")


def _format(folder: Path, java_command: tuple[str, ...], ports: tuple[int, ...]) -> None:
    """Format the data folder under another name, then rename it: after a kill it is formatted again."""
    shutil.rmtree(folder / "data.new", ignore_errors=True)
    _configure(folder, "data.new", ports)
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    command = [*java_command, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "--config", "server.properties"]
    done = subprocess.run(
        command,
        check=False,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        output = last_lines(done.stdout)
        raise SetupError(
            "service-failed", f"kafka cannot format its data folder:{output}", f"see to {folder}: space, permissions"
        )
    (folder / "data.new").rename(folder / "data")


def _configure(folder: Path, data: str, ports: tuple[int, ...]) -> None:
    text = (_CONFIG / "kafka.properties").read_text(encoding="utf-8")
    for name, value in (("{broker}", str(ports[0])), ("{controller}", str(ports[1])), ("{data}", data)):
        text = text.replace(name, value)
    (folder / "server.properties").write_text(text, encoding="utf-8")


def _answers(port: int) -> bool:
    """Whether a broker answers. A TCP connection comes first: a Kafka client without a broker is slow and logs a lot."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
        return bool(admin.list_topics(timeout=CONNECTING).brokers)
    except KafkaException:
        return False


SERVICE = Service(
    name="kafka",
    ports=ports,
    prepare=_prepare,
    get=_get,
    answers=_answers,
    variable=_PORT,
    move=f"stop it, or choose another port with {_PORT}, for instance {_PORT}=29092 (29093 is used too)",
)
