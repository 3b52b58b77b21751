"""Object stores that speak the protocol of S3: a client with the login of a `storage`, and what their errors mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from framework.base.patience import STORE
from framework.plan import SecretStore, Storage
from framework.systems import aws_policy
from framework.systems.secrets import reveal_together

_CODES = {  # of answers, by the kind of trouble
    "absent": ("NoSuchKey", "404"),
    "no-bucket": ("NoSuchBucket",),
    "refused": ("AccessDenied", "AccessDeniedException", "403"),
    "wrong-login": (
        *("InvalidAccessKeyId", "SignatureDoesNotMatch", "UnrecognizedClientException", "InvalidClientTokenId"),
        *("ExpiredToken", "ExpiredTokenException", "InvalidToken"),
    ),
}
_KINDS = {code: kind for kind, codes in _CODES.items() for code in codes}


@dataclass(frozen=True)
class BucketLogin:
    """Keys to an object store."""

    key: str = field(repr=False)
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Trouble:
    """The reason why a store did not do as it was asked."""

    kind: str  # absent | no-bucket | refused | wrong-login | no-login | no-profile | no-region | unreachable | failed
    says: str


def login(storage: Storage, secrets: SecretStore) -> BucketLogin | None:
    """The keys that the storage names, if it does."""
    if storage.access_key and storage.secret_key:
        return BucketLogin(*reveal_together((storage.access_key, storage.secret_key), secrets))
    return None


def session(storage: Storage, login: BucketLogin | None) -> Any:
    """A session of boto3; without keys it has the machine's own login, or that of the storage's profile. It assumes the storage's role,
    unless the keys are a catalog's, which are of a role already."""
    return _assumed(storage, login) if storage.role and not (login and login.token) else _base_session(storage, login)


def _base_session(storage: Storage, login: BucketLogin | None) -> Any:
    import boto3

    if login is None:
        return boto3.Session(profile_name=storage.profile, region_name=storage.region)
    return boto3.Session(
        aws_access_key_id=login.key, aws_secret_access_key=login.secret, aws_session_token=login.token, region_name=storage.region
    )


@lru_cache(maxsize=64)
def _assumed(storage: Storage, login: BucketLogin | None) -> Any:
    """The session of a role, which renews its login before that ends."""
    import boto3
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
    from botocore.exceptions import NoCredentialsError
    from botocore.session import get_session

    base = _base_session(storage, login)
    if base.get_credentials() is None:
        raise NoCredentialsError()
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=lambda service, **login: base.client(service, **login), source_credentials=base.get_credentials(),
        role_arn=storage.role, extra_args={"RoleSessionName": "sluice", **_external(storage)},
    )  # fmt: skip
    session = get_session()
    session._credentials = DeferredRefreshableCredentials(refresh_using=fetcher.fetch_credentials, method="assume-role")
    return boto3.Session(botocore_session=session, region_name=storage.region)


def _external(storage: Storage) -> Mapping[str, str]:
    """The further arguments of a request to assume the role."""
    return {"ExternalId": storage.external_id} if storage.external_id else {}


def keys(session: Any) -> BucketLogin | None:
    """The keys of a session as they are now, for who cannot renew them."""
    login = session.get_credentials()
    if login is None:
        return None
    frozen = login.get_frozen_credentials()
    return BucketLogin(frozen.access_key, frozen.secret_key, frozen.token)


def reader(storage: Storage, login: BucketLogin | None, location: str) -> BucketLogin:
    """Keys of the storage's role, with which only what is below this location can be read, for an hour."""
    policy = aws_policy.policy(
        aws_policy.allow(["s3:GetObject"], aws_policy.of_objects(location)),
        aws_policy.allow(["s3:ListBucket"], aws_policy.of_bucket(location), condition=aws_policy.below(location)),
        # With which keys is a matter of the role's own policy: both have to allow it.
        *([aws_policy.allow(["kms:Decrypt"], "*")] if storage.kms_key else []),
    )
    answer = client(_base_session(storage, login), storage, "sts").assume_role(
        RoleArn=storage.role, RoleSessionName="sluice-reader", Policy=policy, DurationSeconds=3600, **_external(storage)
    )
    credentials = answer["Credentials"]
    return BucketLogin(credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials["SessionToken"])


def encryption(storage: Storage) -> Mapping[str, str]:
    """The arguments for encryption of a request that writes a file."""
    return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": storage.kms_key} if storage.kms_key else {}


@lru_cache(maxsize=64)
def kept_client(storage: Storage, login: BucketLogin | None, service: str = "s3", endpoint: str | None = None) -> Any:
    """A client that is created once: that takes as long as a request."""
    return client(session(storage, login), storage, service, endpoint)


def client(session: Any, storage: Storage, service: str = "s3", endpoint: str | None = None) -> Any:
    """A client of a session's store, or of another service of AWS."""
    from botocore.config import Config

    style = "path" if storage.path_style else "auto"
    config = Config(
        signature_version="s3v4" if service == "s3" else None, s3={"addressing_style": style}, connect_timeout=STORE, read_timeout=STORE,
        retries={"mode": "standard", "total_max_attempts": 3}, max_pool_connections=16,
    )  # fmt: skip
    return session.client(service, endpoint_url=storage.endpoint if service == "s3" else endpoint, config=config)


def errors() -> tuple[type[Exception], ...]:
    """The exceptions that boto3 raises."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    return (Boto3Error, BotoCoreError, ClientError, ValueError)


def trouble(error: BaseException, storage: Storage) -> Trouble:
    """The trouble behind an error, in our own words: a store's answer can have parts of a request."""
    from botocore.exceptions import (
        ClientError,
        CredentialRetrievalError,
        NoCredentialsError,
        NoRegionError,
        PartialCredentialsError,
        ProfileNotFound,
        SSOError,
        TokenRetrievalError,
    )

    cause = error.__context__ if isinstance(error.__context__, ClientError) else error
    if isinstance(cause, ClientError):
        code = str(cause.response.get("Error", {}).get("Code", ""))
        return Trouble(_KINDS.get(code, "failed"), code)
    if isinstance(error, NoCredentialsError):
        return Trouble("no-login", "there is no login")
    if isinstance(error, CredentialRetrievalError | PartialCredentialsError | SSOError | TokenRetrievalError):
        return Trouble("no-login", f"the login has ended, or is not whole ({type(error).__name__})")
    if isinstance(error, ProfileNotFound):
        return Trouble("no-profile", str(error))
    if isinstance(error, NoRegionError):
        return Trouble("no-region", "the region is not known")
    return Trouble("unreachable", f"the object store at {storage.endpoint or 'AWS'} does not answer")
