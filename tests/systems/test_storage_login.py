"""Logins to an object store: an assumed role, a profile, keys. Requests to S3 and STS show which is used; moto answers."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.lake import TableStore
from framework.core.publish.tables import open_table
from framework.core.query.one_select import ask
from framework.host.plans import make
from framework.operations.trials.given_messages import GivenMessages
from tests.support.spark_catalogs import tell
from tests.support.spec_parts import ORDERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

CATALOG = """\
catalog: {name}
type: sql
uri: sqlite:///{name}.db
warehouse: s3://sluice/{name}
storage: {{endpoint: "{store}", region: us-east-1, {login}}}
"""


class Requests:
    """A proxy before moto that records the login of each request."""

    def __init__(self, url: str) -> None:
        self.logins: set[str] = set()  # ids of keys that S3 was asked with
        self.assumed: list[str] = []  # bodies of requests to assume a role
        self.encrypted: set[str] = set()
        requested = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {
                    key: value for key, value in self.headers.items() if key.lower() not in ("host", "content-length", "expect")
                }
                if b"Action=AssumeRole" in body:
                    requested.assumed.append(body.decode())
                elif key := re.search(r"Credential=(\w+)/", self.headers.get("Authorization", "")):
                    requested.logins.add(key[1])
                if self.headers.get("x-amz-server-side-encryption-aws-kms-key-id"):
                    requested.encrypted.add(self.headers["x-amz-server-side-encryption-aws-kms-key-id"])
                answer = requests.request(self.command, url + self.path, data=body, headers=headers, stream=True)
                content = answer.raw.read()
                self.send_response(answer.status_code)
                for key_, value in answer.headers.items():
                    if key_.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                        self.send_header(key_, value)
                length = (
                    answer.headers["Content-Length"]
                    if self.command == "HEAD" and "Content-Length" in answer.headers
                    else len(content)
                )
                self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = _pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def requested(aws: str) -> Iterator[Requests]:
    proxy = Requests(aws)
    yield proxy
    proxy.server.shutdown()
    proxy.server.server_close()


@pytest.fixture
def java_properties(spark: SparkSession) -> Iterator[Any]:
    jvm: Any = spark._jvm

    def clear() -> None:
        for name in ("aws.accessKeyId", "aws.secretAccessKey", "aws.profile", "aws.endpointUrlSts"):
            jvm.System.clearProperty(name)

    clear()  # what a test of Glue left
    yield jvm.System
    clear()


@pytest.mark.parametrize(
    ("login", "with_role"),
    [
        (
            'access_key: "${{secret:key}}", secret_key: "${{secret:secret}}", kms_key: "arn:aws:kms:us-east-1:123456789012:key/one"',
            False,
        ),
        (
            'access_key: "${{secret:key}}", secret_key: "${{secret:secret}}",'
            ' role: "arn:aws:iam::123456789012:role/sluice", external_id: one',
            True,
        ),
        ('profile: reports, role: "arn:aws:iam::123456789012:role/sluice"', True),
        ("profile: reports", False),
    ],
    ids=["keys", "role", "role of a profile", "profile"],
)
def test_the_login_of_the_spec_is_used_by_all(
    login: str,
    with_role: bool,
    requested: Requests,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spark: SparkSession,
    java_properties: Any,
) -> None:
    """Spark's Java, boto3, PyIceberg and DuckDB all use the spec's login."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_SECRET_KEY", "AKIAOFTHESPEC")
    monkeypatch.setenv("SLUICE_SECRET_SECRET", "a-secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", requested.url)
    (tmp_path / "aws").write_text("[reports]\naws_access_key_id = AKIAOFTHEPROFILE\naws_secret_access_key = another\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "aws"))
    java_properties.setProperty("aws.endpointUrlSts", requested.url)
    java_properties.setProperty("aws.sharedCredentialsFile", str(tmp_path / "aws"))
    name = f"login_{abs(hash(tmp_path))}"
    Path("specs").mkdir()
    Path("specs/a.yaml").write_text(
        ORDERS.format(catalog=CATALOG.format(name=name, store=requested.url, login=login.replace("{{", "{").replace("}}", "}")))
    )
    plan = make(Path("specs"))
    tell(spark, plan)
    (pipeline,) = plan.pipelines
    context = Context(plan, spark=lambda: spark, source=GivenMessages((), 0, 1))
    lake: TableStore = context.lake(pipeline)
    open_table(context, lake, pipeline)
    expected = "ASIA" if with_role else "AKIAOFTHEPROFILE" if "profile" in login else "AKIAOFTHESPEC"
    assert all(key_id.startswith(expected) for key_id in requested.logins) and requested.logins, requested.logins
    by_java, requested.logins = requested.logins, set()
    table = metadata.read(pipeline.table.catalog, "shop.orders")
    assert table is not None
    loaded = table_state.table(pipeline.table.catalog, "shop.orders")
    assert loaded is not None
    assert loaded.scan().to_arrow().num_rows == 0
    assert list(ask([pipeline.table.catalog], "select count(*) as n from shop.orders").rows()) == [[0]]
    assert all(key_id.startswith(expected) for key_id in requested.logins) and requested.logins, (by_java, requested.logins)
    assert bool(requested.assumed) is with_role
    assert all("ExternalId=one" in body for body in requested.assumed) or "external_id" not in login
    assert requested.encrypted == ({"arn:aws:kms:us-east-1:123456789012:key/one"} if "kms" in login else set())
