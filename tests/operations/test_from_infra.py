"""`sluice init --from-infra`: an environment of the specs from what was made in the cloud."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from framework.host.cli import main
from framework.host.plans import make
from framework.plan import Plan, SecretRef

CONFLUENT = {
    "name": "prod", "environment": "env-1", "cluster": "lkc-1", "bootstrap": "pkc-1.example.com:9092",
    "registry": "https://psrc-1.example.com", "account": "sa-1",
}  # fmt: skip
AWS = {
    "name": "prod", "region": "eu-central-1", "endpoint": None, "warehouse": "s3://lake/lake", "databases": ["shop"], "kms_key": None,
    "external_id": "sluice-1", "secrets_prefix": "sluice/prod/", "secrets": ["kafka"], "random_secrets": [], "mail_from": None,
    "roles": {name: f"arn:aws:iam::123456789012:role/sluice-prod-{name}" for name in ("ingest", "maintain", "read")},
}  # fmt: skip
SPECS = """cluster: events
bootstrap: 127.0.0.1:19092
---
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: warehouse
---
topic: orders
value: json
columns: {id: bigint}
---
pipeline: orders
from: {topic: orders}
into: {table: shop.orders}
"""


@pytest.fixture(autouse=True)
def in_project(own_folder: Path) -> None:
    Path("specs").mkdir()
    Path("specs/a.yaml").write_text(SPECS)


def wrote(outputs: Any) -> Result:
    Path("made.json").write_text(json.dumps(outputs))
    return CliRunner().invoke(main, ["init", "--from-infra", "made.json"])


def planned(outputs: Any) -> Plan:
    result = wrote(outputs)
    assert result.exit_code == 0 and "specs/environments/prod/main.yaml" in result.output, result.output
    return make(Path("specs"), "prod")


def test_a_cluster_of_confluent_is_written_with_the_names_of_its_secrets() -> None:
    plan = planned({"confluent": CONFLUENT})
    (cluster,) = plan.clusters
    security = cluster.security
    assert (cluster.name, cluster.bootstrap, cluster.registry) == ("events", CONFLUENT["bootstrap"], CONFLUENT["registry"])
    assert (security.protocol, security.mechanism) == ("SASL_SSL", "PLAIN")
    assert (security.username, security.password) == (SecretRef("kafka.key"), SecretRef("kafka.secret"))
    assert cluster.registry_auth is not None and cluster.registry_auth.username == SecretRef("registry.key")
    assert plan.catalogs[0].type == "sql", "it stays that of the specs"


def test_modules_of_one_environment_are_written_together() -> None:
    plan = planned({"aws": AWS, "confluent": {**CONFLUENT, "registry": None}, "snowflake": {"name": "prod"}})
    assert (plan.catalogs[0].type, plan.secrets.type, plan.clusters[0].registry) == ("glue", "aws_secrets_manager", None)


@pytest.mark.parametrize(
    "outputs",
    [
        {}, [], {"snowflake": {"name": "prod"}}, {"confluent": {"name": "prod"}}, {"confluent": {**CONFLUENT, "name": "../x"}},
        {"aws": {**AWS, "roles": []}}, {"aws": None},
    ],
)  # fmt: skip
def test_another_file_is_refused(outputs: Any) -> None:
    result = wrote(outputs)
    assert result.exit_code == 1 and "no-infra" in result.output
