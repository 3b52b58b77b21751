"""Servers in a registry's place: slow or huge ones, redirects, and answers that no registry gives."""

from __future__ import annotations

import base64
import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from click.testing import CliRunner, Result

from framework.base.errors import SluiceError, UnreachableError
from framework.host.cli import main
from framework.messages.registry import answers, cache
from framework.plan import Login
from framework.plan.schema import Schema
from framework.plan.secret import SecretRef
from framework.systems import http as channel
from tests.support.registry_answers import Answers, Server, serving, version, whole
from tests.support.time_limits import bar
from tests.support.waiting import until

pytestmark = pytest.mark.slow  # each test starts a server


def drop_by_drop(before: bytes, byte: bytes) -> Iterator[bytes]:
    """Sends `before` at once, then a byte every 10 ms."""
    never = threading.Event()
    yield before
    while not never.wait(0.01):
        yield byte


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))


STREAMS = {
    "the status": (b"HTTP/1.1 20", b"0"),
    "the headers": (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
    "the body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[1", b" "),
    "a body without a length": (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[1]", b" "),
    "the chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "the length of a chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    "what comes before": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.timed
@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_a_dripping_answer_times_out(stream: tuple[bytes, bytes]) -> None:
    with serving(lambda _: drop_by_drop(*stream)) as server:
        began = time.monotonic()
        with pytest.raises(UnreachableError, match="does not answer in time") as error:
            server.registry(patience=0.05).numbers("s")
        assert error.value.code == "registry-unreachable"
        assert time.monotonic() - began < bar(2)  # and not for ever
        assert len(server.requests) <= 1


def test_an_answer_that_stops_in_the_middle_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer counts as late also if the socket's own timeout comes first."""
    monkeypatch.setattr(channel._Watch, "end", lambda _: None)  # else it may be first

    def stops() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[1"
        until(lambda: over.is_set(), "nobody gives up")

    over = threading.Event()
    with serving(lambda _: stops()) as server:
        with pytest.raises(UnreachableError, match="does not answer in time"):
            server.registry(patience=0.05).numbers("s")
        over.set()


def test_a_connection_that_comes_too_late_is_ended_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with many addresses, of which only the last answers, connects as late as this."""
    connect = urllib3.connection.HTTPConnection.connect
    watch = channel._Watch()
    monkeypatch.setattr(channel, "_Watch", lambda: watch)  # the test waits for its end

    def slow(connection: urllib3.connection.HTTPConnection) -> None:
        connect(connection)
        until(lambda: watch.over, "nobody ends it")

    monkeypatch.setattr(urllib3.connection.HTTPConnection, "connect", slow)  # no host of a test has many addresses
    with serving(lambda _: drop_by_drop(*STREAMS["the headers"])) as server:
        registry = server.registry(patience=0.02)
        with pytest.raises(UnreachableError, match="does not answer in time"):
            registry.numbers("s")


def test_an_answer_is_read_up_to_a_limit_and_no_further() -> None:
    chunks = []

    def endless(_: str) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n["
        while True:
            chunks.append(1)
            yield b" " * (1 << 20)

    with serving(endless) as server:
        assert strange(lambda: server.registry().numbers("s")).endswith("answers with more than 8 MB")
        assert len(chunks) < 32


def test_an_answer_that_would_unpack_to_more_is_not_unpacked() -> None:
    packed = gzip.compress(b" " * 1_000_000)
    with serving(lambda _: whole(packed, "200 OK", "Content-Encoding: gzip")) as server:
        assert "encoding 'gzip'" in strange(lambda: server.registry().numbers("s"))
        assert "accept-encoding: identity" in server.requests[0].lower()


def test_nothing_is_asked_of_an_address_that_the_spec_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SECRET_PASSWORD", "open sesame")
    with serving(lambda _: [1]) as other_server:
        location = f"Location: http://me:secret@localhost:{other_server.port}/x"
        with serving(lambda _: whole(b"", "307 Temporary Redirect", location)) as server:
            message = strange(lambda: server.registry(Login("me", SecretRef("PASSWORD"))).numbers("s"))
    assert message.endswith(f"sends on to localhost:{other_server.port}, where nothing is asked")
    assert other_server.requests == []


def test_no_login_is_sent_that_the_spec_does_not_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("default login me password sesame\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving(lambda _: [1]) as server:
        registry = server.registry()
        registry._connected()._line.session.trust_env = True  # as for every address but this machine's own
        assert registry.numbers("s") == (1,)
    assert "authorization" not in server.requests[0].lower()


def referring(**fields: Any) -> dict[str, Any]:
    return version(references=[{"name": "a", "subject": "a", "version": 1, **fields}])


OF_NUMBERS = {
    "deep": whole(b"[" * 100_000), "an object": {"a": 1}, "null": None, "a null": [None], "text": ["1"], "true": [True],
    "a fraction": [1.5], "infinite": whole(b"[1e400]"), "not a number": whole(b"[NaN]"), "long": whole(b"[" + b"9" * 5000 + b"]"),
    "large": [2**40], "nothing": whole(b""), "a page": whole(b"<html>"), "other bytes": whole(b"\xff\xfe"),
    "too many": list(range(20_000)),
}  # fmt: skip
OF_VERSION = {
    "a list": [1], "no schema": {"id": 1}, "a schema that is none": version(schema={"type": "long"}),
    "no id": version(id=None), "another id": version(id="1"), "another kind": version(schemaType="XML"),
    "a kind that is a list": version(schemaType=["AVRO"]), "references that are none": version(references={"a": 1}),
    "a reference that is none": version(references=[None]), "a reference without a name": referring(name=None),
    "a reference to no version": referring(version="latest"), "half a character": version(schema="\ud800"),
    "a name with half a character": referring(name="\ud800"), "a subject with half a character": referring(subject="\ud800"),
    "very many references": version(references=[{"name": f"n{number}", "subject": "s", "version": 1} for number in range(2000)]),
    "itself": referring(subject="s"),
}  # fmt: skip


@pytest.mark.parametrize("answer", OF_NUMBERS.values(), ids=OF_NUMBERS)
def test_invalid_version_numbers_are_strange(answer: Any) -> None:
    with serving(lambda _: answer) as server:
        strange(lambda: server.registry().numbers("s"))


@pytest.mark.parametrize("answer", OF_VERSION.values(), ids=OF_VERSION)
def test_an_invalid_version_is_strange(answer: Any) -> None:
    with serving(lambda path: [1] if path.endswith("/versions") else answer) as server:
        strange(lambda: server.registry().subject("s"))
        if "id" not in answer or isinstance(answer["id"], int):
            strange(lambda: server.registry().schema(7))


def test_answers_of_another_form_are_strange() -> None:
    for answer in ({"a": 1}, [None], [{"subject": 1}], [{"subject": "\ud800"}]):
        with serving(lambda _, answer=answer: answer) as server:  # type: ignore[misc]
            strange(lambda: server.registry().subjects(7))
            strange(lambda: server.registry().register("s", "AVRO", '"long"'))


def test_a_registrys_message_cannot_steer_a_terminal() -> None:
    body = json.dumps({"error_code": 42201, "message": "no\x1b[2J" + "x" * 100_000})
    with serving(lambda _: whole(body.encode(), "422 Unprocessable")) as server:
        with pytest.raises(SluiceError) as error:
            server.registry().register("s", "AVRO", '"long"')
        assert error.value.code == "schema-refused"
        assert "\x1b" not in error.value.message
        assert len(error.value.message) < 500


def test_a_login_that_a_registry_quotes_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SECRET_REGISTRY", "se/same")
    quoted = "no: me se/same se%2Fsame " + base64.b64encode(b"me:se/same").decode()
    with serving(lambda _: whole(json.dumps({"message": quoted}).encode(), "422 Unprocessable")) as server:
        with pytest.raises(SluiceError) as error:
            server.registry(Login("me", SecretRef("registry"))).register("s", "AVRO", '"long"')
        assert "no: me *** *** ***" in error.value.message


def strange(work: Callable[[], object]) -> str:
    with pytest.raises(UnreachableError) as error:
        work()
    assert error.value.code == "registry-strange"
    return error.value.message


def bomb(levels: int) -> Answers:
    """Returns answers in which each level refers twice to the next."""

    def answer(path: str) -> Any:
        subject = path.split("/")[2]
        if path.endswith("/versions"):
            return [1]
        level = int(subject.removeprefix("l"))
        below = [{"name": f"{subject}.{side}", "subject": f"l{level + 1}", "version": 1} for side in "ab"]
        return version(subject=subject, schema=json.dumps(subject), references=below if level < levels else [])

    return answer


def test_branching_references_are_read_once_each() -> None:
    with serving(bomb(25)) as server:
        subject = server.registry().subject("l0")
        assert len(server.paths) == 27  # the numbers, and each version once
        (whole_,) = subject.versions
        names = [name for name, _ in whole_.schema.behind]
        assert len(names) == len(set(names)) == 50
        assert names[0] == "l24.a"  # what others need comes first
        assert hash(whole_.schema) == hash(Schema(whole_.schema.kind, whole_.schema.text, whole_.schema.behind))
        assert cache.read(server.url, "l0") == subject


def test_references_without_end_are_strange() -> None:
    with serving(bomb(10**9)) as server:
        assert strange(lambda: server.registry().subject("l0")).endswith("has references without end")


def test_too_many_or_too_large_references_are_strange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_REFERENCES", 100)  # the real limit takes 1000 requests

    def wide(path: str) -> Any:
        name = path.split("/")[2]
        count = 20 if name.count(".") < 2 else 0
        references = [{"name": f"{name}.{number}", "subject": f"{name}.{number}", "version": 1} for number in range(count)]
        return [1] if path.endswith("/versions") else version(references=references)

    with serving(wide) as server:
        assert "more than 100 references" in strange(lambda: server.registry().subject("w"))
        assert len(server.requests) < 120


def test_all_versions_together_are_bounded() -> None:
    large = " " * (7 << 20) + '"long"'
    with serving(lambda path: list(range(1, 40)) if path.endswith("/versions") else version(schema=large)) as server:
        assert strange(lambda: server.registry().subject("s")).endswith("has more than 64 MB for one subject")
        assert len(server.requests) < 13


TOPIC = """
cluster: main
bootstrap: 127.0.0.1:1
registry: {url}
registry_auth: {{username: me, password: "${{secret:registry}}"}}
---
topic: t
value: avro
{more}
"""


def checked(folder: Path, server: Server, *arguments: str, extra: str = "") -> Result:
    (folder / "specs").mkdir(exist_ok=True)
    (folder / "specs" / "a.yaml").write_text(TOPIC.format(url=server.url, more=extra))
    return CliRunner().invoke(main, ["check", "--specs", str(folder / "specs"), *arguments])


def test_check_sends_a_login_only_with_online(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SECRET_REGISTRY", "sesame")
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]})
    with serving(lambda path: [1] if path.endswith("/versions") else version(schema=schema)) as server:
        result = checked(tmp_path, server)
        assert result.exit_code == 1
        assert "registry-not-asked: the schema registry at http://127.0.0.1:" in result.output
        assert f"`sluice check --online --specs {tmp_path / 'specs'}` asks it; or write `columns:`" in result.output
        fine = checked(tmp_path, server, extra="columns: {id: bigint}")
        assert fine.exit_code == 0
        assert "`columns` were not compared with it" in fine.stderr
        assert server.requests == []

        assert checked(tmp_path, server, "--online").output == "0 pipelines, 1 topic: no problems\n"
        assert {line for request in server.requests for line in request.splitlines() if line.startswith("Authorization")}
        server.requests.clear()
        remembered = checked(tmp_path, server)
        assert remembered.exit_code == 0
        assert "it wants a login, and none is sent here; its cached schemas count" in remembered.stderr
        assert server.requests == []


def test_an_error_that_quotes_somebody_cannot_steer_a_terminal() -> None:
    assert str(SluiceError("x", "one\n\ttwo \x1b[2J\x9b", "three\r")) == "x: one\n\ttwo \\x1b[2J\\x9b\n  hint: three\\r"


def test_an_id_that_no_registry_has_is_not_asked_for() -> None:
    """Some registries answer an id of 32 bits as if its address did not exist, so it is never requested."""
    with serving(lambda _: {"error_code": 404, "message": "HTTP 404 Not Found"}) as server:
        assert server.registry().schema(1 << 31) is None
        assert server.requests == []


def test_a_subject_that_was_deleted_and_has_more_versions_now_is_read_anew() -> None:
    schemas = {1: version(schema='"string"')}
    with serving(lambda path: sorted(schemas) if path.endswith("/versions") else schemas[int(path[-1])]) as server:
        assert [read_version.schema.text for read_version in server.registry().subject("s").versions] == ['"string"']
        schemas.update({1: version(id=50, schema='"int"'), 2: version(id=51, version=2, schema='"long"')})
        assert [read_version.schema.text for read_version in server.registry().subject("s").versions] == ['"int"', '"long"']
