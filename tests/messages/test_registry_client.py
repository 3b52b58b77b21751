"""The real registry behind a front that wants a login, speaks TLS, takes its time or is busy, as a company's gateway does."""

from __future__ import annotations

import base64
import ssl
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from framework.base.errors import UnreachableError
from framework.messages.registry.client import Registry
from framework.plan import Cluster, Login, SecretStore, Security
from framework.plan.secret import SecretRef
from tests.support.certificate import certified
from tests.support.time_limits import bar

pytestmark = pytest.mark.slow


@dataclass
class Front:
    """A front before the registry, which counts its requests in `request_count`."""

    behind: str
    url: str = ""
    login: str = ""
    seconds: float = 0.0
    busy: int = 0
    request_count: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def registry(self, login: Login | None = None, patience: float = 3.0) -> Registry:
        return Registry(
            Cluster(name="main", bootstrap="127.0.0.1:1", security=Security(), registry=self.url, registry_auth=login),
            SecretStore(),
            patience,
        )


@contextmanager
def standing(front: Front, certificate: Path | None = None) -> Iterator[Front]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            front.request_count += 1
            front.ended.wait(front.seconds)
            expected_login = "Basic " + base64.b64encode(front.login.encode()).decode()
            if front.login and self.headers["Authorization"] != expected_login:
                return self.answer(401, b"{}")
            if front.busy:
                front.busy -= 1
                return self.answer(503, b"try again")
            answer = requests.get(front.behind + self.path, timeout=20)
            return self.answer(answer.status_code, answer.content)

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    front.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    try:
        yield front
    finally:
        front.ended.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def subject(registry: str) -> str:
    name = f"s{uuid.uuid4().hex[:8]}"
    schema = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
    Front(registry, registry).registry().register(name, "AVRO", schema)
    return name


@pytest.fixture
def front(registry: str) -> Iterator[Front]:
    with standing(Front(registry)) as front:
        yield front


def test_a_login_is_sent_and_a_rejected_one_is_an_error(front: Front, subject: str, monkeypatch: pytest.MonkeyPatch) -> None:
    front.login = "me:open sesame"
    login = Login("me", SecretRef("registry_password"))
    monkeypatch.setenv("SLUICE_SECRET_REGISTRY_PASSWORD", "open sesame")
    assert front.registry(login).numbers(subject) == (1,)
    monkeypatch.setenv("SLUICE_SECRET_REGISTRY_PASSWORD", "wrong")
    for client in (front.registry(login), front.registry()):
        with pytest.raises(UnreachableError, match="rejected the login") as error:
            client.numbers(subject)
        assert error.value.code == "registry-refused"
        assert "wrong" not in str(error.value)


def test_an_untrusted_certificate_is_an_error(
    registry: str, subject: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = certified(tmp_path)
    pem_file = tmp_path / "both.pem"
    pem_file.write_text(key.read_text() + certificate.read_text())
    with standing(Front(registry), pem_file) as front:
        with pytest.raises(UnreachableError, match="is not trusted") as error:
            front.registry().numbers(subject)
        assert error.value.code == "registry-refused"
        assert "REQUESTS_CA_BUNDLE" in error.value.hint
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        assert front.registry().numbers(subject) == (1,)


@pytest.mark.timed
def test_a_slow_registry_is_awaited_only_up_to_the_limit(front: Front, subject: str) -> None:
    front.seconds = 0.2
    assert front.registry(patience=30.0).numbers(subject) == (1,)
    front.seconds, front.request_count = 5.0, 0
    away = front.registry(patience=1.0)
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(UnreachableError, match="does not answer in time"):
            away.numbers(subject)
    assert time.monotonic() - began < bar(2)
    assert front.request_count == 1  # and not again until its patience has passed


def test_a_busy_registry_is_asked_again(front: Front, subject: str) -> None:
    front.busy = 2
    assert front.registry().numbers(subject) == (1,)
    assert front.request_count == 3
    front.busy = 1000
    with pytest.raises(UnreachableError, match="answers 503"):
        front.registry(patience=1.0).numbers(subject)
    assert front.request_count < 12
