"""A registry that answers what none should: each command says so in one error with a code and a hint, and shows no login."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from framework.host.cli import main
from tests.support.registry_answers import Answers, serving, version, whole
from tests.support.registry_project import record

pytestmark = pytest.mark.slow

SPEC = """
cluster: main
bootstrap: 127.0.0.1:1
registry: {url}
registry_auth: {{username: me, password: "${{secret:registry}}"}}
---
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: warehouse
---
topic: t
value: avro
---
pipeline: p
from: {{topic: t}}
into: {{table: n.p}}
"""
LOGIN = "open sesame"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    monkeypatch.setenv("SLUICE_SECRET_REGISTRY", LOGIN)
    Path("specs").mkdir()


def run_command(url: str, *command: str) -> tuple[int, str]:
    """Runs a command and returns its exit status and output; an exception that it does not catch fails the test."""
    Path("specs/a.yaml").write_text(SPEC.format(url=url))
    result = CliRunner().invoke(main, [*command, "--specs", "specs"])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def of_schema(schema: Any, **fields: Any) -> Answers:
    """The answers of a registry with one version."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return lambda path: [1] if path.endswith("/versions") else version(schema=text, **fields)


def always(answer: Any) -> Answers:
    return lambda _: answer


def referring(path: str) -> Any:
    """Each subject refers to the next one, a hundred times."""
    if path.endswith("/versions"):
        return [1]
    name = path.split("/")[2]
    level = int(name.removeprefix("l")) if name.startswith("l") else 0
    return version(schema=json.dumps(record(("x", f"R{level + 1}"), name=f"R{level}")), references=[
        {"name": f"R{level + 1}", "subject": f"l{level + 1}", "version": 1},
    ] if level < 100 else [])  # fmt: skip


def cut_off(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[1"


def status(code: int, *headers: str) -> bytes:
    return whole(b'{"message": "no"}', f"{code} Something", *headers)


def moved(address: str) -> Answers:
    return always(whole(b"", "302 Found", f"Location: {address}"))


AWAY = {
    "an answer that breaks off": cut_off,
    "busy for a day": always(status(429, "Retry-After: 100000")), "an error": always(status(500)), "a gateway": always(status(503)),
    "no HTTP": always(b"\0\xff\x16\x03 hello\r\n\r\n"), "nothing": always(b""),
    "a status of six digits": always(b"HTTP/1.1 999999 X\r\n\r\n"),
    "a chunk without a length": always(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n[1]\r\n0\r\n\r\n"),
    "500 headers": always(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500 + b"Content-Length: 3\r\n\r\n[1]"),
}  # fmt: skip
STRANGE = {
    "a page": always(whole(b"<html>Log in</html>", "200 OK", "Content-Type: text/html")), "half": always(whole(b"[1, 2")),
    "10 MB of lists": always(whole(b"[" * 10_000_000)),
    "7 MB of lists": always(whole(b"[" * 3_500_000 + b"]" * 3_500_000)), "an object": always({"a": 1}),
    "its own address": lambda path: whole(b"", "302 Found", f"Location: {path}"), "no address": moved("http://[::1"),
    "a port that is none": moved("http://a:b/"), "an address of other bytes": moved("http://\xff\xfe/"),
    "an address with a login": moved(f"http://me:{LOGIN}@127.0.0.2:9/?password={LOGIN}"),
    "no content": always(b"HTTP/1.1 204 None\r\n\r\n"),
    "a question refused as a schema": always(status(409)), "another": always(status(422)), "a page that is missing": always(status(404)),
    "a bomb": always(whole(gzip.compress(b" " * 50_000_000), "200 OK", "Content-Encoding: gzip")),
    "itself": of_schema(record(("x", "int")), references=[{"name": "a", "subject": "t-value", "version": 1}]),
    "a hundred levels": referring,
}  # fmt: skip
REFUSED = {"401": always(status(401)), "403": always(status(403))}
UNFIT = {
    "a record in itself": {"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "R"]}]},
    "records in each other": record(("a", record(("b", ["null", "Trade"]), name="B"))), "no Avro": "hello", "a number": "5", "null": "null",
    "a million lists": "[" * 500_000 + "]" * 500_000, "a field without a type": {"type": "record", "name": "R", "fields": [{"name": "a"}]},
    "fields that are a text": {"type": "record", "name": "R", "fields": "ab"}, "a field without a name": record(("", "int")),
    "a field twice": record(("a", "int"), ("a", "string")), "6,000 fields": record(*((f"f{number}", "int") for number in range(6_000))),
    "a type that is a number": record(("a", 5)), "a record without fields": {"type": "record", "name": "R"}, "a name that is a list":
    {"type": "record", "name": ["R"], "fields": []},
}  # fmt: skip
ANSWERS: dict[str, tuple[Answers, str]] = {
    **{name: (answer, "registry-unreachable") for name, answer in AWAY.items()},
    **{name: (answer, "registry-strange") for name, answer in STRANGE.items()},
    **{name: (answer, "registry-refused") for name, answer in REFUSED.items()},
    **{name: (of_schema(schema), "unsupported-schema") for name, schema in UNFIT.items()},
    "no version": (always([]), "no-subject"),
}


@pytest.mark.usefixtures("registry_away")
@pytest.mark.parametrize("name", ANSWERS)
def test_a_hostile_answer_is_one_error_of_each_command(name: str) -> None:
    answer, code = ANSWERS[name]
    with serving(answer) as server:
        for command in (["check", "--online"], ["plan"], ["run"]):
            exit_code, output = run_command(server.url, *command)
            assert exit_code == 1, output
            assert re.findall(r"^specs/a\.yaml:13:8: ([a-z-]+): ", output, re.M) == [code], output
            assert output.count("\n  hint: ") == 1, output
            assert LOGIN not in output and "Error" not in output and "object has no" not in output, output
            assert "Connection aborted" not in output and "('" not in output, output
            assert len(output) < 2000
        exit_code, output = run_command(server.url, "clean", "--dry-run")
        assert (exit_code, LOGIN in output) == (0, False), output


CONTROLS = ("a\x1b[2Jb", "a\nb", "a\rb", "a\0b", "a\u202eb", "a\u2028b")


@pytest.mark.parametrize("name", CONTROLS, ids=ascii)
def test_names_and_descriptions_of_a_registry_cannot_steer_a_terminal(name: str) -> None:
    field = {
        "name": name,
        "type": ["null", {"type": "record", "name": "In", "fields": [{"name": name, "type": "int"}]}],
        "doc": name,
    }
    with serving(of_schema({"type": "record", "name": "R", "fields": [field, {"name": "ok", "type": "int"}]})) as server:
        for command in (["plan", "--no-look"], ["plan", "--no-look", "--lineage"], ["lineage"]):
            Path("specs/a.yaml").write_text(SPEC.format(url=server.url))
            result = CliRunner().invoke(main, [*command, "--specs", "specs"], color=True)  # as on a terminal
            assert result.exit_code == 0, result.output
            assert name not in result.output
            assert name.encode("unicode_escape").decode() in result.output
