"""The cloud side is made, used, not made again, and deleted, at services that speak like AWS."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from framework.machine.services import aws as service
from framework.machine.services.ports import free_port
from tests.support import terraform
from tests.support.moto_rights import asks, for_moto
from tests.support.repository import ROOT

pytestmark = [pytest.mark.slow]
LOGIN = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_REGION": "us-east-1"}
FILES = ("infra", "Makefile", "pyproject.toml", "requirements.lock")


@dataclass
class Clone:
    """A clone of the project, at whose commands local services answer."""

    folder: Path
    url: str
    environment: dict[str, str]
    more: dict[str, str] = field(default_factory=dict)

    def run(self, *command: str, status: int = 0) -> str:
        result = subprocess.run(
            command, cwd=self.folder, env={**self.environment, **self.more}, capture_output=True, text=True, check=False
        )
        assert result.returncode == status, result.stdout + result.stderr
        return result.stdout + result.stderr

    def sluice(self, *arguments: str, status: int = 0) -> str:
        return self.run(".venv/bin/sluice", *arguments, status=status)

    def client(self, name: str) -> Any:
        return boto3.client(
            name, endpoint_url=self.url, region_name="us-east-1", aws_access_key_id="any", aws_secret_access_key="any"
        )

    def buckets(self) -> list[str]:
        return [bucket["Name"] for bucket in self.client("s3").list_buckets()["Buckets"] if bucket["Name"].startswith("sluice-")]


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Clone]:
    folder = tmp_path / "clone"
    folder.mkdir()
    settings = terraform.settings(tmp_path)
    for name in FILES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    with service.running(tmp_path / "aws") as url:
        moto = folder / "infra" / "environments" / "moto.yaml"
        moto.write_text(moto.read_text().replace("http://127.0.0.1:19200", url))
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME", "JAVA_HOME") if name in os.environ}
        yield Clone(folder, url, {**kept, **LOGIN, **settings, "AWS_ENDPOINT_URL": url, "PYTHONPATH": str(ROOT)})


def test_a_mistake_in_the_file_of_an_environment_is_said_before_anything_is_made(clone: Clone) -> None:
    file = clone.folder / "infra" / "environments" / "prod.yaml"
    assert "no-environment" in clone.run("infra/deploy.sh", "plan", "--env", "prod", status=1)
    file.write_text("aws: {regoin: eu-central-1, bucket: lake}\nazure: {}\nstate: here\n")
    output = clone.run("infra/deploy.sh", "create", "--env", "prod", "--yes", status=1)
    assert "did you mean `region`?" in output and "`azure` is no module" in output and "write `state: s3://bucket/path`" in output
    file.write_text(
        f"aws: {{region: mars, bucket: A_B, databases: [], secrets: [pii], random_secrets: [pii], endpoint: '{clone.url}'}}\n"
    )
    output = clone.run("infra/deploy.sh", "create", "--env", "prod", "--yes", status=1)
    for message in (
        "Write a region",
        "Write 3 to 63 small letters",
        "Write at least one name",
        "either in secrets or in random_secrets",
    ):
        assert message in output
    file.write_text(
        "aws: {region: us-east-1, bucket: lake-one, databases: [a], secrets: [pii], rotated_secrets: [kafka], "
        f"endpoint: '{clone.url}'}}\n"
    )
    assert "Write names of secrets or random_secrets" in clone.run("infra/deploy.sh", "plan", "--env", "prod", status=1)
    assert clone.buckets() == []
    assert "bad-name" in clone.run("infra/deploy.sh", "plan", "--env", "../prod", status=1)
    file.write_text("aws: {region: eu-central-1, bucket: lake, databases: [a], tags: {made: 2026-13-45}}\n")
    assert "bad-yaml" in clone.run("infra/deploy.sh", "plan", "--env", "prod", status=1)
    file.write_text("aws: {region: eu-central-1, bucket: lake-one, databases: [a]}\nstate: s3://lake-one/state\n")
    assert "name another bucket" in clone.run("infra/deploy.sh", "plan", "--env", "prod", status=1)


def test_the_files_are_formatted() -> None:
    if shutil.which("terraform") is None:
        pytest.skip("Terraform is not on this machine")
    subprocess.run(["terraform", "fmt", "-check", "-diff", "-recursive", str(ROOT / "infra")], check=True)


RUNS, MESSAGES, BATCH = 2, 300, 12
KEPT_METADATA = 33  # files besides the current one, of the table's own property
POLICY = "2012-10-17"


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
def test_an_environment_is_made_used_and_deleted(clone: Clone, kafka: str) -> None:
    """Does what docs/infrastructure.md shows, and tries each role at a store that applies policies."""
    make = ("make", "--no-print-directory", "ENV=moto", "YES=1")
    assert "sluice init --from-infra moto" in clone.run(*make, "infra-create")
    pii = clone.client("secretsmanager").get_secret_value(SecretId="sluice/moto/pii")["SecretString"]
    assert len(pii) == 48
    assert "moto: nothing would change" in clone.run(*make, "infra-plan")
    assert "nothing has changed" in clone.run(*make, "infra-create")
    secret = clone.client("secretsmanager").get_secret_value(SecretId="sluice/moto/pii")
    assert secret["SecretString"] == pii, "a random value is made once"
    write_specs(clone)
    # The tests' own Kafka is on the port of a project's.
    clone.more = {"SLUICE_VAR_KAFKA": kafka, "SLUICE_ENV": "moto", "SLUICE_COLD": "1", "SLUICE_KAFKA_PORT": str(free_port(2))}
    with_rights(clone)
    clone.sluice("topics", "create", "orders")
    findings = clone.sluice("doctor", "--env", "moto")
    assert "aws_secrets_manager has the 1 secret of the specs" in findings
    assert "to delete is left to another login" in findings
    for _ in range(RUNS):
        clone.sluice("generate", "orders", "--count", str(MESSAGES))
        assert "maintenance" not in clone.sluice("run")
    assert 0 < int(clone.sluice("query", "select count(*) from shop.orders").split()[-1]) <= MESSAGES * RUNS
    assert_few_metadata(clone)
    assert "may-not-delete" in clone.sluice("maintain", status=1)
    assert "did not drop the table" in clone.sluice("drop", "orders", "--data", "--yes", status=1)
    clone.more["SLUICE_VAR_ROLE"] = role("maintain")
    clone.sluice("maintain")
    denied = {name: set(denied_to(clone, name)) for name in ("ingest", "maintain", "read")}
    assert denied["maintain"] == {"put outside of the folder"}
    assert denied["ingest"] == denied["maintain"] | {"s3:DeleteObject", "glue:DeleteTable"}
    writing = {"s3:PutObject", "delete of metadata", "glue:UpdateTable", "secretsmanager:GetSecretValue"}
    assert denied["read"] == denied["ingest"] | writing

    asks(clone.url, strictly=False)
    clone.environment |= LOGIN
    assert holders(clone.folder, pii) == []
    moto = clone.folder / "infra" / "environments" / "moto.yaml"
    moto.write_text(moto.read_text().replace(" shop,", ""))
    lost = clone.run("infra/deploy.sh", "create", "--env", "moto", "--yes", status=1)
    assert 'would-be-lost: nothing was made: the change deletes aws_glue_catalog_database.namespace["shop"]' in lost
    refused = clone.run(*make, "infra-delete", status=2)
    assert "the tables lake/shop.db/orders" in refused and "bucket-has-files" in refused
    assert clone.buckets() == ["sluice-moto"]
    assert "moto: deleted" in clone.run(*make, "WITH_TABLES=1", "infra-delete")
    left = (
        clone.buckets(), clone.client("iam").list_roles()["Roles"], clone.client("glue").get_databases()["DatabaseList"],
        clone.client("secretsmanager").list_secrets()["SecretList"],
        list((clone.folder / "infra" / "state" / "moto").iterdir()),
    )  # fmt: skip
    assert left == ([], [], [], [], [])
    assert "there is nothing to delete" in clone.run(*make, "infra-delete")


@pytest.mark.long
def test_another_person_goes_on_with_a_state_in_a_bucket_and_a_bucket_that_was_there_stays(clone: Clone) -> None:
    store = clone.client("s3")
    for name in ("sluice-own", "sluice-state"):
        store.create_bucket(Bucket=name)
    store.put_object(Bucket="sluice-own", Key="lake/kept", Body=b"")
    file = clone.folder / "infra" / "environments" / "prod.yaml"
    variables = f"{{region: us-east-1, endpoint: '{clone.url}', bucket: sluice-own, own_bucket: true, databases: [shop], recovery_days: 0}}"
    file.write_text(f"aws: {variables}\n")
    assert "prod: made" in clone.run("infra/deploy.sh", "create", "--env", "prod", "--yes")
    assert (clone.folder / "infra" / "state" / "prod" / "aws.tfstate").stat().st_size > 1000
    file.write_text(f"aws: {variables}\nstate: s3://sluice-state/infra\n")
    assert "nothing would change" in clone.run("infra/deploy.sh", "plan", "--env", "prod"), "the state has moved"
    assert json.loads((clone.folder / "infra" / "environments" / "prod.json").read_text())["aws"]["kms_key"] is None
    other_person = Clone(clone.folder.parent / "other", clone.url, clone.environment)
    shutil.copytree(clone.folder, other_person.folder, ignore=shutil.ignore_patterns(".sluice", "state", "*.json"), symlinks=True)
    assert "nothing has changed" in other_person.run("infra/deploy.sh", "create", "--env", "prod", "--yes")
    assert "prod: deleted" in other_person.run("infra/deploy.sh", "delete", "--env", "prod", "--yes")
    assert "there is nothing to delete" in clone.run("infra/deploy.sh", "delete", "--env", "prod", "--yes")
    assert store.get_object(Bucket="sluice-own", Key="lake/kept")["Body"].read() == b""


def write_specs(clone: Clone) -> None:
    """The project of `sluice init`, with a topic of its own and a mask, and the environment that was made."""
    clone.sluice("init")
    orders = clone.folder / "specs" / "orders.yaml"
    text = orders.read_text().replace("topic: orders\n", f"topic: orders\nkafka_name: orders_{uuid.uuid4().hex[:8]}\n", 1)
    mask = 'steps:\n  - mask: {key: "${secret:pii}", columns: {country: hmac}}\n'
    orders.write_text(f"{text.partition('tests:')[0].replace('steps:', mask.rstrip(), 1)}batch: {{rows: {BATCH}}}\n")
    clone.sluice("init", "--from-infra", "moto")


def assert_few_metadata(clone: Clone) -> None:
    """After many commits only the newest metadata files are there. One that stays behind counts as another catalog's, so that no file that
    it names would ever be deleted."""
    asks(clone.url, strictly=False)
    files = clone.client("s3").list_objects_v2(Bucket="sluice-moto", Prefix="lake/shop.db/orders/metadata/")["Contents"]
    asks(clone.url, strictly=True)
    assert sum(file["Key"].endswith(".metadata.json") for file in files) == KEPT_METADATA + 1


def role(name: str) -> str:
    return f"arn:aws:iam::123456789012:role/sluice-moto-{name}"


def with_rights(clone: Clone) -> None:
    """Makes moto apply the rights of roles, and logs in as a user who may take them. Moto does not know that the root of an account stands
    for its users."""
    iam = clone.client("iam")
    iam.create_user(UserName="ci")
    allowed = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}
    iam.put_user_policy(UserName="ci", PolicyName="roles", PolicyDocument=policy([allowed]))
    for name in ("sluice-moto-ingest", "sluice-moto-maintain", "sluice-moto-read"):
        trust = iam.get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"]
        assert trust["Statement"][0]["Condition"]["StringEquals"]["sts:ExternalId"].startswith("sluice-moto-")
        trust["Statement"][0]["Principal"] = {"AWS": "arn:aws:iam::123456789012:user/ci"}
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(trust))
        statements = iam.get_role_policy(RoleName=name, PolicyName="sluice")["PolicyDocument"]["Statement"]
        judged_statements = list(map(for_moto, statements))
        for statement in judged_statements:
            if (
                "s3:DeleteObject" in statement["Action"]
            ):  # moto judges a request that deletes several files by the bucket's name alone
                statement["Resource"].append("arn:aws:s3:::sluice-moto")
        iam.put_role_policy(RoleName=name, PolicyName="sluice", PolicyDocument=policy(judged_statements))
    key = iam.create_access_key(UserName="ci")["AccessKey"]
    clone.environment |= {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    asks(clone.url, strictly=True)


def policy(statements: list[dict[str, Any]]) -> str:
    return json.dumps({"Version": POLICY, "Statement": statements})


def denied_to(clone: Clone, name: str) -> Iterator[str]:
    """Yields the actions that a role may not do."""
    outputs = json.loads((clone.folder / "infra" / "environments" / "moto.json").read_text())["aws"]
    login = {"aws_access_key_id": clone.environment["AWS_ACCESS_KEY_ID"], "region_name": "us-east-1", "endpoint_url": clone.url}
    sts = boto3.client("sts", **login, aws_secret_access_key=clone.environment["AWS_SECRET_ACCESS_KEY"])
    with pytest.raises(ClientError):
        sts.assume_role(RoleArn=outputs["roles"][name], RoleSessionName="test", ExternalId="another")
    taken = sts.assume_role(RoleArn=outputs["roles"][name], RoleSessionName="test", ExternalId=outputs["external_id"])[
        "Credentials"
    ]
    session = boto3.Session(taken["AccessKeyId"], taken["SecretAccessKey"], taken["SessionToken"], region_name="us-east-1")
    store, glue, manager = (session.client(service, endpoint_url=clone.url) for service in ("s3", "glue", "secretsmanager"))
    table, file = {"DatabaseName": "shop", "TableInput": {"Name": "none"}}, {"Bucket": "sluice-moto", "Key": "lake/tried"}
    tries: dict[str, Callable[[], object]] = {
        "s3:ListBucket": lambda: store.list_objects_v2(Bucket="sluice-moto", Prefix="lake/"),
        "s3:PutObject": lambda: store.put_object(**file, Body=b""),
        "s3:GetObject": lambda: store.get_object(**file),
        "s3:DeleteObject": lambda: store.delete_object(**file),
        "delete of metadata": lambda: store.delete_object(Bucket="sluice-moto", Key="lake/shop.db/none/metadata/1.metadata.json"),
        "put outside of the folder": lambda: store.put_object(Bucket="sluice-moto", Key="tried", Body=b""),
        "glue:GetTable": lambda: glue.get_table(DatabaseName="shop", Name="orders"),
        "glue:UpdateTable": lambda: glue.update_table(**table),
        "glue:DeleteTable": lambda: glue.delete_table(DatabaseName="shop", Name="none"),
        "secretsmanager:GetSecretValue": lambda: manager.get_secret_value(SecretId="sluice/moto/pii"),
    }
    for action, tried in tries.items():
        try:
            tried()
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 403:
                yield action


def holders(folder: Path, value: str) -> list[Path]:
    """The files that have this text."""
    files = (Path(root) / name for root, _, names in os.walk(folder) if ".venv" not in root for name in names)
    return [file for file in files if not file.is_symlink() and value.encode() in file.read_bytes()]
