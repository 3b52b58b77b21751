"""What IAM has to allow for a table, by what is done with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from framework.access.about import Place, name
from framework.aws_policy import allow, of_bucket, of_key, of_namespace, of_objects
from framework.errors import SluiceError
from framework.model import Storage
from framework.spec.storage import Storage as Written

Use = Literal["ingest", "maintain", "read", "athena"]
USES: Mapping[Use, str] = {
    "ingest": "sluice run: writes tables. It deletes files, too: those that an attempt left which died",
    "maintain": "sluice maintain, forget, drop, clean and rebuild: deletes old files and tables",
    "read": "readers: never changes anything",
    "athena": "who asks Athena, besides the policy for readers: queries, and their results",
}
READERS = "readers"  # the role of those who may only read
_READ_GLUE = ("GetDatabase", "GetDatabases", "GetTable", "GetTables", "GetPartitions")
_WRITE_GLUE = ("CreateDatabase", "CreateTable", "UpdateTable")
_READ_FILES = ("s3:GetObject",)
_WRITE_FILES = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


def called(place: Place, part: str) -> str:
    """The name of a role or policy for a catalog."""
    return name("sluice", place.catalog.name, part).replace("_", "-")


def account_of(policy: str) -> str:
    """The full name of a policy of the account that is logged in, for a shell."""
    return f'"arn:aws:iam::$(aws sts get-caller-identity --query Account --output text):policy/{policy}"'


@dataclass(frozen=True)
class Files:
    """Where the files of a catalog's tables are."""

    warehouse: str
    storage: Storage


def files(place: Place) -> Files:
    options: Any = place.catalog.options
    warehouse = str(getattr(options, "warehouse", "") or "")
    if place.catalog.type == "rest":
        raise SluiceError(
            "unknown-bucket", f"the catalog `{place.catalog.name}` alone knows in which bucket its tables are",
            "its administrator gives the rights there, or let it give keys to each reader: a `storage` without keys",
        )  # fmt: skip
    if not place.in_bucket:
        message = f"the files of the catalog `{place.catalog.name}` are in no bucket: {warehouse}"
        raise SluiceError("no-bucket", message, "keep tables in a bucket: `warehouse: s3://bucket/path`")
    return Files(warehouse.rstrip("/"), (options.storage or Written()).planned())


def statements(place: Place, use: Use) -> Iterator[dict[str, Any]]:
    """A policy's statements, each for one kind of thing."""
    where = files(place)
    if use == "athena":
        yield from _athena(place, where.storage.region or "*")
        return
    reads = use == "read"
    yield {"Sid": "Files", **allow((*_READ_FILES, *(() if reads else _WRITE_FILES)), of_objects(where.warehouse))}
    yield {"Sid": "Names", **allow(("s3:ListBucket", "s3:GetBucketLocation"), of_bucket(where.warehouse))}
    if where.storage.kms_key:
        keys = ("kms:Decrypt",) if reads else ("kms:Decrypt", "kms:GenerateDataKey")
        yield {"Sid": "Keys", **allow(keys, of_key(where.storage.kms_key))}
    if place.catalog.type == "glue":
        actions = (*_READ_GLUE, *(() if reads else _WRITE_GLUE), *(("DeleteTable",) if use == "maintain" else ()))
        on = of_namespace(where.storage.region, place.catalog.options.account, place.namespace)
        yield {"Sid": "Tables", **allow((f"glue:{each}" for each in actions), *on)}


def uses(place: Place) -> Iterator[Use]:
    return (use for use in USES if use != "athena" or place.catalog.type == "glue")


def _athena(place: Place, region: str) -> Iterator[dict[str, Any]]:
    actions = (
        "StartQueryExecution",
        "StopQueryExecution",
        "GetQueryExecution",
        "GetQueryResults",
        "GetWorkGroup",
        "GetDataCatalog",
    )
    arn = f"arn:aws:athena:{region}:{place.catalog.options.account or '*'}"
    yield {"Sid": "Queries", **allow((f"athena:{each}" for each in actions), f"{arn}:workgroup/*", f"{arn}:datacatalog/*")}
    results = "s3://<bucket of the results>"
    yield {"Sid": "Results", **allow(("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"), of_objects(results))}
    yield {"Sid": "ResultsBucket", **allow(("s3:ListBucket", "s3:GetBucketLocation"), of_bucket(results))}
