"""A REST catalog in use: expiring tokens, keys from the catalog, secrets that appear nowhere, and clear errors of commands.
The server is that of `sluice services up catalog`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from framework.base.errors import CatalogAway, SetupError
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.lake import TableStore
from framework.core.query.one_select import ask
from framework.core.spark import session
from framework.host.plans import make
from framework.machine.java.java import java
from framework.machine.services import catalog as service, s3
from framework.plan import Catalog
from framework.systems import catalogs
from tests.support.certificate import certified
from tests.support.proxy import between
from tests.support.rest_catalog import login

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

SPEC = """
cluster: main
bootstrap: ${{var:KAFKA:-127.0.0.1:1}}
---
catalog: lake
type: rest
uri: {uri}
oauth: {{client_id: "${{secret:oc_id}}", client_secret: "${{secret:oc_secret}}"}}
storage: {{endpoint: "{store}", region: us-east-1{keys}}}
---
topic: orders
value: json
columns: {{id: {{type: bigint, required: true}}}}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: shop.orders}}
"""
KEYS = ', access_key: "${secret:s3_key}", secret_key: "${secret:s3_secret}"'
FILES = [{"id": 1, "name": "id", "required": False, "type": "long"}]


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_store: str) -> Callable[[str], Catalog]:
    """Returns a function that plans a spec with an address and returns its catalog."""
    monkeypatch.chdir(tmp_path)
    login(monkeypatch)

    def plan(uri: str, keys: str = KEYS) -> Catalog:
        Path("specs").mkdir(exist_ok=True)
        Path("specs/a.yaml").write_text(SPEC.format(uri=uri, store=quick_store, keys=keys), encoding="utf-8")
        return make(Path("specs")).catalogs[0]

    return plan


def token(url: str) -> dict[str, str]:
    form = {"grant_type": "client_credentials", "client_id": service.CLIENT, "client_secret": service.SECRET}
    answer = requests.post(f"{url}/v1/oauth/tokens", data=form)
    return {"Authorization": f"Bearer {answer.json()['access_token']}"}


@contextmanager
def table(url: str, namespace: str) -> Iterator[str]:
    """Creates a table without rows as another program, and deletes it at the end."""
    headers = token(url)
    requests.post(f"{url}/v1/namespaces", json={"namespace": [namespace]}, headers=headers)
    request: Any = {"name": "t", "schema": {"type": "struct", "fields": FILES}}
    assert requests.post(f"{url}/v1/namespaces/{namespace}/tables", json=request, headers=headers).ok
    yield f"{namespace}.t"
    requests.delete(f"{url}/v1/namespaces/{namespace}/tables/t", headers=headers)


def test_a_table_is_read_without_a_jvm(planned: Callable[[str], Catalog], rest_catalog: str) -> None:
    catalog = planned(rest_catalog)
    with table(rest_catalog, "plain") as name:
        assert name in metadata.names(catalog)
        current = metadata.read(catalog, name)
        loaded = table_state.table(catalog, name)
        assert current is not None and loaded is not None
        assert current.uuid == str(loaded.metadata.table_uuid)
        assert current.files.existing([current.file])
        assert current.files.metadata(current.file)["table-uuid"] == current.uuid
    assert metadata.read(catalog, name) is None
    assert metadata.read(catalog, "nowhere.t") is None


def test_a_wrong_login_and_a_wrong_address_are_said(
    planned: Callable[[str], Catalog], rest_catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CatalogAway, match="it answers 404") as away:  # a missing table has another error
        metadata.read(planned(rest_catalog.replace("/api/catalog", "/elsewhere")), "shop.orders")
    assert "`uri`" in away.value.hint
    with pytest.raises(CatalogAway, match="does not answer"):
        metadata.read(planned("http://127.0.0.1:1/api"), "shop.orders")
    monkeypatch.setenv("SLUICE_SECRET_OC_SECRET", "another")
    with pytest.raises(CatalogAway, match="401: no such client, or another secret") as away:
        metadata.names(planned(rest_catalog))
    assert "`oauth`" in away.value.hint
    monkeypatch.delenv("SLUICE_SECRET_OC_SECRET")
    with pytest.raises(SetupError, match="`oc_secret` is not in the environment"):
        metadata.read(planned(rest_catalog), "shop.orders")


def test_a_token_that_was_taken_back_is_asked_for_again(planned: Callable[[str], Catalog], rest_catalog: str) -> None:
    catalog: Any = catalogs.client_of(planned(rest_catalog))
    assert catalog.current("shop.none") is None
    client = catalog._client
    assert client is catalogs.client_of(planned(rest_catalog))._client  # type: ignore[attr-defined]
    client._token = ("taken back", client._token[1])
    assert catalog.current("shop.none") is None
    assert client._token[0] != "taken back"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, quick_store: str) -> Callable[..., Any]:
    """Returns a function that starts servers with other settings."""
    service.get(lambda _: None)
    return lambda **settings: service.running(
        tmp_path_factory.mktemp("catalog"), quick_store, {name.replace("_to_", "."): value for name, value in settings.items()}
    )


@pytest.mark.long
def test_keys_that_the_catalog_gives_are_used(planned: Callable[..., Catalog], server: Callable[..., Any]) -> None:
    with server(**{"catalog_to_include-credentials": "true"}) as url, table(url, "vended") as name:
        catalog = planned(url, keys="")
        current = metadata.read(catalog, name)
        assert current is not None
        files: Any = current.files
        assert (files.login.key, files.login.secret) == (s3.KEY, s3.SECRET)
        assert s3.SECRET not in repr(files)
        assert files.metadata(current.file)["table-uuid"] == current.uuid
        loaded = table_state.table(catalog, name)
        assert loaded is not None
        assert loaded.scan().to_arrow().num_rows == 0


@pytest.mark.long
@pytest.mark.spark
def test_spark_writes_with_keys_that_the_catalog_gives(
    planned: Callable[..., Catalog], server: Callable[..., Any], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has only the catalog's keys: neither the spec nor this machine has any."""
    for name in [variable for variable in os.environ if variable.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(Path.cwd()))
    with server(**{"catalog_to_include-credentials": "true"}) as url:
        catalog = replace(planned(url, keys=""), name="vending")
        for key, value in session.catalog_settings(catalogs.client_of(catalog)).items():
            spark.conf.set(key, value)
        TableStore(spark, catalog)
        spark.sql("CREATE NAMESPACE vending.vended")
        spark.sql("CREATE TABLE vending.vended.two AS SELECT id FROM range(2)")
        assert spark.table("vending.vended.two").count() == 2
        table = table_state.table(catalog, "vended.two")
        assert table is not None
        assert table.scan().to_arrow().num_rows == 2
        assert list(ask([catalog], "select count(*) as n from vended.two").rows()) == [[2]]


