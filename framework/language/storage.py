"""The object store of files, as a document names it under `storage`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from framework.base.errors import Problem
from framework.base.hosts import is_open
from framework.language import aws_login
from framework.language.options import OptionGroup, option
from framework.language.scalars import Url
from framework.plan import storage as model
from framework.plan.secret import SecretRef


@dataclass(frozen=True)
class Storage(OptionGroup):
    """An object store that speaks the protocol of S3. Without keys and profile, the machine's own AWS login is used."""

    # Who writes and who maintains may take two roles: the tables are the same.
    in_digest: ClassVar[str] = (
        "Storage endpoint region access_key secret_key profile role=no_role external_id=no_id kms_key path_style"
    )

    endpoint: Url | None = option(
        "The store's address; default: that of AWS.", default=None, example="http://127.0.0.1:19100", aka=["url", "uri"]
    )
    region: str | None = option("The store's region.", default=None, example="eu-central-1")
    access_key: str | SecretRef | None = option(
        "The id of the key to log in with.", default=None, example='"${secret:s3_key}"', aka=["key", "access_key_id"]
    )
    secret_key: SecretRef | None = option(
        "The secret of that key.", default=None, example='"${secret:s3_secret}"', aka=["secret", "secret_access_key"]
    )
    profile: str | None = aws_login.profile()

    role: str | None = aws_login.role()
    external_id: str | None = aws_login.external_id()
    kms_key: str | None = option(
        "A key of AWS KMS that encrypts the files; default: what the bucket does.", default=None,
        example="arn:aws:kms:eu-central-1:123456789012:key/0a1b", aka=["kms", "sse_key"],
    )  # fmt: skip
    path_style: bool | None = option(
        "Whether addresses have the bucket in their path; default: with an `endpoint` yes, at AWS no.",
        default=None,
        example="true",
    )

    @property
    def no_role(self) -> None:
        """The role in a digest, which is the same for all."""
        return

    @property
    def no_id(self) -> None:
        """The role's external id in a digest."""
        return

    def servers(self) -> Iterable[str | None]:
        return (self.endpoint,)

    def problems(self) -> Iterable[Problem]:
        yield from aws_login.id_without_role(self, self.role, self.external_id)
        if self.role is not None and self.region is None and "region" not in self.gaps:
            hint = "add `region`, such as `region: eu-central-1`"
            yield Problem(self.place("role"), "missing-key", "a `role` is assumed in a region, and there is no `region`", hint)
        if self.gaps & {"access_key", "secret_key"}:
            return
        if (self.access_key is None) != (self.secret_key is None):
            missing = "secret_key" if self.secret_key is None else "access_key"
            hint = f'add `{missing}: "${{secret:…}}"`, or remove the other'
            yield Problem(self.place(), "missing-key", f"a login needs a key and its secret, and there is no `{missing}`", hint)
        elif self.access_key is not None and self.profile is not None:
            hint = "remove one of them"
            yield Problem(self.key_place("profile"), "unused-key", "`profile` has no effect with `access_key`", hint)
        if is_open(self.endpoint):
            message = f"rows would be sent to {self.endpoint} without encryption"
            yield Problem(self.place("endpoint"), "unencrypted-storage", message, "write `https://…`")

    def planned(self) -> model.Storage:
        return model.Storage(
            endpoint=self.endpoint, region=self.region, access_key=self.access_key, secret_key=self.secret_key, profile=self.profile,
            role=self.role, external_id=self.external_id, kms_key=self.kms_key,
            path_style=bool(self.endpoint) if self.path_style is None else self.path_style,
        )  # fmt: skip
