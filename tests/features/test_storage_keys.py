"""The login to an object store: AWS' keys by IAM, of which there are two, and those of other stores by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from framework.plan import Plan, SecretRef
from framework.systems import secret_uses
from framework.systems.secrets import reveal
from tests.support.commands import Commands
from tests.support.key_specs import write
from tests.support.moto_rights import asks

pytestmark = pytest.mark.slow
SPECS = """catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: s3://sluice/keys
storage: {{endpoint: "{url}", region: us-east-1, access_key: "${{secret:s3_key}}", secret_key: "${{secret:s3_secret}}"}}
---
keys: store
of: storage
secret: s3
{more}
"""
RIGHTS = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "iam:*AccessKey*", "Resource": "*"}]}'


class Store:
    """A user of IAM whose keys the specs replace."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.iam: Any = boto3.client(
            "iam", endpoint_url=url, region_name="us-east-1", aws_access_key_id="root", aws_secret_access_key="x"
        )
        self.iam.create_user(UserName="loader")
        self.iam.put_user_policy(UserName="loader", PolicyName="own", PolicyDocument=RIGHTS)
        self.key = self.iam.create_access_key(UserName="loader")["AccessKey"]

    def plan(self, more: str = "") -> Plan:
        login = {"s3_key": self.key["AccessKeyId"], "s3_secret": self.key["SecretAccessKey"]}
        return write(SPECS.format(url=self.url, more=more or f"iam: {self.url}"), login)

    def names(self) -> list[str]:
        return [key["AccessKeyId"] for key in self.iam.list_access_keys(UserName="loader")["AccessKeyMetadata"]]

    def close(self) -> None:
        asks(self.url, strictly=False)
        for name in self.names():
            self.iam.delete_access_key(UserName="loader", AccessKeyId=name)
        self.iam.delete_user_policy(UserName="loader", PolicyName="own")
        self.iam.delete_user(UserName="loader")


@pytest.fixture
def store(aws: str) -> Iterator[Store]:
    new_store = Store(aws)
    yield new_store
    new_store.close()


@pytest.fixture
def commands(own_folder: object) -> Iterator[Commands]:
    with secret_uses.unnoted():  # this process looks at secrets, and is none that works with them
        yield Commands()


def current(plan: Plan) -> str:
    return reveal(SecretRef("s3_key"), plan.secrets)


def test_iam_makes_two_keys_by_turns(commands: Commands, store: Store) -> None:
    plan, first_name = store.plan(), store.key["AccessKeyId"]
    asks(store.url, strictly=True)
    output = commands.ok("keys", "rotate", "store")
    second = current(plan)
    assert second != first_name and f"key 2 is made, {second}" in output and store.key["SecretAccessKey"] not in output
    asks(store.url, strictly=False)
    assert set(store.names()) == {first_name, second}
    asks(store.url, strictly=True)
    assert "too-many-keys" in commands.refused("keys", "new", "store")
    output = commands.ok("keys", "rotate", "store")
    assert f"key 1 is retired, {first_name}" in output, "there is no room for three"
    commands.ok("keys", "rotate", "store", "--to", "2")
    assert current(plan) == second
    commands.ok("keys", "retire", "store", "3")
    asks(store.url, strictly=False)
    assert store.names() == [second]


def test_a_key_that_nobody_knows_is_named(commands: Commands, store: Store) -> None:
    store.plan()
    other_key = store.iam.create_access_key(UserName="loader")["AccessKey"]["AccessKeyId"]
    asks(store.url, strictly=True)
    assert f"`aws iam delete-access-key --access-key-id {other_key}`" in commands.refused("keys", "rotate", "store")


def test_rights_that_are_missing_are_said(commands: Commands, store: Store) -> None:
    store.plan()
    store.iam.put_user_policy(UserName="loader", PolicyName="own", PolicyDocument=RIGHTS.replace("iam:", "ec2:"))
    asks(store.url, strictly=True)
    message = commands.refused("keys", "rotate", "store")
    assert "storage-refused" in message and "iam:CreateAccessKey" in message


def test_keys_of_other_stores_are_made_by_hand_and_tried(commands: Commands, store: Store) -> None:
    plan = store.plan(more="retain: 3")
    message = commands.refused("keys", "rotate", "store")
    assert "made-by-hand" in message and "hint: make one, then `sluice keys new store --by-hand` asks for it" in message
    other_key = store.iam.create_access_key(UserName="loader")["AccessKey"]
    asks(store.url, strictly=True)
    wrong = f"{other_key['AccessKeyId']}\nwrong\n".encode()
    assert "storage-refused" in commands.refused("keys", "new", "store", "--by-hand", given=wrong)
    given = f"{other_key['AccessKeyId']}\n{other_key['SecretAccessKey']}\n".encode()
    commands.ok("keys", "new", "store", "--by-hand", given=given)
    commands.ok("keys", "rotate", "store")
    assert current(plan) == other_key["AccessKeyId"]
    output = commands.ok("keys", "retire", "store")
    assert f"delete the key {store.key['AccessKeyId']} where it was made\n" in output
