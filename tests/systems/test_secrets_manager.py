"""Secrets in AWS Secrets Manager: what is looked up when, and what a person is told. moto answers."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from framework.base.errors import SecretsAway, SetupError, SluiceError
from framework.core.context.context import Context
from framework.core.run import secret_digest
from framework.host.plans import make
from framework.machine.services import s3
from framework.plan import SecretStore
from framework.plan.secret import SecretRef
from framework.systems import secrets
from framework.systems.secrets import reveal
from framework.systems.secrets.aws_secrets_manager import Options
from tests.support.moto_rights import asks
from tests.support.proxy import Between, Request, between
from tests.support.spec_parts import ORDERS

pytestmark = pytest.mark.slow
PREFIX = "sluice/test/"


@pytest.fixture
def proxy(quick_store: str) -> Iterator[Between]:
    with between(quick_store) as running:
        yield running


@pytest.fixture
def manager(quick_store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of moto's Secrets Manager; its secrets go with the test."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    client = boto3.client("secretsmanager", region_name=s3.REGION, endpoint_url=quick_store)
    yield client
    for secret in client.list_secrets()["SecretList"]:
        client.delete_secret(SecretId=secret["ARN"], ForceDeleteWithoutRecovery=True)


def store(url: str, refresh: int = 300, **options: Any) -> SecretStore:
    options = {"prefix": PREFIX, "region": s3.REGION, "endpoint": url, "refresh": refresh, **options}
    return SecretStore("aws_secrets_manager", Options(**options))


def value(name: str, from_store: SecretStore) -> str:
    return reveal(SecretRef(name), from_store)


def refused(name: str, from_store: SecretStore) -> SluiceError:
    with pytest.raises(SluiceError) as error:
        value(name, from_store)
    return error.value


def test_a_secret_is_the_one_behind_the_prefix(manager: Any, quick_store: str) -> None:
    manager.create_secret(Name=f"{PREFIX}kafka_key", SecretString="one")
    manager.create_secret(Name=f"{PREFIX}teams/kafka-key", SecretString="of a path")
    manager.create_secret(Name="kafka_key", SecretString="of somebody else")
    assert value("kafka_key", store(quick_store)) == "one"
    assert value("teams/kafka-key", store(quick_store)) == "of a path"


def test_a_field_of_a_json_object_is_a_value(manager: Any, quick_store: str) -> None:
    manager.create_secret(
        Name=f"{PREFIX}kafka", SecretString='{"username": "me", "password": "p=:\\"", "port": 9092, "list": [1]}'
    )
    manager.create_secret(Name=f"{PREFIX}kafka.username", SecretString="of the whole name")
    manager.create_secret(Name=f"{PREFIX}plain", SecretString="{")
    assert value("kafka.username", store(quick_store)) == "of the whole name"
    assert value("kafka.password", store(quick_store)) == 'p=:"'
    assert value("kafka.port", store(quick_store)) == "9092"
    for name in ("kafka.list", "kafka.none", "plain.username"):
        assert "is no JSON object with a text" in refused(name, store(quick_store)).message


def test_the_hint_on_a_missing_secret_works_when_obeyed(manager: Any, quick_store: str) -> None:
    error = refused("hook", store(quick_store))
    assert (error.code, error.message) == ("no-secret", f"Secrets Manager has no secret `{PREFIX}hook`")
    create, put = re.findall(r"`aws secretsmanager ([^`]+)`", error.hint)
    arguments = dict(zip(shlex.split(create)[1::2], shlex.split(create)[2::2], strict=True))
    manager.create_secret(Name=arguments["--name"])
    assert refused("hook", store(quick_store)).hint == error.hint, "it has no value yet"
    arguments = dict(zip(shlex.split(put)[1::2], shlex.split(put)[2::2], strict=True))
    assert arguments.pop("--region") == s3.REGION
    manager.put_secret_value(SecretId=arguments["--secret-id"], SecretString=arguments["--secret-string"])
    assert value("hook", store(quick_store)) == "…"


def test_what_has_no_text_says_so(manager: Any, quick_store: str) -> None:
    manager.create_secret(Name=f"{PREFIX}binary", SecretBinary=b"\0")
    manager.create_secret(Name=f"{PREFIX}deleted", SecretString="x")
    manager.delete_secret(SecretId=f"{PREFIX}deleted")
    assert "is binary" in refused("binary", store(quick_store)).message
    deleted = refused("deleted", store(quick_store))
    assert "is marked for deletion" in deleted.message and "restore-secret" in deleted.hint


def test_a_value_is_looked_up_again_after_a_while_or_after_a_failure(
    manager: Any, quick_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.create_secret(Name=f"{PREFIX}turning", SecretString="old")
    from_store = store(quick_store, refresh=299)
    assert value("turning", from_store) == "old"
    manager.put_secret_value(SecretId=f"{PREFIX}turning", SecretString="new")
    assert value("turning", from_store) == "old"
    moment = time.monotonic()
    # Nobody waits for five minutes.
    monkeypatch.setattr(time, "monotonic", lambda: moment + 300)
    assert value("turning", from_store) == "new"
    manager.put_secret_value(SecretId=f"{PREFIX}turning", SecretString="newest")
    assert value("turning", from_store) == "new"
    secrets.forget(from_store)
    assert value("turning", from_store) == "newest"


def away(request: Request) -> bool:
    request.answer(503, b'{"__type": "InternalServiceError"}')
    return True


def test_the_kept_value_goes_on_while_aws_does_not_answer(manager: Any, proxy: Between) -> None:
    manager.create_secret(Name=f"{PREFIX}lasting", SecretString="kept")
    from_store = store(proxy.url)
    assert value("lasting", from_store) == "kept"
    proxy.faults += [away] * 6
    secrets.forget(from_store)
    assert value("lasting", from_store) == "kept"
    error = refused("another", from_store)
    assert value("lasting", from_store) == "kept", "nobody asks again for a while"
    assert isinstance(error, SecretsAway) and error.code == "secrets-unreachable" and error.system
    assert proxy.struck == 6


def test_a_value_that_is_refused_is_not_used_any_more(manager: Any, proxy: Between) -> None:
    manager.create_secret(Name=f"{PREFIX}secret", SecretString="x")
    from_store = store(proxy.url)
    assert value("secret", from_store) == "x"
    manager.delete_secret(SecretId=f"{PREFIX}secret", ForceDeleteWithoutRecovery=True)
    secrets.forget(from_store)
    assert refused("secret", from_store).code == "no-secret"
    proxy.faults += [away] * 3
    assert refused("secret", from_store).code == "secrets-unreachable", "the value is gone for good"


def test_a_login_without_the_right_is_told_which(manager: Any, quick_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    iam = boto3.client("iam", region_name=s3.REGION, endpoint_url=quick_store)
    iam.create_user(UserName="nobody")
    key = iam.create_access_key(UserName="nobody")["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    asks(quick_store, strictly=True)
    try:
        error = refused("secret", store(quick_store, refresh=60))
    finally:
        asks(quick_store, strictly=False)
    assert isinstance(error, SetupError) and error.code == "secrets-refused"
    assert "secretsmanager:GetSecretValue" in error.hint and f"secret:{PREFIX}*" in error.hint


@pytest.mark.parametrize(
    ("options", "says"),
    [({"profile": "none_such"}, "none_such"), ({"region": None}, "the region"), ({"endpoint": "http://127.0.0.1:1"}, "answer")],
)
def test_what_is_wrong_with_the_document_is_said(
    options: dict[str, Any], says: str, manager: Any, quick_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    error = refused("secret", store(quick_store, **options))
    assert error.code in ("secrets-refused", "secrets-unreachable") and says in error.message and error.hint


CATALOG = """\
secrets: main
store: aws_secrets_manager
prefix: {prefix}
region: us-east-1
endpoint: {url}
---
catalog: lake
type: rest
uri: https://127.0.0.1:1/api
token: ${{secret:catalog.token}}
"""


def test_a_failure_has_another_digest_once_the_secret_is_another(
    manager: Any, quick_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("specs").mkdir()
    Path("specs/a.yaml").write_text(ORDERS.format(catalog=CATALOG.format(prefix=PREFIX, url=quick_store)))
    manager.create_secret(Name=f"{PREFIX}catalog", SecretString='{"token": "canary-1"}')
    plan = make(Path("specs"))
    (pipeline,) = plan.pipelines
    first_digest = secret_digest.digest(pipeline, plan.secrets)
    manager.put_secret_value(SecretId=f"{PREFIX}catalog", SecretString='{"token": "canary-2"}')
    assert secret_digest.digest(pipeline, plan.secrets) == first_digest
    Context(plan).forget_what_failed()
    assert secret_digest.is_another(first_digest, secret_digest.digest(pipeline, plan.secrets))
    assert "canary" not in repr(plan) + repr(secrets.open_store(plan.secrets))
