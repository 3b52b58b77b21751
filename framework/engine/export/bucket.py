"""Files of exports in an object store that speaks the protocol of S3.

Guarantee: a file is uploaded under its name, and the store shows it when all of it is there. A link is given only if the login that
signs it lasts as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from framework.engine.export import place
from framework.engine.export.window import Span
from framework.errors import SluiceError
from framework.model import SecretStore, Storage
from framework.model.export import Export
from framework.model.storage import SCHEME
from framework.patience import STORE
from framework.secrets import reveal

_REFUSED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "403"}
_LOGIN = "correct `access_key` and `secret_key` under `storage`, or their secrets, and what that login may do: `s3:PutObject`"


@dataclass(frozen=True, kw_only=True)
class InBucket:
    """A file in a bucket."""

    file: str
    bucket: str
    key: str
    storage: Storage
    secrets: SecretStore

    @contextmanager
    def draft(self, scratch: Path) -> Iterator[Path]:
        yield scratch / "export"

    def take(self, draft: Path, about: Mapping[str, str]) -> None:
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            client = self._session().client("s3", **self._settings())
            extra = {"Metadata": dict(about), "ChecksumAlgorithm": "SHA256"}
            client.upload_file(str(draft), self.bucket, self.key, ExtraArgs=extra)
        except (Boto3Error, BotoCoreError, ClientError, ValueError) as error:
            raise self._failed(error) from None

    def link(self, seconds: int, now: datetime) -> str:
        from botocore.exceptions import BotoCoreError

        try:
            session = self._session()
            self._refuse_short_login(session.get_credentials(), seconds, now)
            client = session.client("s3", **self._settings())
            params = {"Bucket": self.bucket, "Key": self.key}
            return str(client.generate_presigned_url("get_object", Params=params, ExpiresIn=seconds))
        except (BotoCoreError, ValueError) as error:
            raise self._failed(error) from None

    def _refuse_short_login(self, login: Any, seconds: int, now: datetime) -> None:
        """Whoever opens a link does so by the login that signed it, as long as that lasts."""
        if login is None or not login.get_frozen_credentials().token:
            return
        ends = getattr(login, "_expiry_time", None)  # botocore has no other name for it
        left = 0 if ends is None else int((ends - now).total_seconds())
        if left < seconds:
            until = f"ends at {ends.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC" if ends else "is temporary, for an unknown time"
            hint = "write a shorter `link_valid_for`, or give `storage` keys that last"
            raise SluiceError("link-outlives-login", f"the login to {self.file} {until}, and the link would end with it", hint)

    def _session(self) -> Any:
        import boto3

        key, secret = (
            reveal(each, self.secrets) if each else None for each in (self.storage.access_key, self.storage.secret_key)
        )
        return boto3.Session(
            aws_access_key_id=key, aws_secret_access_key=secret, profile_name=self.storage.profile, region_name=self.storage.region
        )  # fmt: skip

    def _settings(self) -> dict[str, Any]:
        from botocore.config import Config

        style = "path" if self.storage.endpoint else "auto"
        config = Config(
            signature_version="s3v4", s3={"addressing_style": style}, connect_timeout=STORE, read_timeout=STORE,
            retries={"mode": "standard", "total_max_attempts": 3},
        )  # fmt: skip
        return {"endpoint_url": self.storage.endpoint, "config": config}

    def _failed(self, error: Exception) -> SluiceError:
        """In words of its own: what a store answers can have parts of a request."""
        from botocore.exceptions import ClientError, NoCredentialsError, NoRegionError, ProfileNotFound

        cause = error.__context__ if isinstance(error.__context__, ClientError) else error
        if isinstance(cause, ClientError):
            code = str(cause.response.get("Error", {}).get("Code", ""))
            if code == "NoSuchBucket":
                return SluiceError("no-bucket", f"there is no bucket `{self.bucket}`", "create it, or correct `to` of the export")
            if code in _REFUSED:
                return SluiceError("storage-refused", f"the object store refused {self.file}: {code}", _LOGIN)
            return SluiceError("storage-failed", f"the object store did not take {self.file}: {code}", "export it again")
        if isinstance(error, NoCredentialsError):
            return SluiceError(
                "storage-refused", f"there is no login for {self.file}", "add `access_key` and `secret_key` to `storage`"
            )
        if isinstance(error, ProfileNotFound):
            return SluiceError("storage-refused", str(error), "correct `profile` under `storage`")
        if isinstance(error, NoRegionError):
            return SluiceError("storage-refused", f"the region of {self.file} is not known", "add `region` to `storage`")
        at = self.storage.endpoint or "AWS"
        return SluiceError(
            "storage-unreachable", f"the object store at {at} does not answer", "correct `endpoint` under `storage`"
        )


def in_bucket(export: Export, span: Span | None, secrets: SecretStore) -> InBucket:
    assert export.storage is not None
    file = place.name(export, span)
    bucket, _, key = file.removeprefix(SCHEME).partition("/")
    return InBucket(file=file, bucket=bucket, key=key, storage=export.storage, secrets=secrets)
