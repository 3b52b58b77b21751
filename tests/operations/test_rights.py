"""`sluice doctor --env` prints the rights that are missing: once an administrator grants them, everything works."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.spark import session
from framework.host.plans import make
from framework.machine.services import aws as service
from framework.operations.prepare.doctor import Finding
from framework.operations.prepare.preflight import preflight
from framework.plan import Plan
from tests.support.locked_kafka import CLUSTER, PASSWORD, LockedKafka, locked_kafka
from tests.support.moto_rights import asks, for_moto
from tests.support.rest_catalog import STORAGE
from tests.support.runs import errors
from tests.support.spark_catalogs import tell
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.long]

TOPICS = (
    CLUSTER
    + """---
catalog: kafka_rights_{write}
type: sql
uri: sqlite:///rights.db
warehouse: rights
---
topic: orders
kafka_name: orders_{write}
value: json
columns: {{id: bigint}}
---
pipeline: orders
from: {{topic: orders}}
into: {{table: rights.orders_{write}, {options}}}
also: [{{topic: onward_{write}}}]
"""
)
BUCKET = """
cluster: main
bootstrap: 127.0.0.1:1
---
catalog: aws_rights
type: glue
endpoint: {store}
warehouse: s3://sluice/rights
{storage}
---
topic: orders
value: json
columns: {{id: bigint, at: timestamp}}
event_time: at
---
pipeline: orders
from: {{topic: orders}}
into: {{table: rights.orders}}
---
export: weekly
from: {{table: rights.orders}}
file:
  format: csv
  to: "s3://exported/weekly/{{window_start:%Y-%m-%d}}.csv"
window: {{last: week, by: at}}
{storage}
"""


@pytest.fixture
def locked(tmp_path: Path, sluice_home: Path) -> Iterator[LockedKafka]:
    with locked_kafka(tmp_path / "locked") as running:
        yield running


def findings(plan: Plan, *subjects: str) -> list[Finding]:
    """Returns the findings about these systems that are problems."""
    return [finding for finding in preflight(plan) if finding.hint and finding.subject.startswith(subjects)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "onward_rights"),
    [
        ("write: append", "write, describe, create"),
        # Its first step reads which keys the topic has from an earlier table.
        ("write: upsert, keys: [id], order_by: _kafka_timestamp", "write, describe, create, read"),
    ],
    ids=["append", "upsert"],
)
def test_kafka_is_read_and_written_with_the_rights_that_are_printed(
    options: str, onward_rights: str, locked: LockedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    write = options.split()[1].rstrip(",")
    orders, onward = f"orders_{write}", f"onward_{write}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_SECRET_KAFKA_PASSWORD", PASSWORD)
    Path("specs").mkdir()
    Path("specs/a.yaml").write_text(TOPICS.format(kafka=locked.locked, write=write, options=options))
    admin = AdminClient({"bootstrap.servers": locked.open})
    for created in admin.create_topics([NewTopic(orders, 2, 1), NewTopic(onward, 2, 1)]).values():
        created.result()
    producer = Producer({"bootstrap.servers": locked.open})
    for number in range(10):
        producer.produce(orders, b'{"id": %d}' % number)
    producer.produce(onward, b"{}", key=b"of an earlier table")
    producer.flush(10)
    plan = make(Path("specs"))

    (problem,) = findings(plan, "cluster")
    lacking = f"`{orders}` (read, describe), `{onward}` ({onward_rights}), sending in turns"
    assert problem.state == f"the login lacks 3 rights: {lacking}"
    commands = problem.hint.removeprefix("an administrator allows it: ").split("; ")
    assert [command.partition(" ")[0] for command in commands] == ["kafka-acls.sh"] * 3
    for command in commands:
        locked.allow(shlex.split(command))
    until(lambda: findings(plan, "cluster") == [], "the broker does not know the rights")
    monkeypatch.setenv("SLUICE_SECRET_KAFKA_PASSWORD", "another")
    (problem,) = findings(plan, "cluster")
    assert "rejected the login" in problem.state
    assert "correct `security` of the cluster `main`, or its secrets" in problem.hint
    monkeypatch.setenv("SLUICE_SECRET_KAFKA_PASSWORD", PASSWORD)

    session.prepare(plan)
    tell(spark, plan)
    context = Context(plan, spark=lambda: spark)
    assert errors(context, plan.pipelines) == []
    (pipeline,) = plan.pipelines
    table: Any = table_state.table(pipeline.table.catalog, pipeline.table.identifier)
    assert sorted(table.scan(selected_fields=("id",)).to_arrow().column("id").to_pylist()) == list(range(10))


@pytest.fixture
def strict(sluice_home: Path, tmp_path: Path) -> Iterator[str]:
    """Runs AWS services that check the rights of a login."""
    with service.running(tmp_path / "aws") as url:
        yield url


def test_a_bucket_and_glue_are_used_with_the_rights_that_are_printed(
    strict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    admin = {"endpoint_url": strict, "region_name": "us-east-1", "aws_access_key_id": "any", "aws_secret_access_key": "any"}
    iam = boto3.client("iam", **admin)
    boto3.client("s3", **admin).create_bucket(Bucket="exported")
    boto3.client("glue", **admin).create_database(DatabaseInput={"Name": "rights"})
    iam.create_user(UserName="ingest")
    key = iam.create_access_key(UserName="ingest")["AccessKey"]
    monkeypatch.setenv("SLUICE_SECRET_S3_KEY", key["AccessKeyId"])
    monkeypatch.setenv("SLUICE_SECRET_S3_SECRET", key["SecretAccessKey"])
    Path("specs").mkdir()
    storage = STORAGE.format(store=strict)
    Path("specs/a.yaml").write_text(BUCKET.format(store=strict, storage=storage))
    plan = make(Path("specs"))

    asks(strict, strictly=True)
    problems = {finding.subject: finding for finding in findings(plan, "catalog", "files")}
    assert set(problems) == {"catalog aws_rights", "files of aws_rights", "files of weekly"}
    assert "glue:GetDatabase, glue:GetDatabases, glue:GetTable, glue:GetTables" in problems["catalog aws_rights"].state
    assert problems["files of weekly"].state.startswith("the object store refused s3://exported/weekly/")
    assert '"arn:aws:glue:us-east-1:*:table/rights/*"' in problems["catalog aws_rights"].hint
    statements: list[dict[str, Any]] = []
    for problem in problems.values():
        statements += json.loads(f"[{problem.hint.partition(': ')[2]}]")
    for without in range(len(statements)):
        asks(strict, strictly=False)
        allowed = [statement for number, statement in enumerate(statements) if number != without]
        policy = {"Version": "2012-10-17", "Statement": [for_moto(statement) for statement in allowed]}
        iam.put_user_policy(UserName="ingest", PolicyName="doctor", PolicyDocument=json.dumps(policy))
        asks(strict, strictly=True)
        assert len(findings(plan, "catalog", "files")) == 1
    asks(strict, strictly=False)
    policy = {"Version": "2012-10-17", "Statement": list(map(for_moto, statements))}
    iam.put_user_policy(UserName="ingest", PolicyName="doctor", PolicyDocument=json.dumps(policy))
    asks(strict, strictly=True)
    assert findings(plan, "catalog", "files") == []
    monkeypatch.setenv("SLUICE_SECRET_S3_SECRET", "another")
    of_glue, *of_s3 = findings(plan, "catalog", "files")
    assert of_glue.state.endswith("Glue refused it (403)")  # of which moto does not say more
    assert len(of_s3) == 2
    assert all("SignatureDoesNotMatch" in finding.state and "the policy" not in finding.hint for finding in of_s3), of_s3