CANARY = "canary-of-the-client-4d1f"
SLUICE = Path(sys.executable).with_name("sluice")


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.spark
def test_a_run_outlives_its_tokens_and_shows_no_secret(
    tmp_path: Path, kafka: str, quick_store: str, server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens last two seconds here. The commands' output, Spark's events and settings, and all project files are searched."""
    monkeypatch.chdir(tmp_path)
    login(monkeypatch, OC_SECRET=CANARY, S3_SECRET=f"{CANARY}-s3")
    monkeypatch.setenv("SLUICE_VAR_KAFKA", kafka)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    Path(".sluice").mkdir()
    Path(".sluice/jars").symlink_to(Path(__file__).parents[2] / ".sluice" / "jars")
    Path("events").mkdir()
    Path("specs").mkdir()
    events = f'spark.eventLog.enabled: "true", spark.eventLog.compress: "false", spark.eventLog.dir: "{(tmp_path / "events").as_uri()}"'
    with server(client_secret=CANARY, token_seconds="2") as url:
        spec = SPEC.format(uri=url, store=quick_store, keys=KEYS).replace("topic: orders", "topic: canaries")
        Path("specs/a.yaml").write_text(f"{spec}---\nengine: spark\nconf: {{{events}}}\n", encoding="utf-8")

        def sluice(*arguments: str, text: str = "") -> str:
            result = subprocess.run([SLUICE, *arguments], input=text, capture_output=True, text=True)
            assert result.returncode == 0, result.stdout + result.stderr
            assert CANARY not in result.stdout + result.stderr
            return result.stdout + result.stderr

        sluice("topics", "create", "canaries")
        for batch in range(2):
            assert "sent to canaries" in sluice("send", "canaries", "-", text=f'{{"id": {batch}}}\n')
            assert "caught up" in sluice("run")
        for command in (("status",), ("plan", "orders"), ("history", "orders")):
            sluice(*command)
        assert sluice("query", "select count(*) as n from shop.orders").split()[-1] == "2"
        files = [path for path in tmp_path.rglob("*") if path.is_file() and "jars" not in path.parts]
        assert any("events" in path.parts and b"spark.sql.catalog.lake.oauth2-server-uri" in path.read_bytes() for path in files)
        assert not [path for path in files if CANARY.encode() in path.read_bytes()]
        sluice("drop", "orders", "--data", "--yes")


@pytest.mark.long
@pytest.mark.spark
def test_a_certificate_of_the_companys_own_authority(
    tmp_path: Path, rest_catalog: str, quick_store: str, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python and Java each learn whom to trust, as docs/howto/rest-catalog.md says. Otherwise the error names the catalog."""
    monkeypatch.chdir(tmp_path)
    login(monkeypatch)
    monkeypatch.setenv("SLUICE_VAR_KAFKA", kafka)
    certificate, key = certified(tmp_path)
    keytool = Path(java()).with_name("keytool")
    subprocess.run(
        [keytool, "-importcert", "-noprompt", "-alias", "company", "-file", certificate, "-keystore", "company.p12",
         "-storepass", "company"],
        check=True, capture_output=True,
    )  # fmt: skip
    Path("specs").mkdir()
    with between(rest_catalog, (certificate, key)) as front:
        spec = SPEC.format(uri=front.url, store=quick_store, keys=KEYS)
        Path("specs/a.yaml").write_text(spec.replace("shop.orders", "company.orders").replace("topic: orders", "topic: company"))

        def sluice(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
            return subprocess.run([SLUICE, *arguments], input=text, capture_output=True, text=True)

        sluice("topics", "create", "company")
        sluice("send", "company", "-", text='{"id": 1}\n')
        untrusted = " ".join(sluice("status").stdout.split())
        assert "its certificate is not trusted" in untrusted
        assert "REQUESTS_CA_BUNDLE" in untrusted
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        java_alone = sluice("run")
        assert "JAVA_TOOL_OPTIONS" in java_alone.stderr
        assert java_alone.returncode == 1
        trust = f"-Djavax.net.ssl.trustStore={tmp_path / 'company.p12'} -Djavax.net.ssl.trustStorePassword=company"
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", trust)
        run = sluice("run")
        assert "orders is caught up" in run.stdout, run.stdout + run.stderr
        assert sluice("query", "select count(*) as n from company.orders").stdout.split()[-1] == "1"
