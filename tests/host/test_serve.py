"""`sluice serve`: what real readers see of a catalog by Iceberg's REST protocol, and that they cannot write."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import duckdb
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError, OAuthError

from framework.core.query import database as database_module
from framework.host.serve import server
from framework.machine.services.ports import free_port
from framework.plan import Plan
from framework.systems import catalogs
from tests.support.login_proxy import Requests
from tests.support.served_tables import CLIENT, ROWS, SECRET, fill, planned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

IN_BUCKET = """
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: s3://sluice/served
storage: {endpoint: "STORE", region: us-east-1, access_key: "${secret:key}", secret_key: "${secret:secret}",
  role: "arn:aws:iam::123456789012:role/readers"}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    plan = planned(tmp_path, monkeypatch)
    fill(plan)
    return plan


@pytest.fixture
def address(plan: Plan) -> Iterator[str]:
    with server.running(plan, plan.catalogs[0], 0, lambda _: {(CLIENT, SECRET)}) as url:
        yield url


def reader(address: str, **settings: str) -> RestCatalog:
    return RestCatalog("served", uri=address, credential=f"{CLIENT}:{SECRET}", **settings)


def token(address: str) -> dict[str, str]:
    form = {"grant_type": "client_credentials", "client_id": CLIENT, "client_secret": SECRET}
    answer = requests.post(f"{address}/v1/oauth/tokens", data=form).json()
    return {"Authorization": f"Bearer {answer['access_token']}"}


def test_pyiceberg_reads_and_sees_main_alone(address: str) -> None:
    catalog = reader(address)
    assert catalog.list_namespaces() == [("shop",)]
    assert catalog.list_tables("shop") == [("shop", "orders")]
    table = catalog.load_table("shop.orders")
    assert table.scan().to_arrow().column("id").to_pylist() == [1, 2, 3]
    assert set(table.metadata.refs) == {"main"}
    assert not any(name.startswith("sluice.") for name in table.properties)
    with pytest.raises(NoSuchTableError):
        catalog.load_table("shop.orders__bad_rows")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("shop.nothing")


def test_no_reader_can_write(address: str, plan: Plan) -> None:
    catalog = reader(address)
    table = catalog.load_table("shop.orders")
    with pytest.raises(NotImplementedError, match="does not support endpoint: POST"):
        table.append(ROWS)
    with pytest.raises(NotImplementedError):
        catalog.drop_table("shop.orders")
    for path in ("namespaces/shop", "namespaces/shop/tables/orders"):
        assert requests.delete(f"{address}/v1/{path}", headers=token(address)).status_code == 405
    answer = requests.post(f"{address}/v1/namespaces/shop/tables/orders", json={}, headers=token(address))
    assert (answer.status_code, answer.json()["error"]["message"]) == (405, "this catalog can only be read")
    current = catalogs.client_of(plan.catalogs[0]).load("shop.orders")
    assert current is not None and len(current.scan().to_arrow()) == 3


def test_duckdb_reads_a_served_table(address: str) -> None:
    with duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}) as database:
        for name in database_module._EXTENSIONS:
            database.execute(f"LOAD '{database_module._extension(name)}'")
        for statement in typed(address):
            database.execute(statement)
        assert database.execute("SELECT count(*) FROM lake.shop.orders").fetchall() == [(3,)]
        assert database.execute("SELECT id FROM lake.shop.orders ORDER BY id").fetchall() == [(1,), (2,), (3,)]


