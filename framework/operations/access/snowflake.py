"""The common parts of scripts for Snowflake: names, the objects that several of them use, and logins."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.access import private_files
from framework.operations.access.about import name
from framework.operations.access.steps import SHELL, SNOWFLAKE, ScriptStep, Warned, query, shared
from framework.sql import standard
from framework.sql.reserved import words

READER, WAREHOUSE = "sluice_reader", "sluice_reading"
_RESERVED = words("""
    account all alter and any as between by case cast check column connect connection constraint create cross current current_date
    current_time current_timestamp current_user database delete distinct drop else exists false following for from full grant group
    gscluster having ilike in increment inner insert intersect into is issue join lateral left like localtime localtimestamp minus
    natural not null of on or order organization qualify regexp revoke right rlike row rows sample schema select set some start table
    tablesample then to trigger true try_cast union unique update using values view when whenever where with
""")


def called(*parts: str) -> str:
    """The name of an object in Snowflake."""
    return identifier(name(*parts))


def identifier(word: str) -> str:
    """A name of a column or an object: quoted if it is reserved or no plain word; otherwise as it is, so that capitals do not matter."""
    if word.lower() in _RESERVED:
        return standard.identifier(word.upper())
    return word if word.isidentifier() and word.isascii() else standard.identifier(word)


def private_key(user: str) -> str:
    return private_files.path(f"{user}.p8")


def public_key(user: str) -> str:
    return private_files.path(f"{user}.pub")


def key_note(user: str) -> Warned:
    """The note of a script that makes a pair of keys."""
    return private_files.unencrypted(f"{user}.p8", f"a private key, with which one can log in to Snowflake as {user},")


def key_pair(user: str, why: str) -> ScriptStep:
    """The step that makes a pair of keys. An existing private key stays, since Snowflake has its public half."""
    private, public = private_key(user), public_key(user)
    return shared(
        SHELL, f"{why}: the private half stays here, the public half goes to Snowflake.",
        private_files.writing(
            f"test -e {private} || openssl genrsa 2048 | openssl pkcs8 -topk8 -inform PEM -nocrypt -out {private}",
            f"openssl rsa -in {private} -pubout -out {public}",
        ),
        f"rm {private} {public}",
    )  # fmt: skip


def warehouse() -> ScriptStep:
    run = f"CREATE WAREHOUSE IF NOT EXISTS {WAREHOUSE} WAREHOUSE_SIZE = XSMALL AUTO_SUSPEND = 60 INITIALLY_SUSPENDED = TRUE;"
    return shared(SNOWFLAKE, "What runs queries.", run, f"DROP WAREHOUSE IF EXISTS {WAREHOUSE};")


def places(database: str, schema: str) -> Iterator[ScriptStep]:
    yield _object("DATABASE", database, "The database.")
    yield _object("SCHEMA", f"{database}.{schema}", "The schema.")


def user(name: str, why_role: str, why: str, options: str = "") -> Iterator[ScriptStep]:
    """A role, and a user of the same name who has the public key."""
    yield shared(
        SNOWFLAKE, f"{why_role} Administrators have it, too: else nobody could drop what it owns.",
        f"CREATE ROLE IF NOT EXISTS {name};\nGRANT ROLE {name} TO ROLE SYSADMIN;", f"DROP ROLE IF EXISTS {name};",
    )  # fmt: skip
    yield shared(
        SNOWFLAKE, f"{why} with the public key: what {public_key(name)} has between its first and its last line.",
        f"CREATE USER IF NOT EXISTS {name} TYPE = SERVICE DEFAULT_ROLE = {name} {options}"
        f"RSA_PUBLIC_KEY = '<content of {public_key(name)}>';",
        f"DROP USER IF EXISTS {name};",
    )  # fmt: skip


def asking(role: str, warehouse: str) -> ScriptStep:
    """The statements before queries."""
    return query(SNOWFLAKE, "As who may read.", f"USE ROLE {role};\nUSE WAREHOUSE {warehouse};")


def _object(kind: str, name: str, why: str) -> ScriptStep:
    return shared(SNOWFLAKE, why, f"CREATE {kind} IF NOT EXISTS {name};", f"DROP {kind} IF EXISTS {name};")
