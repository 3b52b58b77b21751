"""The loss if an environment is deleted: the tables and files in its bucket, and the values of its secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from framework.base import amounts
from framework.base.errors import SluiceError
from infra.deploy.terraform import Terraform

_METADATA = "/metadata/"
_MOST_NAMED = 20  # tables
_HINT = "give the login the right, and delete again, which goes on where it stopped"


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


def of_aws(aws: Terraform) -> Loss:
    """The content of what the module `aws` has made, by its state; part of that may be deleted already."""
    tables: set[str] = set()
    files = size = 0
    buckets = aws.made("aws_s3_bucket")
    try:
        for bucket in buckets:
            for stored in _files(_store(aws, bucket), bucket["bucket"]):
                files, size = files + 1, size + int(stored["Size"])
                folder, separator, name = str(stored["Key"]).rpartition(_METADATA)
                if separator and name.endswith(".metadata.json"):
                    tables.add(folder)
    except (BotoCoreError, ClientError) as error:
        hint = "nothing was deleted; it is not known what would be lost"
        raise SluiceError("aws-refused", f"the files in {bucket['bucket']} cannot be listed: {error}", hint) from None
    secrets = tuple(str(secret["name"]) for secret in aws.made("aws_secretsmanager_secret"))
    names = tuple(str(bucket["bucket"]) for bucket in buckets)
    return Loss(buckets=names, tables=tuple(sorted(tables)), files=files, bytes=size, secrets=secrets)


def empty_buckets(aws: Terraform) -> None:
    """Deletes all files of the buckets that were made, with all their versions, a thousand with each request."""
    for bucket in aws.made("aws_s3_bucket"):
        store, name = _store(aws, bucket), bucket["bucket"]
        try:
            for page in store.get_paginator("list_object_versions").paginate(Bucket=name):
                versions = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
                objects = [{"Key": version["Key"], "VersionId": version["VersionId"]} for version in versions]
                answer = store.delete_objects(Bucket=name, Delete={"Objects": objects, "Quiet": True}) if objects else {}
                for refused in answer.get("Errors", ()):
                    raise SluiceError("aws-refused", f"{name}/{refused['Key']} was not deleted: {refused['Code']}", _HINT)
        except (BotoCoreError, ClientError) as error:
            raise SluiceError("aws-refused", f"the bucket {name} cannot be emptied: {error}", _HINT) from None


def _files(store: Any, bucket: str) -> Iterator[Mapping[str, Any]]:
    """The files of a bucket with their older versions; none if somebody has deleted it."""
    try:
        for page in store.get_paginator("list_object_versions").paginate(Bucket=bucket):
            yield from page.get("Versions", ())
    except store.exceptions.NoSuchBucket:
        return


def _store(aws: Terraform, bucket: Mapping[str, Any]) -> Any:
    variables = aws.settings.variables(aws.module)
    session = boto3.Session(profile_name=variables.get("profile"), region_name=bucket["region"])
    return session.client("s3", endpoint_url=variables.get("endpoint"))
