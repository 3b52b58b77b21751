"""Logins to Kafka by tokens and by certificates: a stream works on while tokens end, and after a mistake or an outage that was named."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.errors import SetupError, SluiceError, UnreachableError
from framework.core.kafka.cluster import Kafka
from framework.host.plans import make
from framework.plan import Plan
from tests.support.follower_parts import ran
from tests.support.locked_kafka import LockedKafka
from tests.support.login_kafka import Authority, Pair, certificate_kafka, in_line, token_kafka
from tests.support.oidc_server import Provider, oidc_server
from tests.support.onward_topics import messages
from tests.support.project import BASE, TRADES, Project
from tests.support.streaming import streaming
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.kafka]
PASSWORD = "canary-of-a-client"
TOKENS = {
    "protocol": "SASL_PLAINTEXT", "mechanism": "OAUTHBEARER", "client_id": "ingest", "client_secret": "${secret:kafka_secret}",
    "scope": "kafka",
}  # fmt: skip
CERTIFICATES = {"protocol": "SSL", "certificate": "${secret:kafka_certificate}", "key": "${secret:kafka_key}"}


class LoginProject(Project):
    """A project whose Kafka takes a login, whose secrets are in a file."""

    def __init__(self, folder: Path, lake: Path, locked: LockedKafka, spark: SparkSession, **security: Any) -> None:
        super().__init__(folder, lake, locked.open, spark)
        self.locked = locked
        self.security = security
        self.secrets = Path(f"secrets-{uuid.uuid4().hex}")
        self._plan: Plan | None = None

    def keep(self, **secrets: str) -> None:
        self.secrets.touch(0o600)
        self.secrets.write_text("".join(f"{name}={text}\n" for name, text in secrets.items()))

    @property
    def plan(self) -> Plan:
        if self._plan is None:
            folder = self.lake / "specs" / uuid.uuid4().hex
            folder.mkdir(parents=True)
            security = f"security: {json.dumps(self.security)}\n---\nsecrets: main\nstore: file\npath: {self.secrets}\n---\ncatalog: lake"
            base = BASE.format(bootstrap=self.locked.locked).replace("---\ncatalog: lake", security, 1)
            specs = TRADES.format(topic=self.topic, namespace=self.namespace, more=self.more, topic_more="")
            (folder / "main.yaml").write_text(f"{base}---\n{specs}")
            self._plan = make(folder)
        return self._plan

    def refusal(self) -> SluiceError:
        """The error of a new connection."""
        with pytest.raises(SluiceError) as error:
            Kafka(self.plan.clusters[0], self.plan.secrets).cluster_id()
        assert PASSWORD not in str(error.value) and "PRIVATE" not in str(error.value)
        return error.value


@pytest.fixture
def provider() -> Iterator[Provider]:
    with oidc_server(ingest=PASSWORD) as started:
        yield started


@pytest.fixture
def by_tokens(provider: Provider, tmp_path: Path, lake: Path, spark: SparkSession) -> Iterator[LoginProject]:
    with token_kafka(tmp_path / "kafka", provider) as locked:
        project = LoginProject(tmp_path, lake, locked, spark, **TOKENS, token_endpoint=f"{provider.url}/token")
        project.keep(kafka_secret=PASSWORD)
        project.make_topic()
        yield project
        project.secrets.unlink()


def test_a_stream_works_on_while_tokens_end(by_tokens: LoginProject, provider: Provider) -> None:
    # They are replaced after 80 % of their life. Kafka lets nobody log in again within a second, so that shorter ones would be refused.
    project, provider.lifetime = by_tokens, 12
    project.more = f"run: {{every: 1s}}\nalso: [topic: {project.topic}_on]"
    with streaming(project) as stream:
        until(stream.lives, "the stream does not live", 120)
        for part in range(1, 4):
            project.send_good(500)
            stream.wait_for(500 * part)
            tokens = len(provider.scopes)
            until(lambda tokens=tokens: len(provider.scopes) > tokens + 2, "no new token is asked for", 60)  # type: ignore[misc]
        until(lambda: len(messages(project)) >= 1500, "the rows do not come onward", 120)
        failures = [event for event in stream.events if event["event"] in ("Failed", "Rests", "Away")]
        stream.end()
    assert not failures
    assert set(provider.scopes) == {"kafka"}
    assert sorted(row["id"] for row in project.rows()) == list(range(1500))
    assert sorted(message[1]["id"] for message in messages(project)) == list(range(1500))


def test_a_client_that_is_refused_and_a_provider_that_is_away_are_named_and_mend_themselves(
    by_tokens: LoginProject, provider: Provider
) -> None:
    project, provider.lifetime = by_tokens, 4
    project.more = "run: {every: 1s}"
    with streaming(project) as stream:
        project.send_good(100)
        stream.wait_for(100)
        provider.clients.clear()
        project.send_good(100)
        failure = until(lambda: stream.told("Away") or stream.told("Failed"), "nothing is said", 90)
        assert failure[0]["code"] == "kafka-refused", failure
        refusal = project.refusal()
        assert refusal.code == "kafka-refused" and "invalid_client" in refusal.message and "`client_id`" in refusal.hint
        provider.clients["ingest"] = PASSWORD
        stream.wait_for(200)
        provider.is_away = True
        outage = project.refusal()
        assert outage.code == "kafka-unreachable" and f"{provider.url}/token gives no token" in outage.message
        provider.is_away = False
        project.send_good(100)
        stream.wait_for(300)
        stream.end()
    assert sorted(row["id"] for row in project.rows()) == list(range(300))
    project.keep(kafka_secret="another")
    assert "invalid_client" in project.refusal().message


def test_a_provider_that_is_away_when_java_asks_is_no_mistake(by_tokens: LoginProject, provider: Provider) -> None:
    project = by_tokens
    project.send_good(10)

    def leave(point: str) -> None:
        provider.is_away = provider.is_away or point == "ranged"

    with pytest.raises(UnreachableError) as outage:
        project.run(at=leave)
    assert outage.value.code == "kafka-unreachable" and f"{provider.url}/token gives no token" in outage.value.message
    provider.is_away = False
    project.run()
    assert sorted(row["id"] for row in project.rows()) == list(range(10))


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def by_certificate(authority: Authority, tmp_path: Path, lake: Path, spark: SparkSession) -> Iterator[LoginProject]:
    ca = Path(f"ca-{uuid.uuid4().hex}.pem")
    ca.write_text(authority.certificate)
    with certificate_kafka(tmp_path / "kafka", authority) as locked:
        project = LoginProject(tmp_path, lake, locked, spark, **CERTIFICATES, ca=str(ca))
        project.make_topic()
        yield project
    project.secrets.unlink()
    ca.unlink()


def keep(project: LoginProject, pair: Pair, **form: Any) -> None:
    project.keep(kafka_certificate=in_line(pair.certificate), kafka_key=in_line(pair.key_text(**form)))


def test_a_login_by_certificate(by_certificate: LoginProject, authority: Authority) -> None:
    project = by_certificate
    project.more = f"also: [topic: {project.topic}_on]"
    keep(project, authority.pair("ingest"), old=True)  # Java takes no key of this form
    project.send_good(50)
    assert ran(project) == [50]
    assert sorted(row["id"] for row in project.rows()) == list(range(50))
    assert len(messages(project)) == 50
    keep(project, authority.pair("renewed"))
    project.send_good(50)
    assert ran(project) == [50]
    assert sorted(row["id"] for row in project.rows()) == list(range(100))


@pytest.mark.parametrize(
    ("certificate", "key", "message"),
    [
        ("ended", "ended", "ended on 20"),
        ("own", "other", "do not belong together"),
        ("foreign", "foreign", "alert"),
        ("own", "-----BEGIN NOTHING-----", "no private key in PEM"),
        ("nothing", "own", "no certificate in PEM"),
    ],
)
def test_certificates_that_are_wrong_are_named(
    certificate: str, key: str, message: str, by_certificate: LoginProject, authority: Authority
) -> None:
    pairs = {
        "own": authority.pair("ingest"), "other": authority.pair("other"), "ended": authority.pair("ended", days=-1),
        "foreign": Authority("foreign").pair("ingest"),
    }  # fmt: skip
    certificate_text = pairs[certificate].certificate if certificate in pairs else certificate
    by_certificate.keep(
        kafka_certificate=in_line(certificate_text), kafka_key=in_line(pairs[key].key_text() if key in pairs else key)
    )
    refusal = by_certificate.refusal()
    assert message in refusal.message, refusal
    assert (refusal.code, type(refusal)) in (("bad-certificate", SetupError), ("kafka-refused", UnreachableError))
