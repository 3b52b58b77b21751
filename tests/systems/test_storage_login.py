"""Logins to an object store: an assumed role, a profile, keys. Requests to S3 and STS show which is used; moto answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.core.context.context import Context
from framework.core.iceberg import metadata, table_state
from framework.core.iceberg.lake import TableStore
from framework.core.publish.tables import open_table
from framework.core.query.one_select import ask
from framework.host.plans import make
from framework.operations.trials.given_messages import GivenMessages
from tests.support.login_proxy import Requests
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
