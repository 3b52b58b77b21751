"""Tables' files in an object store that speaks the protocol of S3.

Guarantee: a file is deleted only if its name lies in a folder of its table, and that in the catalog's warehouse, where the catalog says
what that is. In an object store a name is what it says: nothing leads elsewhere.
Cost: a folder is listed once, for all files in it that are asked for together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from framework.plan import SecretStore, Storage
from framework.plan.storage import SCHEME
from framework.systems import aws_policy, buckets
from framework.systems.buckets import BucketLogin
from framework.systems.catalogs import ANY_TIME, PROBE, Access, MayNotDelete, RequestFailed, Stored, TableFiles

_SCHEMES = re.compile(r"^s3[an]?://")
_TABLE = re.compile(r"s3://[^/]+/.*[^/]")
_AT_ONCE = 16  # requests
_RIGHTS = ("s3:PutObject", "s3:GetObject", "s3:ListBucket", "s3:DeleteObject")
_OF_KEYS = ("kms:GenerateDataKey", "kms:Decrypt")
_MAX_DELETED = 1000  # files that one request deletes


@dataclass(frozen=True)
class S3Files(TableFiles):
    """A location is `s3://bucket/name`. `root` is empty where the catalog alone knows where its tables are; `login` is one that the
    catalog gave, in place of the storage's own."""

    storage: Storage
    secrets: SecretStore
    login: BucketLogin | None = field(default=None, compare=False)

    def path(self, location: str) -> str:
        return _SCHEMES.sub(SCHEME, location)

    def read(self, location: str) -> bytes:
        bucket, key = self._parts(location)
        try:
            content: bytes = self._client().get_object(Bucket=bucket, Key=key)["Body"].read()
        except buckets.errors() as error:
            raise self._error(error, location) from None
        return content

    def write(self, location: str, content: bytes) -> None:
        bucket, key = self._parts(location)
        try:
            self._client().put_object(Bucket=bucket, Key=key, Body=content, **buckets.encryption(self.storage))
        except buckets.errors() as error:
            raise self._error(error, location) from None

    def folders(self, *locations: str) -> tuple[str, ...]:
        paths = (self.path(location).rstrip("/") for location in locations)
        root = self.path(self.root).rstrip("/")
        return tuple(path for path in paths if (path.startswith(f"{root}/") if root else _TABLE.fullmatch(path)))

    def split_deletable(self, locations: Iterable[str], folders: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        starts = tuple(f"{self.path(folder).rstrip('/')}/" for folder in folders)
        files = sorted({self.path(location) for location in locations})
        inside = tuple(file for file in files if starts and file.startswith(starts))
        return inside, tuple(sorted(set(files).difference(inside)))

    def existing(self, locations: Iterable[str]) -> set[str]:
        by_path = {self.path(location): location for location in locations}
        return {by_path[path] for path in self._sizes(by_path) if path in by_path}

    def size(self, files: Iterable[str]) -> int:
        paths = set(files)
        return sum(size for path, size in self._sizes(paths).items() if path in paths)

    def delete(self, files: Iterable[str], folder: str) -> None:
        by_bucket: dict[str, list[str]] = {}
        for bucket, key in map(self._parts, files):
            by_bucket.setdefault(bucket, []).append(key)
        for bucket, keys in by_bucket.items():
            for start in range(0, len(keys), _MAX_DELETED):
                self._delete(bucket, keys[start : start + _MAX_DELETED])

    def older(self, location: str, time_limit: datetime = ANY_TIME, start: str = "") -> Iterator[str]:
        for file, changed, _ in self._listed(f"{self.path(location).rstrip('/')}/{start}"):
            if changed < time_limit:
                yield file

    def stored(self, folders: Iterable[str]) -> Stored:
        sizes = [size for folder in folders for _, _, size in self._listed(f"{self.path(folder).rstrip('/')}/")]
        return Stored(files=len(sizes), bytes=sum(sizes))

    def may_delete(self, folder: str) -> bool:
        bucket, key = self._parts(_probe(folder))
        try:
            self._client().delete_object(Bucket=bucket, Key=key)
        except buckets.errors() as error:
            if buckets.trouble(error, self.storage).kind == "refused":
                return False
            raise self._error(error, folder) from None
        return True

    def probe(self, folder: str) -> bool:
        bucket, key = self._parts(_probe(folder))
        object_key = {"Bucket": bucket, "Key": key}
        try:
            store = self._client()
        except buckets.errors() as error:
            raise self._error(error, folder) from None
        actions: dict[str, Callable[[], object]] = {
            "s3:PutObject": lambda: store.put_object(**object_key, Body=b"sluice doctor", **buckets.encryption(self.storage)),
            "s3:GetObject": lambda: store.get_object(**object_key)["Body"].read(),
            "s3:ListBucket": lambda: store.list_objects_v2(Bucket=bucket, Prefix=key),
        }
        failed = {}
        for action, tried in actions.items():
            try:
                tried()
            except buckets.errors() as error:
                failed[action] = error
                if action == "s3:PutObject":
                    break
        if failed:
            message = f"{', '.join(failed)}: {self._error(next(iter(failed.values())), f'{SCHEME}{bucket}/{key}')}"
            refused = [action for action, error in failed.items() if buckets.trouble(error, self.storage).kind == "refused"]
            raise RequestFailed(
                message, self._grant(refused, folder) if refused else "correct the login under `storage`, or `warehouse`"
            )
        return self.may_delete(folder)

    def _grant(self, actions: list[str], folder: str) -> str:
        """The rights that an administrator has to grant. A login that may not write was refused before the other rights were tried."""
        below = self.path(self.root or folder)
        actions = list(_RIGHTS) if "s3:PutObject" in actions else actions
        of_bucket = [action for action in actions if action == "s3:ListBucket"]
        of_objects = [action for action in actions if action != "s3:ListBucket"]
        grants = [
            *([aws_policy.allow(of_objects, aws_policy.of_objects(below))] if of_objects else []),
            *([aws_policy.allow(of_bucket, aws_policy.of_bucket(below))] if of_bucket else []),
            *([aws_policy.allow(_OF_KEYS, aws_policy.of_key(self.storage.kms_key))] if self.storage.kms_key else []),
        ]
        return aws_policy.hint(grants)

    def around(self, location: str) -> str:
        return self.path(self.root or location.rstrip("/").rpartition("/")[0])

    def access(self, location: str) -> Access:
        try:
            session = buckets.session(self.storage, self._login())
            keys = buckets.keys(session)
        except buckets.errors() as error:
            raise self._error(error, location) from None
        return Access(
            scope=self._scope(self.path(location)),
            endpoint=self.storage.endpoint, region=session.region_name, path_style=self.storage.path_style,
            key=keys.key if keys else "", secret=keys.secret if keys else "", token=keys.token if keys else None,
        )  # fmt: skip

    def _scope(self, path: str) -> str:
        """The prefix of the files that the login is for. Vended keys are for one table; two catalogs may have two logins to one bucket."""
        if self.login:
            return f"{path.rstrip('/')}/"
        root = self.path(self.root).rstrip("/")
        if root and path.startswith(f"{root}/"):
            return f"{root}/"
        return f"{SCHEME}{self._parts(path)[0]}"

    def _sizes(self, paths: Iterable[str]) -> dict[str, int]:
        """The size of each file in the folders of `paths`."""
        folders = {path.rpartition("/")[0] + "/" for path in paths}
        with ThreadPoolExecutor(_AT_ONCE) as workers:
            lists = list(workers.map(lambda folder: list(self._listed(folder, "/")), folders))
        return {path: size for listed in lists for path, _, size in listed}

    def _listed(self, start: str, delimiter: str = "") -> Iterator[tuple[str, datetime, int]]:
        bucket, prefix = self._parts(start)
        try:
            pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter=delimiter)
            for page in pages:
                for entry in page.get("Contents", ()):
                    if not entry["Key"].endswith("/"):  # that of a folder
                        yield f"{SCHEME}{bucket}/{entry['Key']}", entry["LastModified"], entry["Size"]
        except buckets.errors() as error:
            raise self._error(error, start) from None

    def _delete(self, bucket: str, keys: list[str]) -> None:
        objects = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        try:
            answer = self._client().delete_objects(Bucket=bucket, Delete=objects)
        except buckets.errors() as error:
            file_error = self._error(error, f"{SCHEME}{bucket}/{keys[0]}")
            refused = buckets.trouble(error, self.storage).kind == "refused"
            raise (MayNotDelete(str(file_error)) if refused else file_error) from None
        for failed in answer.get("Errors", ()):
            message = f"the object store did not delete {SCHEME}{bucket}/{failed.get('Key')}: {failed.get('Code')}"
            raise MayNotDelete(message) if failed.get("Code") == "AccessDenied" else OSError(message)

    def _parts(self, location: str) -> tuple[str, str]:
        path = self.path(location)
        if not path.startswith(SCHEME):
            raise FileNotFoundError(f"{location} is not in an object store")
        bucket, _, key = path.removeprefix(SCHEME).partition("/")
        return bucket, key

    def _client(self) -> Any:
        return buckets.kept_client(self.storage, self._login())

    def _login(self) -> BucketLogin | None:
        return self.login or buckets.login(self.storage, self.secrets)

    def _error(self, error: BaseException, location: str) -> OSError:
        trouble = buckets.trouble(error, self.storage)
        if trouble.kind == "absent":
            return FileNotFoundError(f"there is no {self.path(location)}")
        if trouble.kind in ("refused", "wrong-login", "failed", "no-bucket"):
            return PermissionError(f"the object store refused {self.path(location)}: {trouble.says}")
        return ConnectionError(f"{trouble.says}, for {self.path(location)}")


def _probe(folder: str) -> str:
    """The file that only tests rights. It has one name, since a login that may not delete leaves it, until `sluice maintain` finds it."""
    return f"{folder.rstrip('/')}/metadata/{PROBE}file"
