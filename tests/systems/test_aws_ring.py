"""Keys in AWS Secrets Manager: the versions of a secret and AWS' own labels. moto answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest

from framework.base.errors import SetupError
from framework.machine.services import s3
from framework.plan import SecretStore
from framework.plan.secret import SecretRef
from framework.systems import keyring, secrets
from framework.systems.keyring import Ring
from framework.systems.secrets import open_key_store, reveal
from framework.systems.secrets.aws_secrets_manager import Options

pytestmark = pytest.mark.slow
PREFIX = "sluice/keys/"
FIELDS = Ring(name="kafka.key", secrets=("kafka.key", "kafka.secret"))
APART = Ring(name="kafka_key", secrets=("kafka_key", "kafka_secret"))
BOTH = pytest.mark.parametrize("ring", [FIELDS, APART], ids=["fields of one secret", "two secrets"])


@pytest.fixture
def manager(quick_store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of moto's Secrets Manager, with a secret that has fields, and one for each part."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    client = boto3.client("secretsmanager", region_name=s3.REGION, endpoint_url=quick_store)
    texts = {"kafka": json.dumps({"key": "u1", "secret": "p1", "more": "stays"}), "kafka_key": "u1", "kafka_secret": "p1"}
    for name, text in texts.items():
        client.create_secret(Name=PREFIX + name, SecretString=text)
    yield client
    for secret in client.list_secrets()["SecretList"]:
        client.delete_secret(SecretId=secret["ARN"], ForceDeleteWithoutRecovery=True)


@pytest.fixture
def store(quick_store: str, manager: Any) -> SecretStore:
    secrets.open_store.cache_clear()
    return SecretStore("aws_secrets_manager", Options(PREFIX, s3.REGION, None, None, None, quick_store, 300))


def values(ring: Ring, number: int) -> Mapping[str, str]:
    return dict(zip(ring.secrets, (f"u{number}", f"p{number}"), strict=True))


def states(store: SecretStore, ring: Ring) -> dict[int | None, str]:
    return {key.number: key.state for key in open_key_store(store).keys(ring)}


def login(store: SecretStore, ring: Ring) -> list[str]:
    secrets.forget(store)
    return secrets.reveal_together([SecretRef(name) for name in ring.secrets], store)


def labels(manager: Any, secret: str) -> dict[str, str]:
    """The text of the version that has each label."""
    name = PREFIX + secret
    stages = manager.describe_secret(SecretId=name)["VersionIdsToStages"]
    texts = {version: manager.get_secret_value(SecretId=name, VersionId=version)["SecretString"] for version in stages}
    return {label: texts[version] for version, version_labels in stages.items() for label in version_labels}


@BOTH
def test_a_key_is_added_used_taken_back_and_removed(ring: Ring, store: SecretStore, manager: Any) -> None:
    opened = open_key_store(store)
    (only_key,) = opened.keys(ring)
    assert (only_key.number, only_key.state, dict(only_key.values)) == (None, "current", values(ring, 1)) and only_key.created
    opened.add_key(ring, 2, values(ring, 2))
    assert states(store, ring) == {1: "current", 2: "next"} and login(store, ring) == ["u1", "p1"]
    opened.use_key(ring, 2)
    assert states(store, ring) == {1: "former", 2: "current"} and login(store, ring) == ["u2", "p2"]
    opened.use_key(ring, 1)
    assert states(store, ring) == {1: "current", 2: "former"} and login(store, ring) == ["u1", "p1"]
    opened.use_key(ring, 2)
    opened.add_key(ring, 3, values(ring, 3))
    opened.use_key(ring, 3)
    opened.remove_key(ring, 1)
    stored = opened.keys(ring)
    assert states(store, ring) == {2: "former", 3: "current"} and login(store, ring) == ["u3", "p3"]
    assert [dict(key.values) for key in stored] == [values(ring, 2), values(ring, 3)]
    assert keyring.next_number(stored) == 4


def test_aws_own_labels_say_which_key_counts(store: SecretStore, manager: Any) -> None:
    opened = open_key_store(store)
    opened.add_key(FIELDS, 2, values(FIELDS, 2))
    assert json.loads(labels(manager, "kafka")["AWSPENDING"]) == {"key": "u2", "secret": "p2", "more": "stays"}
    opened.use_key(FIELDS, 2)
    texts = labels(manager, "kafka")
    assert json.loads(texts["AWSCURRENT"])["key"] == "u2" and json.loads(texts["AWSPREVIOUS"])["key"] == "u1"
    assert texts.keys() == {"AWSCURRENT", "AWSPREVIOUS", "sluice-key-1", "sluice-key-2"}


@BOTH
def test_one_that_dies_between_two_requests_is_brought_to_its_end(
    ring: Ring, store: SecretStore, manager: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_key_store(store)
    assert isinstance(opened, secrets.Store)
    real = opened._ask  # type: ignore[attr-defined]
    changes = ("put_secret_value", "update_secret_version_stage")
    for dies_at in range(12):
        count = 0

        def dying(action: str, *arguments: Any, dies_at: int = dies_at, **more: Any) -> Any:
            nonlocal count
            answer = real(action, *arguments, **more)
            if action in changes:
                count += 1
                if count > dies_at:
                    raise KeyboardInterrupt
            return answer

        number = keyring.next_number(opened.keys(ring))
        with monkeypatch.context() as patched:
            # A process that is killed between two requests to AWS.
            patched.setattr(opened, "_ask", dying)
            try:
                opened.add_key(ring, number, values(ring, number))
                opened.use_key(ring, number)
            except KeyboardInterrupt:
                pass
        stored = opened.keys(ring)
        waiting, current = keyring.following(stored), keyring.current(stored)
        assert current is not None or ring == APART, "half of a login can be current where its parts are two secrets"
        if waiting is None and number not in [key.number for key in stored]:
            opened.add_key(ring, number, values(ring, number))
        opened.use_key(ring, number)
        assert login(store, ring) == [f"u{number}", f"p{number}"]
        assert keyring.following(opened.keys(ring)) is None


def test_a_secret_that_is_not_there_and_one_without_fields(store: SecretStore, manager: Any) -> None:
    opened = open_key_store(store)
    with pytest.raises(SetupError) as error:
        opened.keys(Ring(name="other", secrets=("other",)))
    assert error.value.code == "no-secret" and "create-secret --name sluice/keys/other" in error.value.hint
    manager.put_secret_value(SecretId=f"{PREFIX}kafka", SecretString="no object")
    with pytest.raises(SetupError) as error:
        opened.add_key(FIELDS, 1, values(FIELDS, 1))
    assert "is no JSON object" in error.value.message


def test_fields_of_a_secret_are_of_one_moment(store: SecretStore, manager: Any) -> None:
    assert reveal(SecretRef("kafka.key"), store) == "u1"
    open_key_store(store).add_key(FIELDS, 2, values(FIELDS, 2))
    open_key_store(store).use_key(FIELDS, 2)
    assert reveal(SecretRef("kafka.secret"), store) == "p1", "the password of the name that was looked up before"
    secrets.forget(store)
    assert reveal(SecretRef("kafka.secret"), store) == "p2" and reveal(SecretRef("kafka.key"), store) == "u2"
