"""An object store's settings for Iceberg's libraries. Java's and Python's have the same names for most of it."""

from __future__ import annotations

from collections.abc import Mapping

from framework.language.storage import Storage as Written
from framework.plan import SecretStore, Storage
from framework.systems import buckets
from framework.systems.buckets import BucketLogin

JARS = ("aws",)
_OF_ROLE = "org.apache.iceberg.aws.AssumeRoleAwsClientFactory"
_OF_WRITERS = ("client.factory", "client.assume-role", "s3.sse")
FILE_IO = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}


def planned(written: Written | None) -> Storage:
    """The planned storage of a written one, or the default."""
    return (written or Written()).planned()


def settings(storage: Storage) -> Mapping[str, str]:
    """The settings for both libraries, which everybody may see."""
    properties = {
        "s3.endpoint": storage.endpoint, "client.region": storage.region, "s3.region": storage.region,
        "s3.path-style-access": "true" if storage.path_style else None,
        **({"s3.sse.type": "kms", "s3.sse.key": storage.kms_key} if storage.kms_key else {}),
        **({
            "client.factory": _OF_ROLE, "client.assume-role.arn": storage.role, "client.assume-role.region": storage.region,
            "client.assume-role.external-id": storage.external_id,
        } if storage.role else {}),
    }  # fmt: skip
    return {name: value for name, value in properties.items() if value}


def of_java(storage: Storage, secrets: SecretStore) -> Mapping[str, str]:
    """The login of Java, which renews it by itself. A role is assumed by the login that Java's own properties name."""
    login = buckets.login(storage, secrets)
    profile = {"aws.profile": storage.profile} if storage.profile else {}
    if login is None or storage.role is None:
        return {**profile, **_keys(login)}
    return {**profile, **of_process(login)}


def of_process(login: BucketLogin | None) -> Mapping[str, str]:
    """Keys where AWS' library for Java looks for them."""
    return {"aws.accessKeyId": login.key, "aws.secretAccessKey": login.secret} if login else {}


def of_python(storage: Storage, secrets: SecretStore) -> Mapping[str, str]:
    """The login of PyIceberg, which reads at once."""
    return _keys(buckets.keys(buckets.session(storage, buckets.login(storage, secrets))))


def for_readers(storage: Storage) -> Mapping[str, str]:
    """The store's settings for readers, who do not get its login."""
    return {name: value for name, value in settings(storage).items() if not name.startswith(_OF_WRITERS)}


def keys_for(storage: Storage, secrets: SecretStore, location: str) -> Mapping[str, str]:
    """Keys of the storage's role, with which only the files below this location can be read."""
    if not storage.role:
        return {}
    try:
        return _keys(buckets.reader(storage, buckets.login(storage, secrets), location))
    except buckets.errors() as error:
        raise PermissionError(f"the role {storage.role} gives no keys: {buckets.trouble(error, storage).says}") from None


def shared_login(storage: Storage) -> object | None:
    """The login that Java keeps once for all catalogs; None for keys that are for S3 alone."""
    if storage.access_key and not storage.role:
        return None
    return storage.profile, storage.access_key, storage.secret_key


def _keys(login: BucketLogin | None) -> Mapping[str, str]:
    if login is None:
        return {}
    token = {"s3.session-token": login.token} if login.token else {}
    return {"s3.access-key-id": login.key, "s3.secret-access-key": login.secret, **token}


def vended_login(config: Mapping[str, str]) -> BucketLogin | None:
    """The login that a catalog gave with a table; None if it gave none."""
    key, secret = config.get("s3.access-key-id"), config.get("s3.secret-access-key")
    return BucketLogin(key, secret, config.get("s3.session-token")) if key and secret else None