def typed(address: str) -> list[str]:
    """Returns the statements of docs/howto/serve.md for DuckDB, without those that download extensions."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "serve.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    statements = block.replace("<address>", address).replace("<secret>", SECRET).split(";")
    queries = [
        statement for statement in statements if statement.strip() and "INSTALL" not in statement and "LOAD" not in statement
    ]
    assert len(queries) == 3
    return queries


@pytest.mark.spark
@pytest.mark.long
def test_spark_reads_and_cannot_write(address: str, spark: SparkSession) -> None:
    name = f"served_{address.rpartition(':')[2]}"
    settings = {"type": "rest", "uri": address, "credential": f"{CLIENT}:{SECRET}", "rest.auth.type": "oauth2"}
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in {**settings, "oauth2-server-uri": f"{address}/v1/oauth/tokens"}.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    assert [row[0] for row in spark.sql(f"SELECT id FROM {name}.shop.orders ORDER BY id").collect()] == [1, 2, 3]
    assert [row["tableName"] for row in spark.sql(f"SHOW TABLES IN {name}.shop").collect()] == ["orders"]
    with pytest.raises(Exception, match=r"only be read|not support"):
        spark.sql(f"INSERT INTO {name}.shop.orders VALUES (9)")


@pytest.mark.slow
def test_readers_get_keys_of_one_table(aws: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request to STS shows keys of the storage's role, limited to the table. moto does not enforce the limit."""
    requested = Requests(aws)
    monkeypatch.setenv("SLUICE_SECRET_KEY", "AKIAOFTHESPEC")
    monkeypatch.setenv("SLUICE_SECRET_SECRET", "a-secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", requested.url)
    fill(planned(tmp_path, monkeypatch, IN_BUCKET.replace("STORE", aws)))
    plan = planned(tmp_path, monkeypatch, IN_BUCKET.replace("STORE", requested.url))
    with server.running(plan, plan.catalogs[0], 0, lambda _: {(CLIENT, SECRET)}) as url:
        requested.assumed.clear()
        requested.logins.clear()
        table = reader(url).load_table("shop.orders")
        (request,) = [parse_qs(body) for body in requested.assumed if "Policy=" in body]
        statement = json.loads(request["Policy"][0])["Statement"]
        assert statement[0]["Resource"] == ["arn:aws:s3:::sluice/served/shop/orders/*"]
        assert [rule["Action"] for rule in statement] == [["s3:GetObject"], ["s3:ListBucket"]]
        assert "AKIAOFTHESPEC" not in f"{table.config} {table.io.properties}"
        requested.logins.clear()
        assert table.scan().to_arrow().column("id").to_pylist() == [1, 2, 3]
        assert requested.logins and all(key.startswith("ASIA") for key in requested.logins)
        plain = reader(url, **{"header.X-Iceberg-Access-Delegation": ""}).load_table("shop.orders")
        assert "s3.access-key-id" not in plain.io.properties
        assert plain.io.properties["s3.endpoint"] == requested.url


@pytest.mark.parametrize(
    "form",
    [
        {"grant_type": "client_credentials", "client_id": CLIENT, "client_secret": "wrong"},
        {"grant_type": "client_credentials", "client_id": "another", "client_secret": SECRET},
        {"grant_type": "password", "client_id": CLIENT, "client_secret": SECRET},
        {},
    ],
)
def test_a_wrong_login_gets_no_token(address: str, form: dict[str, str]) -> None:
    answer = requests.post(f"{address}/v1/oauth/tokens", data=form)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer x"}, {"Authorization": "Bearer "}, {"Authorization": SECRET}])
def test_without_a_token_nothing_is_told(address: str, headers: dict[str, str]) -> None:
    for path in ("/v1/config", "/v1/namespaces", "/v1/namespaces/shop/tables", "/v1/namespaces/shop/tables/orders"):
        answer = requests.get(f"{address}{path}", headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (401, "NotAuthorizedException")


def test_a_login_in_a_header_and_strange_requests(address: str) -> None:
    form = {"grant_type": "client_credentials"}
    assert requests.post(f"{address}/v1/oauth/tokens", data=form, auth=(CLIENT, SECRET)).ok
    wrong = {"Authorization": "Basic !!!"}
    assert requests.post(f"{address}/v1/oauth/tokens", data=form, headers=wrong).status_code == 401
    assert requests.post(f"{address}/v1/oauth/tokens", data=b"x" * (1 << 20)).status_code == 413
    for path in ("/", "/v1/namespaces/shop/tables/%00/x", "/v1/namespaces/no/tables/..%2f..%2fetc"):
        assert requests.get(f"{address}{path}", headers=token(address)).status_code == 404
    with pytest.raises(OAuthError):
        RestCatalog("served", uri=address, credential="reader:wrong").list_namespaces()


def test_a_token_ends(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = token(address)
    assert requests.get(f"{address}/v1/namespaces", headers=headers).ok
    current_time = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: current_time + 3601)  # a token ends after an hour
    assert requests.get(f"{address}/v1/namespaces", headers=headers).status_code == 401


def test_a_catalog_that_is_away_is_told_without_its_place(address: str, plan: Plan, tmp_path: Path) -> None:
    headers = token(address)
    (tmp_path / "lake.db").write_bytes(b"no database at all" * 100)
    answer = requests.get(f"{address}/v1/namespaces/shop/tables/orders", headers=headers)
    assert answer.status_code == 503
    assert str(tmp_path) not in answer.text


def test_the_command_serves_until_it_is_stopped(plan: Plan, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("sluice")), "serve", "--port", str(free_port())]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
        env={**os.environ, "SLUICE_SERVE_SECRET": SECRET},
    ) as child:  # fmt: skip
        assert child.stdout is not None
        first_line = child.stdout.readline()
        assert "catalog lake, read-only" in first_line, first_line
        assert SECRET not in child.stdout.readline()
        assert reader(first_line.partition(": ")[0]).list_tables("shop") == [("shop", "orders")]
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 0
        assert "Traceback" not in child.stdout.read()
