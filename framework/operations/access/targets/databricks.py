"""Read the table in Databricks, by a foreign catalog over Glue."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace

from framework.operations.access import aws, aws_reach
from framework.operations.access.about import AccessSubject, TablePlace, name
from framework.operations.access.steps import SHELL, ScriptStep, System, Warned, check, create, query, shared
from framework.sql.quote import identifier
from framework.sql.standard import literal
from framework.systems import aws_policy

OF = "table"
DATABRICKS = System("In Databricks", "sql", "--")


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    place = about.place("Databricks", "glue")
    files = aws_reach.files(about)
    yield Warned(
        "Unity Catalog has to be on, and Databricks has to run in the region of the bucket; it cannot write to the table"
    )
    yield from about.format_3("an older runtime of Databricks does not read")
    yield Warned(
        "a Delta log is not used: `also: delta` writes one beside tables in a folder, not in a bucket. Unity Catalog as a catalog to "
        "publish in is not built: it takes no table of another catalog"
    )
    catalog_name = name("sluice", *dict.fromkeys((place.catalog.name, place.keeper.name)))
    yield from _login(about, catalog_name)
    yield from _catalog(place, files, catalog_name, aws.account(about))
    schema, table = identifier(catalog_name, place.namespace), identifier(catalog_name, *place.identifier.split("."))
    yield shared(
        DATABRICKS, "Who may find tables.",
        f"GRANT USE CATALOG ON CATALOG {catalog_name} TO `<readers>`;\nGRANT USE SCHEMA ON SCHEMA {schema} TO `<readers>`;",
        f"REVOKE USE SCHEMA ON SCHEMA {schema} FROM `<readers>`;\nREVOKE USE CATALOG ON CATALOG {catalog_name} FROM `<readers>`;",
    )  # fmt: skip
    yield create(
        DATABRICKS, "Who may read this one; its bad rows are a table of their own beside it.",
        f"GRANT SELECT ON TABLE {table} TO `<readers>`;", f"REVOKE SELECT ON TABLE {table} FROM `<readers>`;",
    )  # fmt: skip
    yield check(DATABRICKS, "The table and its columns.", f"DESCRIBE EXTENDED {table};")
    yield query(DATABRICKS, "Rows.", f"SELECT * FROM {table} LIMIT 10;")


def _login(about: AccessSubject, catalog_name: str) -> Iterator[ScriptStep]:
    """Steps for a role that trusts itself, and then Unity Catalog by the external ids that Unity Catalog prints."""
    # One role is for all tables: readers log in to Databricks, which knows who may read which table.
    catalog_about = replace(about, whole_catalog=True)
    role, arn = aws.called(catalog_about, "databricks"), aws.role(catalog_about, "databricks")
    policy_name = aws.called(about, "reads")
    self_trust = {
        "Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{aws.account(about)}:root"}, "Action": ["sts:AssumeRole"],
        "Condition": {"ArnEquals": {"aws:PrincipalArn": arn}},
    }  # fmt: skip
    yield shared(
        SHELL, "A role of AWS, which has to trust itself.",
        f"aws iam create-role --role-name {role} --assume-role-policy-document {shlex.quote(aws_policy.policy(self_trust, indent=2))}",
        f"aws iam delete-role --role-name {role}",
    )  # fmt: skip
    statements = [
        *aws.statements(about, "read", every_database=True),
        {"Sid": "Itself", **aws_policy.allow(("sts:AssumeRole",), arn)},
    ]
    yield shared(
        SHELL,
        "What it may do: read the files of this table. A foreign catalog lists every database of Glue: names and columns of all tables, "
        "but no rows of others.",
        f"aws iam put-role-policy --role-name {role} --policy-name {policy_name} "
        f"--policy-document {shlex.quote(aws_policy.policy(*statements, indent=2))}",
        f"aws iam delete-role-policy --role-name {role} --policy-name {policy_name}",
    )  # fmt: skip
    for purpose, destination in (("SERVICE", "Glue"), ("STORAGE", "the files")):
        credential = f"{catalog_name}_{purpose.lower()}"
        request = {"name": credential, "purpose": purpose, "aws_iam_role": {"role_arn": arn}, "skip_validation": True}
        yield shared(
            SHELL, f"The login to {destination}. It prints an external id, and the name of Unity Catalog's own role.",
            f"databricks credentials create-credential --json {shlex.quote(json.dumps(request))}",
            f"databricks credentials delete-credential {credential}",
        )  # fmt: skip
    unity_trust = {
        "Effect": "Allow", "Principal": {"AWS": "<unity_catalog_iam_arn>"}, "Action": ["sts:AssumeRole"],
        "Condition": {"StringEquals": {"sts:ExternalId": ["<external_id of the first>", "<external_id of the second>"]}},
    }  # fmt: skip
    trust = shlex.quote(aws_policy.policy(self_trust, unity_trust, indent=2))
    yield create(
        SHELL, "The role trusts Unity Catalog, too: fill in what the two commands before printed.",
        f"aws iam update-assume-role-policy --role-name {role} --policy-document {trust}",
    )  # fmt: skip


def _catalog(place: TablePlace, files: aws_reach.ReachedFiles, catalog_name: str, account: str) -> Iterator[ScriptStep]:
    url, location = literal(files.warehouse), name(catalog_name, place.identifier)
    yield create(
        SHELL, "Where the files of this table are.",
        f"databricks external-locations create {location} {shlex.quote(files.folder)} {catalog_name}_storage --read-only",
        f"databricks external-locations delete {location}",
    )  # fmt: skip
    yield shared(
        DATABRICKS, "Glue.",
        f"CREATE CONNECTION IF NOT EXISTS {catalog_name} TYPE glue\n"
        f"  OPTIONS (aws_region {literal(place.region or '<region>')}, aws_account_id {literal(account)}, "
        f"credential {literal(f'{catalog_name}_service')});",
        f"DROP CONNECTION IF EXISTS {catalog_name};",
    )  # fmt: skip
    yield shared(
        DATABRICKS, "Its tables, as a catalog.",
        f"CREATE FOREIGN CATALOG IF NOT EXISTS {catalog_name} USING CONNECTION {catalog_name}\n  OPTIONS (authorized_paths {url});",
        f"DROP CATALOG IF EXISTS {catalog_name} CASCADE;",
    )  # fmt: skip
