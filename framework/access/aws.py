"""The rights in IAM that each use of a table needs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from framework.access.about import About, Place, name, places
from framework.access.steps import SHELL, Step, shared
from framework.aws_policy import allow, of_bucket, of_key, of_namespace, of_objects, policy
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
READERS, CATALOG = "readers", "catalog"  # roles: of those who may only read, and of a catalog that gives keys to others
_READ_GLUE = ("GetDatabase", "GetDatabases", "GetTable", "GetTables", "GetPartitions")
_WRITE_GLUE = ("CreateDatabase", "CreateTable", "UpdateTable")
_READ_FILES = ("s3:GetObject", "s3:GetObjectVersion")
_MULTIPART = ("s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_WRITE_FILES = ("s3:PutObject", "s3:DeleteObject", *_MULTIPART)
_ATHENA = ("StartQueryExecution", "StopQueryExecution", "GetQueryExecution", "GetQueryResults", "GetWorkGroup", "GetDataCatalog")


def called(about: About, part: str) -> str:
    """The name of a role or policy: all tables whose files are in the warehouse of one catalog share it."""
    return name("sluice", about.pipeline.table.catalog.name, part).replace("_", "-")


def account(about: About) -> str:
    """The number of the account, or what to write in its place."""
    glue = in_glue(about)
    number = glue.catalog.options.account if glue else None
    return number or "<account>"


def role(about: About, part: str) -> str:
    return f"arn:aws:iam::{account(about)}:role/{called(about, part)}"


def trusted(about: About, part: str, use: Use, *others: tuple[str, str]) -> Iterator[Step]:
    """A role that these others may assume, each by its external id, with a policy of `aws-policy`."""
    role, policies = called(about, part), about.command("aws-policy")
    document = shlex.quote(policy(*(_trusts(who, external_id) for who, external_id in others), indent=2))
    yield shared(
        SHELL, "A role of AWS, which only those may assume who say the external id. Snowflake tags its sessions.",
        f"aws iam create-role --role-name {role} --assume-role-policy-document {document}", f"aws iam delete-role --role-name {role}",
    )  # fmt: skip
    to = attached(about, role, use)
    yield shared(
        SHELL, f"What it may do: {called(about, use)}, which `{policies}` creates: {USES[use]}.",
        f"aws iam attach-role-policy {to}", f"aws iam detach-role-policy {to}",
    )  # fmt: skip


def _trusts(who: str, external_id: str) -> dict[str, object]:
    return {
        "Effect": "Allow", "Principal": {"AWS": who}, "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
    }  # fmt: skip


def attached(about: About, to: str, use: Use) -> str:
    """The arguments of AWS's command line that attach a policy to a role."""
    return f"--role-name {to} --policy-arn {policy_arn(called(about, use))}"


def policy_arn(policy: str) -> str:
    """The full name of a policy of the account that is logged in, for a shell."""
    return f'"arn:aws:iam::$(aws sts get-caller-identity --query Account --output text):policy/{policy}"'


def in_glue(about: About) -> Place | None:
    """Where the table, or another one whose files are in the same warehouse, is in Glue."""
    (own, *_) = about.places
    others = (place for pipeline in about.plan.pipelines for place in places(pipeline) if place.keeper.name == own.keeper.name)
    return next((place for place in (*about.places, *others) if place.catalog.type == "glue"), None)


@dataclass(frozen=True)
class Files:
    """Where the files of a catalog's tables are."""

    warehouse: str
    storage: Storage
    told: bool = True  # whether the specs say it


def files(about: About) -> Files:
    """Of the catalog that keeps the table, wherever else it is listed."""
    (own, *_) = about.places
    options: Any = own.keeper.options
    storage = (options.storage or Written()).planned()
    if own.catalog.type == "rest":
        return Files("s3://<bucket>/<path of the tables>", storage, told=False)
    warehouse = str(getattr(options, "warehouse", "") or "")
    if not own.in_bucket:
        message = f"the files of the catalog `{own.catalog.name}` are in no bucket: {warehouse}"
        raise SluiceError("no-bucket", message, "keep tables in a bucket: `warehouse: s3://bucket/path`")
    return Files(warehouse.rstrip("/"), storage)


def statements(about: About, use: Use, every_database: bool = False) -> Iterator[dict[str, Any]]:
    """A policy's statements, each for one kind of thing."""
    where, glue, reads = files(about), in_glue(about), use == "read"
    if use == "athena":
        assert glue is not None
        yield from _athena(glue)
        return
    yield {"Sid": "Files", **allow((*_READ_FILES, *(() if reads else _WRITE_FILES)), of_objects(where.warehouse))}
    yield {"Sid": "Names", **allow(("s3:ListBucket", "s3:GetBucketLocation"), of_bucket(where.warehouse))}
    if where.storage.kms_key:
        keys = ("kms:Decrypt",) if reads else ("kms:Decrypt", "kms:GenerateDataKey")
        yield {"Sid": "Keys", **allow(keys, of_key(where.storage.kms_key))}
    if glue:
        actions = (*_READ_GLUE, *(() if reads else _WRITE_GLUE), *(("DeleteTable",) if use == "maintain" else ()))
        namespaces = ["*"] if every_database else _namespaces(about, glue)
        on = (each for namespace in namespaces for each in _of_glue(glue, namespace))
        yield {"Sid": "Tables", **allow((f"glue:{each}" for each in actions), *dict.fromkeys(on))}


def _of_glue(glue: Place, namespace: str) -> tuple[str, ...]:
    options: Any = glue.catalog.options
    return of_namespace(glue.region, options.account, namespace)


def _namespaces(about: About, glue: Place) -> list[str]:
    """All that the specs use in the catalog: one policy is for all of them."""
    every = (place for pipeline in about.plan.pipelines for place in places(pipeline))
    return sorted({place.namespace for place in every if place.catalog.name == glue.catalog.name})


def uses(about: About) -> Iterator[Use]:
    return (use for use in USES if use != "athena" or in_glue(about))


def _athena(glue: Place) -> Iterator[dict[str, Any]]:
    options: Any = glue.catalog.options
    arn = f"arn:aws:athena:{glue.region or '*'}:{options.account or '*'}"
    yield {"Sid": "Queries", **allow((f"athena:{each}" for each in _ATHENA), f"{arn}:workgroup/*", f"{arn}:datacatalog/*")}
    catalog, database, _ = _of_glue(glue, "default")
    yield {"Sid": "Default", **allow(("glue:GetDatabase",), catalog, database)}  # Athena looks there first
    results = "s3://<bucket of the results>"
    yield {"Sid": "Results", **allow((*_READ_FILES, "s3:PutObject", *_MULTIPART), of_objects(results))}
    bucket = ("s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads")
    yield {"Sid": "ResultsBucket", **allow(bucket, of_bucket(results))}
