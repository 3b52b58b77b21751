"""A stream works while its keys are replaced: no row is lost or doubled, and no batch fails beyond one login that is tried again."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests

from framework.base.home import home
from framework.host.plans import make
from framework.host.serve import server
from framework.host.serve.clients import KeyClients
from framework.operations.keys.rotation import Rotation
from framework.plan import Plan, SecretRef
from framework.systems.secrets import reveal_together
from tests.support.onward_topics import messages
from tests.support.project import BASE, TRADES, Project
from tests.support.scram_kafka import ScramKafka, scram_kafka
from tests.support.streaming import streaming
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.kafka]
SECRETS = "---\nsecrets: main\nstore: file\npath: {path}\n---\nkeys: kafka_login\nof: kafka\nsecret: kafka\n---\n"
SECRETS += "keys: readers\nof: serve\nsecret: readers\n---\nkeys: weekly\nof: serve\nsecret: weekly\nrotate_every: 7d\n"
SECURITY = """security:
  {{protocol: SASL_PLAINTEXT, mechanism: SCRAM-SHA-256, username: "${{secret:kafka_key}}", password: "${{secret:kafka_secret}}"}}
---
catalog: lake"""
_LARGEST = 1 << 22  # bytes of a file that is searched for passwords
PASSWORD = "canary-of-the-first-password"


class LockedProject(Project):
    """A project whose Kafka takes a login, which is in a file of secrets."""

    def __init__(self, folder: Path, lake: Path, locked: ScramKafka, spark: SparkSession) -> None:
        super().__init__(folder, lake, locked.open, spark)
        self.locked = locked
        self.secrets = Path(f"secrets-{uuid.uuid4().hex}")
        self.secrets.write_text(f"kafka_key=ingest\nkafka_secret={PASSWORD}\n")
        self.secrets.chmod(0o600)
        self._plan: Plan | None = None

    @property
    def plan(self) -> Plan:
        if self._plan is None:
            folder = self.lake / "specs" / uuid.uuid4().hex
            folder.mkdir(parents=True)
            base = BASE.format(bootstrap=self.locked.locked).replace("---\ncatalog: lake", SECURITY.format(), 1)
            specs = TRADES.format(topic=self.topic, namespace=self.namespace, more=self.more, topic_more="")
            (folder / "main.yaml").write_text(f"{base}{SECRETS.format(path=self.secrets)}---\n{specs}")
            self._plan = make(folder)
        return self._plan

    @property
    def rotation(self) -> Rotation:
        (document,) = (document for document in self.plan.documents_of("keys") if document.name == "kafka_login")
        return Rotation(self.plan, document.value)

    def rotate_readers(self) -> None:
        (document,) = (document for document in self.plan.documents_of("keys") if document.name == "readers")
        Rotation(self.plan, document.value).rotate()

    def is_tidy(self) -> bool:
        """Whether Kafka has only the users of the current key and of the one before, once what nobody uses was retired."""
        self.rotation.rotate_due()
        return len(self.locked.users()) == 2


@pytest.fixture
def locked_project(tmp_path: Path, lake: Path, spark: SparkSession) -> Iterator[LockedProject]:
    with scram_kafka(tmp_path / "kafka") as locked:
        locked.add_user("ingest", PASSWORD, manages=True, writes=True)
        project = LockedProject(tmp_path, lake, locked, spark)
        project.make_topic()
        yield project


@pytest.mark.parametrize("count", [pytest.param(100_000, marks=pytest.mark.long), 4_000])
def test_a_stream_goes_on_while_the_login_to_kafka_is_replaced(count: int, locked_project: LockedProject) -> None:
    project, rotations = locked_project, 4
    project.more = f"run: {{every: 1s}}\nbatch: {{rows: {count // 8}}}\nalso: [topic: {project.topic}_on]"
    with streaming(project) as stream, reading(project) as readers:
        until(stream.lives, "the stream does not live", 120)
        for part in range(1, rotations + 1):
            project.send_good(count // rotations)
            until(lambda part=part: stream.rows() >= (part - 1) * count // rotations + 1, f"part {part} does not begin", 180)  # type: ignore[misc]
            project.rotation.rotate()
            project.rotate_readers()
        stream.wait_for(count)
        until(lambda: len(messages(project)) >= count, "the rows do not come onward", 120)
        passwords = {key.values["kafka_secret"] for key in project.rotation.stored()} | {PASSWORD}
        until(lambda: bool(stream.told("KeysReplaced")), "the stream does not replace what is due", 60)
        until(project.is_tidy, "former keys are still used when nothing works with them", 60)
        failures = [event for event in stream.events if event["event"] in ("Failed", "Rests", "Away")]
        stream.end()
    assert len(failures) <= 1, failures
    assert readers.read > 10 and readers.refused == 0, readers
    assert sorted(row["id"] for row in project.rows()) == list(range(count))
    assert sorted(message[1]["id"] for message in messages(project)) == list(range(count))
    texts = [path.read_bytes() for path in home().rglob("*") if path.is_file() and path.stat().st_size < _LARGEST]
    texts += [str(stream.events).encode(), "".join(stream.errors).encode(), *(path.read_bytes() for path in lake_files(project))]
    assert not [password for password in passwords if any(password.encode() in text for text in texts)]


@dataclass
class Readers:
    """Readers who log in to the served catalog again and again, by the key that the secrets have."""

    read: int = 0
    refused: int = 0


@contextmanager
def reading(project: LockedProject) -> Iterator[Readers]:
    """Reads the list of tables all the time, each time by a new login."""
    project.rotate_readers()
    readers, ended = Readers(), threading.Event()
    with server.running(project.plan, project.plan.catalogs[0], 0, KeyClients(project.plan)) as address:

        def read() -> None:
            while not ended.wait(0.2):
                client, secret = reveal_together((SecretRef("readers_key"), SecretRef("readers_secret")), project.plan.secrets)
                form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
                token = requests.post(f"{address}/v1/oauth/tokens", data=form, timeout=20).json().get("access_token")
                answer = requests.get(f"{address}/v1/namespaces", headers={"Authorization": f"Bearer {token}"}, timeout=20)
                readers.read += answer.status_code == 200
                readers.refused += answer.status_code != 200

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            yield readers
        finally:
            ended.set()
            thread.join(60)


def lake_files(project: LockedProject) -> Iterator[Path]:
    """The files of the table, with its metadata."""
    return (path for path in (project.lake / "warehouse" / project.namespace).rglob("*") if path.is_file())
