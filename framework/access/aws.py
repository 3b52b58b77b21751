"""The rights in IAM that each use of a table needs."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from framework import catalogs
from framework.access.about import About, Place, name, places
from framework.access.steps import SHELL, Step, shared
from framework.aws_policy import allow, below, of_bucket, of_key, of_namespace, of_objects, of_table, policy
from framework.errors import SluiceError
from framework.model import Storage, Table
from framework.spec.storage import Storage as Written

Use = Literal["ingest", "maintain", "read", "bad-rows", "athena"]
USES: Mapping[Use, str] = {
    "ingest": "sluice run: writes tables. It deletes files, too: those that an attempt left which died",
    "maintain": "sluice maintain, forget, drop, clean and rebuild: deletes old files and tables",
    "read": "readers: never changes anything",
    "bad-rows": "readers of the bad rows, which hold whole messages: never changes anything",
    "athena": "who asks Athena, besides the policy for readers: queries, and their results",
}
READERS, CATALOG = "readers", "catalog"  # roles: of those who may only read, and of a catalog that gives keys to others
_READ_GLUE = ("GetDatabase", "GetDatabases", "GetTable", "GetTables", "GetPartitions")
_WRITE_GLUE = ("CreateDatabase", "CreateTable", "UpdateTable")
_READ_FILES = ("s3:GetObject", "s3:GetObjectVersion")
_MULTIPART = ("s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_WRITE_FILES = ("s3:PutObject", "s3:DeleteObject", *_MULTIPART)
_ATHENA = ("StartQueryExecution", "StopQueryExecution", "GetQueryExecution", "GetQueryResults", "GetWorkGroup", "GetDataCatalog")


_NAME = 64  # characters: the limit of a role's name


def called(about: About, part: str) -> str:
    """The name of a role or policy for a table, or for all tables of its catalog."""
    table = about.pipeline.table
    scope = () if about.whole_catalog or part == "athena" else (table.identifier,)
    whole = name("sluice", table.catalog.name, *scope, part).replace("_", "-")
    if len(whole) <= _NAME:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{whole[: _NAME - len(part) - len(digest) - 2]}-{digest}-{part}"


def covered(about: About, use: Use) -> str:
    """What a policy lets its login reach, for its heading."""
    if use == "athena":
        return "any workgroup, and the bucket of the results"
    if about.whole_catalog:
        glue = in_glue(about)
        databases = (
            f"; in Glue every table of {', '.join(f'`{namespace}`' for namespace in _namespaces(about, glue))}" if glue else ""
        )
        return (
            f"ALL tables of the catalog `{about.pipeline.table.catalog.name}` and their bad rows, also those to come{databases}"
        )
    table = about.pipeline.table
    return ", ".join(f"`{covered_table.identifier}`" for covered_table in _covered_tables(table, use))


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
        SHELL, f"What it may do: {called(about, use)}, which `{policies}` creates: {USES[use]}. Reaches {covered(about, use)}.",
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
    """Where the files of a catalog's tables are, and in it those of the table."""

    warehouse: str
    folder: str  # that of the table; the warehouse where the script is about all tables
    storage: Storage
    told: bool = True  # whether the specs say it


def files(about: About) -> Files:
    """Of the catalog that keeps the table, wherever else it is listed."""
    (own, *_) = about.places
    options: Any = own.keeper.options
    storage = (options.storage or Written()).planned()
    if own.catalog.type == "rest":
        warehouse = "s3://<bucket>/<path of the tables>"
        return Files(warehouse, warehouse if about.whole_catalog else "s3://<bucket>/<folder of the table>", storage, told=False)
    warehouse = str(getattr(options, "warehouse", "") or "").rstrip("/")
    if not own.in_bucket:
        message = f"the files of the catalog `{own.catalog.name}` are in no bucket: {warehouse}"
        raise SluiceError("no-bucket", message, "keep tables in a bucket: `warehouse: s3://bucket/path`")
    folder = None if about.whole_catalog else catalogs.of(own.keeper).new_table_folder(about.pipeline.table.identifier)
    return Files(warehouse, folder or warehouse, storage)


def _covered_tables(table: Table, use: Use) -> tuple[Table, ...]:
    """The tables that a use of a table reaches."""
    both = (table, _bad_rows(table))
    if use == "maintain":
        return (*both, table.second, _bad_rows(table.second))
    return {"ingest": both, "bad-rows": both[1:]}.get(use, both[:1])


def _bad_rows(table: Table) -> Table:
    return replace(table, name=table.bad_rows.rpartition(".")[2])


