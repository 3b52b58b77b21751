"""Object stores that speak the protocol of S3."""

from __future__ import annotations

from dataclasses import dataclass

from framework.plan.secret import SecretRef

SCHEME = "s3://"  # the beginning of the names of a store's files


@dataclass(frozen=True, kw_only=True)
class Storage:
    """A store and the login to it. Without keys, the login is the machine's own, or that of a profile."""

    endpoint: str | None  # None: that of AWS
    region: str | None
    access_key: str | SecretRef | None
    secret_key: SecretRef | None
    profile: str | None
    role: str | None = None  # assumed by the login
    external_id: str | None = None
    kms_key: str | None = None  # the key that encrypts written files
    path_style: bool = False  # whether the bucket is in the path of an address, not in its host
