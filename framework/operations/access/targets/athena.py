"""Read the table with Amazon Athena, which finds it in Glue."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from framework.operations.access.about import AccessSubject
from framework.operations.access.steps import SHELL, ScriptStep, System, Warned, check, query
from framework.sql.standard import identifier

OF = "table"
ATHENA = System("In Athena", "sql", "--")


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    place = about.place("Athena", "glue")
    yield from about.format_3("Athena does not read")
    region = place.region or "<region>"
    policies = about.command("aws-policy")
    yield Warned(
        f"Athena has to run in {region}. Its user needs two policies of `{policies}`: that for readers and that for Athena"
    )
    yield Warned("Athena is paid by the bytes that a query reads: select the columns that you need, and name partitions")
    yield check(
        SHELL, "Whether Glue has the table.",
        shlex.join(["aws", "glue", "get-table", "--region", region, "--database-name", place.namespace, "--name", place.table]),
    )  # fmt: skip
    quoted_name = f"{identifier(place.namespace)}.{identifier(place.table)}"
    yield query(ATHENA, "Rows.", f"SELECT * FROM {quoted_name} LIMIT 10;")
    yield query(ATHENA, "How many there are.", f"SELECT count(*) FROM {quoted_name};")
    yield query(
        ATHENA, "Its snapshots.", f"SELECT * FROM {identifier(place.namespace)}.{identifier(f'{place.table}$snapshots')};"
    )
