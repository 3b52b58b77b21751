"""Read the table in Databricks, by a foreign catalog over Glue."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from framework.access import aws
from framework.access.about import About, name
from framework.access.steps import SHELL, Step, System, Warned, check, query, shared
from framework.sql.quote import identifier
from framework.sql.standard import quoted_text

OF = "table"
DATABRICKS = System("In Databricks", "sql", "--")


def steps(about: About) -> Iterator[Step | Warned]:
    place = about.place("Databricks", "glue")
    where = aws.files(place)
    options: Any = place.catalog.options
    yield Warned(
        "Unity Catalog has to be on, and Databricks has to run in the region of the bucket; it cannot write to the table"
    )
    if about.pipeline.table.format_version == 3:
        yield Warned("format 3 needs a runtime that reads it: `format_version: 2` of the pipeline is for an older one")
    yield Warned(
        "a Delta log is not used: `also: delta` writes one beside tables in a folder, not in a bucket. Unity Catalog as a catalog to "
        "publish in is not built: it takes no table of another catalog"
    )
    own = name("sluice", place.catalog.name)
    account, region = options.account or "<account>", where.storage.region or "<region>"
    role = f"arn:aws:iam::{account}:role/{aws.called(place, aws.READERS)}"
    for purpose, what in (("SERVICE", "Glue"), ("STORAGE", "the files")):
        credential = f"{own}_{purpose.lower()}"
        asked = {"name": credential, "purpose": purpose, "aws_iam_role": {"role_arn": role}}
        yield shared(
            SHELL, f"The login to {what}: the role of `sluice access aws-trust {about.pipeline.name}`.",
            f"databricks credentials create-credential --json {shlex.quote(json.dumps(asked))}",
            f"databricks credentials delete-credential {credential}",
        )  # fmt: skip
    yield shared(
        DATABRICKS, "Where the files are.",
        f"CREATE EXTERNAL LOCATION IF NOT EXISTS {own} URL {quoted_text(where.warehouse)} WITH (STORAGE CREDENTIAL {own}_storage);",
        f"DROP EXTERNAL LOCATION IF EXISTS {own};",
    )  # fmt: skip
    yield shared(
        DATABRICKS, "Glue.",
        f"CREATE CONNECTION IF NOT EXISTS {own} TYPE glue\n"
        f"  OPTIONS (aws_region {quoted_text(region)}, aws_account_id {quoted_text(account)}, "
        f"credential {quoted_text(f'{own}_service')});",
        f"DROP CONNECTION IF EXISTS {own};",
    )  # fmt: skip
    yield shared(
        DATABRICKS, "Its tables, as a catalog.",
        f"CREATE FOREIGN CATALOG IF NOT EXISTS {own} USING CONNECTION {own}\n"
        f"  OPTIONS (authorized_paths {quoted_text(where.warehouse)});",
        f"DROP CATALOG IF EXISTS {own} CASCADE;",
    )  # fmt: skip
    table = identifier(own, *place.identifier.split("."))
    yield check(DATABRICKS, "The table and its columns.", f"DESCRIBE EXTENDED {table};")
    yield query(DATABRICKS, "Rows.", f"SELECT * FROM {table} LIMIT 10;")
