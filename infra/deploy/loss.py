"""The loss if an environment is deleted: the tables and files in its bucket, and the values of its secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from framework.base import amounts
from framework.base.errors import SluiceError
from infra.deploy import aws
from infra.deploy.terraform import LASTING, Terraform

_METADATA = "/metadata/"
_MOST_NAMED = 20  # tables
_HINT = "give the login the right, and delete again: what is done already is not done twice"


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The content of an environment. A bucket that was there before it is not in it."""

    buckets: tuple[str, ...]
    tables: tuple[str, ...]  # folders of tables in the bucket
    files: int  # with their older versions
    bytes: int
    secrets: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        for bucket in self.buckets:
            names = ", ".join(self.tables[:_MOST_NAMED]) + (" …" if len(self.tables) > _MOST_NAMED else "")
            tables = f", the tables {names}" if self.tables else ""
            yield f"the bucket {bucket}: {amounts.counted(self.files, 'file')}, {amounts.size(self.bytes)}{tables}"
        if self.secrets:
            yield f"the secrets {', '.join(self.secrets)}"
        yield "the roles, the databases of Glue with the names of their tables, and the key that was made for them"


def of_aws(terraform: Terraform) -> Loss:
    """The content of what the module `aws` has made, by its state; part of that may be deleted already."""
    tables: set[str] = set()
    files = size = 0
    names = _buckets(terraform)
    with aws.refused("the files in the bucket cannot be listed", "nothing was deleted; it is not known what would be lost"):
        for name in names:
            for stored in _files(_store(terraform), name):
                files, size = files + 1, size + int(stored["Size"])
                folder, separator, file = str(stored["Key"]).rpartition(_METADATA)
                if separator and file.endswith(".metadata.json"):
                    tables.add(folder)
    secrets = tuple(str(secret["name"]) for secret in terraform.made("aws_secretsmanager_secret"))
    return Loss(buckets=names, tables=tuple(sorted(tables)), files=files, bytes=size, secrets=secrets)


def of_other(terraform: Terraform) -> tuple[str, ...]:
    """The things of another module that nobody can bring back, by its state, in words."""
    return tuple(
        f"the {words}: {item.get('display_name') or item.get('name')}"
        for type_, words in LASTING.items()
        for item in terraform.made(type_)
    )


def empty_buckets(terraform: Terraform, with_files: bool) -> None:
    """Deletes all files of the buckets that were made, with all their versions, a thousand with each request; or the marks of deleted
    files alone, without which no bucket can be deleted."""
    parts = ("Versions", "DeleteMarkers") if with_files else ("DeleteMarkers",)
    store = _store(terraform)
    for name in _buckets(terraform):
        with aws.refused(f"the bucket {name} cannot be emptied", _HINT), suppress(store.exceptions.NoSuchBucket):
            for page in store.get_paginator("list_object_versions").paginate(Bucket=name):
                versions = [version for part in parts for version in page.get(part, ())]
                objects = [{"Key": version["Key"], "VersionId": version["VersionId"]} for version in versions]
                answer = store.delete_objects(Bucket=name, Delete={"Objects": objects, "Quiet": True}) if objects else {}
                for failed in answer.get("Errors", ()):
                    raise SluiceError("aws-refused", f"{name}/{failed['Key']} was not deleted: {failed['Code']}", _HINT)


def _buckets(terraform: Terraform) -> tuple[str, ...]:
    """The buckets of the state: the environment's file may name another one by now."""
    return tuple(str(bucket["bucket"]) for bucket in terraform.made("aws_s3_bucket"))


def _files(store: Any, bucket: str) -> Iterator[Mapping[str, Any]]:
    """The files of a bucket with their older versions; none if somebody has deleted it."""
    with suppress(store.exceptions.NoSuchBucket):
        for page in store.get_paginator("list_object_versions").paginate(Bucket=bucket):
            yield from page.get("Versions", ())


def _store(terraform: Terraform) -> Any:
    return aws.client("s3", terraform.settings.variables(terraform.module))
