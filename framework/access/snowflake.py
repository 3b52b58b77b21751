"""What scripts for Snowflake have in common: the objects that several of them use, and who logs in."""

from __future__ import annotations

from collections.abc import Iterator

from framework.access.steps import SHELL, SNOWFLAKE, Step, shared

READER, WAREHOUSE = "sluice_reader", "sluice_reading"


def key_pair(user: str, why: str) -> Step:
    """A key that is there stays: Snowflake has its other half."""
    return shared(
        SHELL, f"{why}: the private half stays here, the public half goes to Snowflake.",
        f"test -e {user}.p8 || openssl genrsa 2048 | openssl pkcs8 -topk8 -inform PEM -nocrypt -out {user}.p8\n"
        f"openssl rsa -in {user}.p8 -pubout -out {user}.pub",
        f"rm {user}.p8 {user}.pub",
    )  # fmt: skip


def warehouse() -> Step:
    run = f"CREATE WAREHOUSE IF NOT EXISTS {WAREHOUSE} WAREHOUSE_SIZE = XSMALL AUTO_SUSPEND = 60 INITIALLY_SUSPENDED = TRUE;"
    return shared(SNOWFLAKE, "What runs queries.", run, f"DROP WAREHOUSE IF EXISTS {WAREHOUSE};")


def places(database: str, schema: str) -> Iterator[Step]:
    yield _object("DATABASE", database, "The database.")
    yield _object("SCHEMA", f"{database}.{schema}", "The schema.")


def user(name: str, why_role: str, why: str, options: str = "") -> Iterator[Step]:
    """A role, and a user of the same name who has the public key."""
    yield _object("ROLE", name, why_role)
    yield shared(
        SNOWFLAKE, f"{why} with the public key: what {name}.pub has between its first and its last line.",
        f"CREATE USER IF NOT EXISTS {name} TYPE = SERVICE DEFAULT_ROLE = {name} {options}RSA_PUBLIC_KEY = '<content of {name}.pub>';",
        f"DROP USER IF EXISTS {name};",
    )  # fmt: skip


def _object(kind: str, name: str, why: str) -> Step:
    return shared(SNOWFLAKE, why, f"CREATE {kind} IF NOT EXISTS {name};", f"DROP {kind} IF EXISTS {name};")
