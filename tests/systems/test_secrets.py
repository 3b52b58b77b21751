"""Where the values of secrets come from, and which of this machine's a spec cannot name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from framework.base.errors import SetupError
from framework.core.run import secret_digest
from framework.host.cli import query
from framework.host.plans import make
from framework.plan import SecretStore
from framework.plan.secret import SecretRef
from framework.systems.keyring import Ring
from framework.systems.secrets import file, open_key_store, reveal


def in_file(path: str) -> SecretStore:
    return SecretStore("file", file.Options(path))


ENV, FILE = SecretStore(), in_file(".sluice/secrets")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project" / ".sluice").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.delenv("SLUICE_HOME", raising=False)


def refused(name: str, store: SecretStore = ENV) -> SetupError:
    with pytest.raises(SetupError) as error:
        reveal(SecretRef(name), store)
    return error.value


def kept(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_two_processes_that_change_a_file_lose_nothing_of_each_other() -> None:
    kept(Path(".sluice/secrets"), "a=1\nb=1\n")
    code = (
        "import sys; from framework.plan import SecretStore; from framework.systems.keyring import Ring; "
        "from framework.systems.secrets import file, open_key_store; "
        "store = open_key_store(SecretStore('file', file.Options('.sluice/secrets'))); name = sys.argv[1]; "
        "ring = Ring(name=name, secrets=(name,))\n"
        "for number in range(2, 40): store.add_key(ring, number, {name: str(number)}); store.use_key(ring, number)"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "ab"]
    assert [process.wait(60) for process in processes] == [0, 0]
    store = open_key_store(FILE)
    for name in "ab":
        keys = store.keys(Ring(name=name, secrets=(name,)))
        assert [key.number for key in keys] == list(range(1, 40)) and reveal(SecretRef(name), FILE) == "39"
    assert [path.name for path in Path(".sluice").iterdir()] == ["secrets"]


def test_a_secret_is_a_variable_that_is_meant_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SECRET_KAFKA_KEY", "of the upper case")
    assert reveal(SecretRef("kafka_key"), ENV) == "of the upper case"
    monkeypatch.setenv("SLUICE_SECRET_kafka_key", "of its own case")
    assert reveal(SecretRef("kafka_key"), ENV) == "of its own case"
    monkeypatch.setenv("SLUICE_SECRET_PROD_KAFKA_KEY", "with other signs")
    assert reveal(SecretRef("prod/kafka-key"), ENV) == "with other signs"


def test_a_spec_cannot_name_another_variable_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sesame")
    for name in ("AWS_SECRET_ACCESS_KEY", "aws_secret_access_key"):
        error = refused(name)
        assert error.code == "no-secret"
        assert "sesame" not in str(error)
    assert refused("none").hint == "set the environment variable SLUICE_SECRET_NONE"


def test_the_hint_on_a_variable_of_another_name_works_when_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_KEY", "sesame")
    monkeypatch.setenv("SLUICE_SECRETS", "OTHER")
    hint = refused("kafka_key").hint
    assert hint.endswith("let specs read KAFKA_KEY, which is set, by SLUICE_SECRETS=OTHER,KAFKA_KEY")
    monkeypatch.setenv("SLUICE_SECRETS", hint.rpartition("=")[2])
    assert reveal(SecretRef("kafka_key"), ENV) == "sesame"
    assert refused("home").code == "no-secret"


def test_a_file_of_secrets_is_one_of_the_project(tmp_path: Path) -> None:
    path = kept(Path(".sluice/secrets"), "a=1\nb = 2 = 3\n")
    assert [reveal(SecretRef(name), FILE) for name in "ab"] == ["1", "2 = 3"]
    assert reveal(SecretRef("a"), in_file(str(path.absolute()))) == "1"
    assert refused("c", FILE).code == "no-secret"
    path.chmod(0o644)
    assert refused("a", FILE).code == "open-secrets"


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path / "credentials", "aws_secret_access_key = sesame\n")
    Path(".sluice/secrets").symlink_to(tmp_path / "credentials")
    error = refused("aws_secret_access_key", FILE)
    assert error.code == "open-secrets"
    assert "outside the project" in error.message
    Path(".sluice/secrets").unlink()
    kept(Path("mounted"), "a=1\n")
    Path(".sluice/secrets").symlink_to(Path("mounted").absolute())  # as Kubernetes does inside a volume
    assert reveal(SecretRef("a"), FILE) == "1"
    (tmp_path / "home").mkdir()
    kept(tmp_path / "home" / "secrets", "a=2\n")
    Path("linked").symlink_to(tmp_path / "home")
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    assert reveal(SecretRef("a"), in_file("linked/secrets")) == "2"


@pytest.mark.parametrize("path", ["folder", "binary", "none"])
def test_what_is_no_file_of_secrets_is_an_error_with_a_name(path: str) -> None:
    Path("folder").mkdir()
    Path("binary").write_bytes(b"\xff\xfe")
    Path("binary").chmod(0o600)
    assert refused("a", in_file(path)).code in ("no-secret", "open-secrets")


def test_a_query_takes_them_from_the_store_that_the_specs_name() -> None:
    Path("specs").mkdir()
    store = "secrets: main\nstore: file\npath: .sluice/secrets\n---\n"
    Path("specs/a.yaml").write_text(f"{store}catalog: lake\ntype: sql\nuri: sqlite:///lake.db\nwarehouse: lake\n")
    (catalog,) = query._catalogs(Path("specs"), "local")
    assert catalog.secrets == FILE


USING = """
cluster: main
bootstrap: "127.0.0.1:1"
security: {protocol: SASL_SSL, mechanism: PLAIN, username: "${secret:kafka_user}", password: "${secret:kafka}"}
registry: "https://127.0.0.1:2"
registry_auth: {username: "${secret:registry_user}", password: "${secret:registry}"}
---
catalog: lake
type: rest
uri: "https://127.0.0.1:3/api"
warehouse: w
oauth: {client_id: "${secret:client}", client_secret: "${secret:catalog}"}
---
topic: trades
value: json
columns: {price: double, symbol: string}
---
pipeline: trades
from: {topic: trades}
steps: [{mask: {columns: {symbol: hmac}, key: "${secret:pii}"}}]
into: {table: m.trades}
---
pipeline: copy
from: {table: m.trades}
into: {table: m.copy}
also: [{topic: out, key: symbol}]
"""


def test_all_secrets_that_a_pipeline_uses_are_in_its_digest() -> None:
    Path("specs").mkdir()
    Path("specs/a.yaml").write_text(USING)
    plan = make(Path("specs"))
    kafka = {"kafka_user", "kafka", "registry_user", "registry"}
    assert {secret.name for secret in secret_digest.used_secrets(plan.pipeline("trades"))} == {*kafka, "client", "catalog", "pii"}
    assert {secret.name for secret in secret_digest.used_secrets(plan.pipeline("copy"))} == {*kafka, "client", "catalog"}


def test_a_digest_cannot_be_computed_without_the_users_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SECRET_A", "1234")
    digests = []
    for user in ("first", "second"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / user))
        digests += [secret_digest.digest(SecretRef("a"), ENV), secret_digest.digest(SecretRef("a"), ENV)]
    assert digests[0] == digests[1] != digests[2] == digests[3]
    assert not secret_digest.is_another(digests[0], digests[2]), "by another key nobody can tell"
    monkeypatch.setenv("SLUICE_SECRET_A", "12345")
    assert secret_digest.is_another(digests[2], secret_digest.digest(SecretRef("a"), ENV))
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert secret_digest.digest(SecretRef("a"), ENV) == "", "there can be no key"
