"""Values of secrets: random ones are made where there is none, and never replaced. Nothing here prints or keeps a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from infra.deploy import aws

_LENGTH = 48  # characters
_HINT = "give the login the right, and create again: what is done already is not done twice"


def make_random(variables: Mapping[str, Any], names: Iterable[str]) -> None:
    """Gives each of these secrets a random value if it has none."""
    manager = aws.client("secretsmanager", variables)
    with aws.refused("random values of secrets cannot be made", _HINT):
        for name in _without_value(manager, names):
            value = manager.get_random_password(PasswordLength=_LENGTH, ExcludePunctuation=True)["RandomPassword"]
            manager.put_secret_value(SecretId=name, SecretString=value)


def without_value(variables: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Returns the secrets among these into which nobody has put a value."""
    with aws.refused("secrets cannot be described", _HINT):
        return list(_without_value(aws.client("secretsmanager", variables), names))


def _without_value(manager: Any, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        versions = manager.describe_secret(SecretId=name).get("VersionIdsToStages") or {}
        if not any("AWSCURRENT" in stages for stages in versions.values()):
            yield name
