"""Files of exports in an object store that speaks the protocol of S3.

Guarantee: a file is uploaded under its name, and the store shows it when all of it is there. A link is given only if the login that
signs it lasts as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from framework.base import iso_times
from framework.base.errors import SluiceError
from framework.features.export import place
from framework.features.export.window import Span
from framework.plan import SecretStore, Storage
from framework.plan.export import Export
from framework.plan.storage import SCHEME
from framework.systems import aws_policy, buckets
from framework.systems.catalogs import PROBE

_LOGIN = "correct `access_key` and `secret_key` under `storage`, or their secrets, and what that login may do: `s3:PutObject`"


@dataclass(frozen=True, kw_only=True)
class InBucket:
    """A file in a bucket."""

    file: str
    bucket: str
    key: str
    storage: Storage
    secrets: SecretStore
    content_type: str = "application/octet-stream"

    @contextmanager
    def draft(self, scratch: Path) -> Iterator[Path]:
        yield scratch / "export"

    def take(self, draft: Path, about: Mapping[str, str]) -> None:
        try:
            client = buckets.client(self._session(), self.storage)
            extra = {
                "Metadata": dict(about), "ContentType": self.content_type, "ChecksumAlgorithm": "SHA256",
                **buckets.encryption(self.storage),
            }  # fmt: skip
            client.upload_file(str(draft), self.bucket, self.key, ExtraArgs=extra)
        except buckets.errors() as error:
            raise self._failed(error) from None

    def link(self, seconds: int, moment: datetime) -> str:
        try:
            session = self._session()
            self._refuse_short_login(session.get_credentials(), seconds, moment)
            client = buckets.client(session, self.storage)
            params = {"Bucket": self.bucket, "Key": self.key}
            return str(client.generate_presigned_url("get_object", Params=params, ExpiresIn=seconds))
        except buckets.errors() as error:
            raise self._failed(error) from None

    def _refuse_short_login(self, login: Any, seconds: int, moment: datetime) -> None:
        """Refuses a link that would outlive the login that signs it."""
        if login is None or not login.get_frozen_credentials().token:
            return
        end_time = getattr(login, "_expiry_time", None)  # botocore has no other name for it
        seconds_left = 0 if end_time is None else int((end_time - moment).total_seconds())
        if seconds_left < seconds:
            until = f"ends at {iso_times.text(end_time)}" if end_time else "is temporary, for an unknown time"
            hint = "write a shorter `link_valid_for`, or give `storage` keys that last"
            raise SluiceError("link-outlives-login", f"the login to {self.file} {until}, and the link would end with it", hint)

    def _session(self) -> Any:
        return buckets.session(self.storage, buckets.login(self.storage, self.secrets))

    def _failed(self, error: Exception, hint: str = _LOGIN) -> SluiceError:
        trouble = buckets.trouble(error, self.storage)
        if trouble.kind == "no-bucket":
            return SluiceError("no-bucket", f"there is no bucket `{self.bucket}`", "create it, or correct `to` of the export")
        if trouble.kind == "refused":
            return SluiceError("storage-refused", f"the object store refused {self.file}: {trouble.says}", hint)
        if trouble.kind == "wrong-login":
            return SluiceError(
                "storage-refused", f"the object store does not take the login to {self.file}: {trouble.says}", _LOGIN
            )
        if trouble.kind == "no-login":
            return SluiceError(
                "storage-refused", f"there is no login for {self.file}", "add `access_key` and `secret_key` to `storage`"
            )
        if trouble.kind == "no-profile":
            return SluiceError("storage-refused", trouble.says, "correct `profile` under `storage`")
        if trouble.kind == "no-region":
            return SluiceError("storage-refused", f"the region of {self.file} is not known", "add `region` to `storage`")
        if trouble.kind == "unreachable":
            return SluiceError("storage-unreachable", trouble.says, "correct `endpoint` under `storage`")
        return SluiceError("storage-failed", f"the object store did not take {self.file}: {trouble.says}", "export it again")


def probe(start: str, storage: Storage, secrets: SecretStore) -> str:
    """Writes, reads and deletes a small file whose name begins like those of an export, and returns what works. An export only
    needs to write, and to read for links."""
    file = f"{start}{PROBE.rstrip('-')}"
    bucket, _, key = file.removeprefix(SCHEME).partition("/")
    bucket_file = InBucket(file=file, bucket=bucket, key=key, storage=storage, secrets=secrets)
    try:
        client = buckets.client(bucket_file._session(), storage)
        client.put_object(Bucket=bucket, Key=key, Body=b"sluice doctor", **buckets.encryption(storage))
    except buckets.errors() as error:
        raise bucket_file._failed(
            error, aws_policy.hint([aws_policy.allow(["s3:PutObject"], aws_policy.of_start(start))])
        ) from None
    allowed_actions = ["written"]
    for action, request in (("read", client.get_object), ("deleted", client.delete_object)):
        with suppress(*buckets.errors()):
            request(Bucket=bucket, Key=key)
            allowed_actions.append(action)
    suffix = "" if "deleted" in allowed_actions else f"; {file} stays"
    return f"{start}…: a file can be {' and '.join(allowed_actions)}{suffix}"


def in_bucket(export: Export, span: Span | None, secrets: SecretStore) -> InBucket:
    assert export.storage is not None
    file = place.name(export, span)
    bucket, _, key = file.removeprefix(SCHEME).partition("/")
    return InBucket(
        file=file, bucket=bucket, key=key, storage=export.storage, secrets=secrets, content_type=export.content_type
    )  # fmt: skip
