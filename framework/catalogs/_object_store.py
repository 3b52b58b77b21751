"""What Iceberg's libraries are told of an object store. Java's and Python's have the same names for most of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from framework.buckets import Login
from framework.errors import Problem
from framework.model import Storage
from framework.spec.storage import Storage as Written

JARS = ("aws",)
FILE_IO = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}


def settings(storage: Storage) -> Mapping[str, str]:
    told = {"s3.endpoint": storage.endpoint, "client.region": storage.region, "s3.region": storage.region}
    style = {"s3.path-style-access": "true"} if storage.endpoint else {}
    return {**style, **{name: value for name, value in told.items() if value}}


def secret_settings(login: Login | None) -> Mapping[str, str]:
    if login is None:
        return {}
    token = {"s3.session-token": login.token} if login.token else {}
    return {"s3.access-key-id": login.key, "s3.secret-access-key": login.secret, **token}


def given(config: Mapping[str, str]) -> Login | None:
    """The login in what a catalog says of a table."""
    key, secret = config.get("s3.access-key-id"), config.get("s3.secret-access-key")
    return Login(key, secret, config.get("s3.session-token")) if key and secret else None


def problems(written: Written | None) -> Iterable[Problem]:
    """What an export's storage may have, and a catalog's not."""
    if written is not None and written.profile is not None:
        hint = "set AWS_PROFILE where Sluice runs"
        yield Problem(written.key_place("profile"), "not-in-this-version", "a catalog has no `profile` in this version", hint)
