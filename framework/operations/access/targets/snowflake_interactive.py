"""A copy of the table in Snowflake that answers within a second: an interactive table and its warehouse."""

from __future__ import annotations

from collections.abc import Iterator

from framework.base.types import DATE, TIMESTAMP, is_numeric
from framework.operations.access.about import AccessSubject, name
from framework.operations.access.snowflake import READER, WAREHOUSE, asking, called, identifier
from framework.operations.access.steps import SNOWFLAKE, ScriptStep, Warned, check, create, query, shared

OF = "table"
_INTERACTIVE = "sluice_interactive"
_LAG = "1 minute"


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    place = about.place("Snowflake", "rest", "glue")
    database = called("sluice", place.catalog.name)
    schema_name = f"{database}.{called(place.namespace)}"
    source, live = f"{schema_name}.{called(place.table)}", f"{schema_name}.{called(place.table, 'live')}"
    columns = _clustered(about)
    yield Warned(f"it copies the Iceberg table that `{about.command('snowflake')}` creates: run that first")
    yield Warned(
        f"{_INTERACTIVE} costs as long as it runs, and it does not stop by itself within a day: `ALTER WAREHOUSE {_INTERACTIVE} SUSPEND` "
        "stops it, and the cleanup drops it only where you remove the comment, as it may have other tables"
    )
    yield Warned("interactive tables are not in every region of Snowflake")
    yield create(
        SNOWFLAKE, f"The copy, at most {_LAG} behind, in the order of what queries ask for: {', '.join(columns)}.",
        f"CREATE INTERACTIVE TABLE IF NOT EXISTS {live}\n  CLUSTER BY ({', '.join(columns)})\n  TARGET_LAG = '{_LAG}'\n"
        f"  WAREHOUSE = {WAREHOUSE}\n  AS SELECT * FROM {source};",
        f"DROP TABLE IF EXISTS {live};",
    )  # fmt: skip
    yield shared(
        SNOWFLAKE, "The warehouse that answers, and what it has in its memory.",
        f"CREATE INTERACTIVE WAREHOUSE IF NOT EXISTS {_INTERACTIVE} WAREHOUSE_SIZE = 'XSMALL';",
        f"DROP WAREHOUSE IF EXISTS {_INTERACTIVE};",
    )  # fmt: skip
    yield create(
        SNOWFLAKE, "Give it the copy, and start it: from here on it costs.",
        f"ALTER WAREHOUSE {_INTERACTIVE} ADD TABLES ({live});\nALTER WAREHOUSE {_INTERACTIVE} RESUME IF SUSPENDED;",
        f"ALTER WAREHOUSE {_INTERACTIVE} DROP TABLES ({live});",
    )  # fmt: skip
    yield create(
        SNOWFLAKE, "Who may ask.",
        f"GRANT USAGE ON WAREHOUSE {_INTERACTIVE} TO ROLE {READER};\nGRANT SELECT ON TABLE {live} TO ROLE {READER};",
    )  # fmt: skip
    yield check(SNOWFLAKE, "Whether it runs, and what it has.", f"SHOW WAREHOUSES LIKE '{_INTERACTIVE}';")
    yield check(SNOWFLAKE, "How far behind the copy is.", f"SHOW TABLES LIKE '{name(place.table)}_live' IN DATABASE {database};")
    yield asking(READER, _INTERACTIVE)
    yield query(SNOWFLAKE, "Rows of one value.", f"SELECT * FROM {live} WHERE {columns[0]} = {_value(about)} LIMIT 100;")
    if len(columns) > 1:
        last_query = f"SELECT * FROM {live} WHERE {columns[0]} = {_value(about)} ORDER BY {columns[-1]} DESC LIMIT 1;"
        yield query(SNOWFLAKE, "The last of them.", last_query)


def _clustered(about: AccessSubject) -> list[str]:
    """The columns by which queries choose rows: the keys or the order of the table, and its time; else its first column."""
    return [identifier(column) for column in _chosen(about)]


def _chosen(about: AccessSubject) -> list[str]:
    table = about.pipeline.table
    keys = list(table.keys)
    times = [column.name for column in table.readable if column.type in (TIMESTAMP, DATE) and not column.name.startswith("_")][:1]
    chosen_columns = [*(table.sort_by or keys), *times] or [column.name for column in table.columns][:1]
    return list(dict.fromkeys(column.split()[0] for column in chosen_columns))


def _value(about: AccessSubject) -> str:
    """A placeholder, written as a value of the first column is."""
    (column,) = (column for column in about.pipeline.table.columns if column.name == _chosen(about)[0])
    return "<value>" if is_numeric(column.type) else "'<value>'"