def _folders(about: About, use: Use) -> list[str]:
    """The folders that a use reaches. A rebuild's second table has its metadata in a folder of its own, with eight more digits."""
    where, table = files(about), about.pipeline.table
    if about.whole_catalog:
        return [where.warehouse]
    kept = [other for other in _covered_tables(table, use) if other != table.second]
    folders = [where.folder if other == table else _folder(about, other) for other in kept]
    return [*folders, *([f"{where.folder}__????????"] if use == "maintain" else [])]


def _folder(about: About, table: Table) -> str:
    """The folder of a table besides the own one."""
    (own, *_) = about.places
    bad_rows = "the bad rows of the rebuild" if about.pipeline.table.second.name in table.name else "the bad rows"
    return catalogs.of(own.keeper).new_table_folder(table.identifier) or f"s3://<bucket>/<folder of {bad_rows}>"


def statements(about: About, use: Use, every_database: bool = False) -> Iterator[dict[str, Any]]:
    """A policy's statements, each for one kind of thing."""
    where, glue, reads = files(about), in_glue(about), use in ("read", "bad-rows")
    if use == "athena":
        assert glue is not None
        yield from _athena(glue)
        return
    folders = _folders(about, use)
    yield {"Sid": "Files", **allow((*_READ_FILES, *(() if reads else _WRITE_FILES)), *map(of_objects, folders))}
    yield {"Sid": "Names", **allow(("s3:ListBucket",), of_bucket(where.warehouse), where=below(*folders))}
    yield {"Sid": "Bucket", **allow(("s3:GetBucketLocation",), of_bucket(where.warehouse))}
    if where.storage.kms_key:
        keys = ("kms:Decrypt",) if reads else ("kms:Decrypt", "kms:GenerateDataKey")
        yield {"Sid": "Keys", **allow(keys, of_key(where.storage.kms_key))}
    on = list(_of_every_database(glue) if glue and every_database else _in_glue(about, use))
    if on:
        actions = (*_READ_GLUE, *(() if reads else _WRITE_GLUE), *(("DeleteTable",) if use == "maintain" else ()))
        yield {"Sid": "Tables", **allow((f"glue:{action}" for action in actions), *dict.fromkeys(on))}


def _of_every_database(glue: Place) -> tuple[str, ...]:
    options: Any = glue.catalog.options
    return of_namespace(glue.region, options.account, "*")


def _in_glue(about: About, use: Use) -> Iterator[str]:
    """The names in Glue that a use reaches. A catalog in which the table is listed by `publish` has the table alone."""
    if about.whole_catalog:
        glue = in_glue(about)
        if glue:
            glue_options: Any = glue.catalog.options
            for namespace in _namespaces(about, glue):
                yield from of_namespace(glue.region, glue_options.account, namespace)
        return
    table = about.pipeline.table
    for place in about.places:
        options: Any = place.catalog.options
        if place.catalog.type == "glue":
            own = place.catalog.name == place.keeper.name
            listed = [] if use == "bad-rows" else [place.table]
            for name_ in [other.name for other in _covered_tables(table, use)] if own else listed:
                yield from of_table(place.region, options.account, place.namespace, name_)


def _namespaces(about: About, glue: Place) -> list[str]:
    """All that the specs use in the catalog: one policy is for all of them."""
    every = (place for pipeline in about.plan.pipelines for place in places(pipeline))
    return sorted({place.namespace for place in every if place.catalog.name == glue.catalog.name})


def uses(about: About) -> Iterator[Use]:
    """The uses of which a script for AWS has policies. Those of a whole catalog reach bad rows, too."""
    wanted = {"athena": in_glue(about) is not None, "bad-rows": about.bad_rows and not about.whole_catalog}
    return (use for use in USES if wanted.get(use, True))


def _athena(glue: Place) -> Iterator[dict[str, Any]]:
    options: Any = glue.catalog.options
    arn = f"arn:aws:athena:{glue.region or '*'}:{options.account or '*'}"
    yield {"Sid": "Queries", **allow((f"athena:{each}" for each in _ATHENA), f"{arn}:workgroup/*", f"{arn}:datacatalog/*")}
    catalog, database, _ = of_namespace(glue.region, options.account, "default")
    yield {"Sid": "Default", **allow(("glue:GetDatabase",), catalog, database)}  # Athena looks there first
    results = "s3://<bucket of the results>"
    yield {"Sid": "Results", **allow((*_READ_FILES, "s3:PutObject", *_MULTIPART), of_objects(results))}
    bucket = ("s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads")
    yield {"Sid": "ResultsBucket", **allow(bucket, of_bucket(results))}
