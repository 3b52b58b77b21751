"""Rights in IAM for each use of a table."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from framework.operations.access import aws_reach
from framework.operations.access.about import AccessSubject, TablePlace, name
from framework.operations.access.aws_reach import Use, covered, files, folders, in_glue, names_in_glue
from framework.operations.access.steps import SHELL, ScriptStep, shared
from framework.systems.aws_policy import allow, below, of_bucket, of_key, of_namespace, of_objects, policy

USES: Mapping[Use, str] = {
    "ingest": "sluice run: writes tables. It deletes files, too: those that an attempt left which died",
    "maintain": "sluice maintain, forget, drop, clean and rebuild: deletes old files and tables",
    "read": "readers: never changes anything",
    "bad-rows": "readers of the bad rows, which hold whole messages: never changes anything",
    "athena": "who asks Athena, besides the policy for readers: queries, and their results",
}
READERS, CATALOG = "readers", "catalog"  # roles: one that may only read, and that of a catalog that gives keys to readers
_NAME = 64  # characters: the limit of a role's name
_READ_GLUE = ("GetDatabase", "GetDatabases", "GetTable", "GetTables", "GetPartitions")
_WRITE_GLUE = ("CreateDatabase", "CreateTable", "UpdateTable")
_READ_FILES = ("s3:GetObject", "s3:GetObjectVersion")
_MULTIPART = ("s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_WRITE_FILES = ("s3:PutObject", "s3:DeleteObject", *_MULTIPART)
_ATHENA = ("StartQueryExecution", "StopQueryExecution", "GetQueryExecution", "GetQueryResults", "GetWorkGroup", "GetDataCatalog")


def called(about: AccessSubject, part: str) -> str:
    """The name of a role or policy for a table, or for all tables of its catalog."""
    table = about.pipeline.table
    scope = () if about.whole_catalog or part == "athena" else (table.identifier,)
    full_name = name("sluice", table.catalog.name, *scope, part).replace("_", "-")
    if len(full_name) <= _NAME:
        return full_name
    digest = hashlib.sha256(full_name.encode()).hexdigest()[:8]
    return f"{full_name[: _NAME - len(part) - len(digest) - 2]}-{digest}-{part}"


def account(about: AccessSubject) -> str:
    """The number of the account, or a placeholder to fill in."""
    glue = in_glue(about)
    number = glue.catalog.options.account if glue else None
    return number or "<account>"


def role(about: AccessSubject, part: str) -> str:
    return f"arn:aws:iam::{account(about)}:role/{called(about, part)}"


def trusted(about: AccessSubject, part: str, use: Use, *parties: tuple[str, str]) -> Iterator[ScriptStep]:
    """Steps for a role that each of `parties` may assume by its external id, with a policy of `aws-policy`."""
    role, policies = called(about, part), about.command("aws-policy")
    document = shlex.quote(policy(*(_trusts(principal, external_id) for principal, external_id in parties), indent=2))
    yield shared(
        SHELL, "A role of AWS, which only those may assume who say the external id. Snowflake tags its sessions.",
        f"aws iam create-role --role-name {role} --assume-role-policy-document {document}", f"aws iam delete-role --role-name {role}",
    )  # fmt: skip
    arguments = attached(about, role, use)
    yield shared(
        SHELL, f"What it may do: {called(about, use)}, which `{policies}` creates: {USES[use]}. Reaches {covered(about, use)}.",
        f"aws iam attach-role-policy {arguments}", f"aws iam detach-role-policy {arguments}",
    )  # fmt: skip


def _trusts(principal: str, external_id: str) -> dict[str, object]:
    return {
        "Effect": "Allow", "Principal": {"AWS": principal}, "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
    }  # fmt: skip


def attached(about: AccessSubject, role: str, use: Use) -> str:
    """The arguments of AWS's command line that attach a policy to a role."""
    return f"--role-name {role} --policy-arn {policy_arn(called(about, use))}"


def policy_arn(policy: str) -> str:
    """The full name of a policy of the account that is logged in, for a shell."""
    return f'"arn:aws:iam::$(aws sts get-caller-identity --query Account --output text):policy/{policy}"'


def statements(about: AccessSubject, use: Use, every_database: bool = False) -> Iterator[dict[str, Any]]:
    """The statements of a policy: one each for files, names, keys and tables."""
    location, glue, reads = files(about), in_glue(about), use in ("read", "bad-rows")
    if use == "athena":
        assert glue is not None
        yield from _athena(glue)
        return
    reached_folders = folders(about, use)
    yield {"Sid": "Files", **allow((*_READ_FILES, *(() if reads else _WRITE_FILES)), *map(of_objects, reached_folders))}
    yield {"Sid": "Names", **allow(("s3:ListBucket",), of_bucket(location.warehouse), condition=below(*reached_folders))}
    yield {"Sid": "Bucket", **allow(("s3:GetBucketLocation",), of_bucket(location.warehouse))}
    if location.storage.kms_key:
        keys = ("kms:Decrypt",) if reads else ("kms:Decrypt", "kms:GenerateDataKey")
        yield {"Sid": "Keys", **allow(keys, of_key(location.storage.kms_key))}
    glue_names = list(aws_reach.every_database(glue) if glue and every_database else names_in_glue(about, use))
    if glue_names:
        actions = (*_READ_GLUE, *(() if reads else _WRITE_GLUE), *(("DeleteTable",) if use == "maintain" else ()))
        yield {"Sid": "Tables", **allow((f"glue:{action}" for action in actions), *dict.fromkeys(glue_names))}


def uses(about: AccessSubject) -> Iterator[Use]:
    """The uses for which a script for AWS has policies. Policies for a whole catalog reach bad rows, too."""
    conditions = {"athena": in_glue(about) is not None, "bad-rows": about.bad_rows and not about.whole_catalog}
    return (use for use in USES if conditions.get(use, True))


def _athena(glue: TablePlace) -> Iterator[dict[str, Any]]:
    options: Any = glue.catalog.options
    arn = f"arn:aws:athena:{glue.region or '*'}:{options.account or '*'}"
    yield {"Sid": "Queries", **allow((f"athena:{action}" for action in _ATHENA), f"{arn}:workgroup/*", f"{arn}:datacatalog/*")}
    catalog, database, _ = of_namespace(glue.region, options.account, "default")
    yield {"Sid": "Default", **allow(("glue:GetDatabase",), catalog, database)}  # Athena looks there first
    results = "s3://<bucket of the results>"
    yield {"Sid": "Results", **allow((*_READ_FILES, "s3:PutObject", *_MULTIPART), of_objects(results))}
    bucket = ("s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads")
    yield {"Sid": "ResultsBucket", **allow(bucket, of_bucket(results))}
