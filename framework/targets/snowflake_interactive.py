"""A copy of the table in Snowflake that answers within a second: an interactive table and its warehouse."""

from __future__ import annotations

from collections.abc import Iterator

from framework.access.about import About, name
from framework.access.snowflake import READER, WAREHOUSE
from framework.access.steps import SNOWFLAKE, Step, Warned, check, create, query, shared
from framework.types import DATE, TIMESTAMP

OF = "table"
_INTERACTIVE = "sluice_interactive"
_LAG = "1 minute"


def steps(about: About) -> Iterator[Step | Warned]:
    place = about.place("Snowflake", "rest", "glue")
    database = name("sluice", place.catalog.name)
    source = f"{database}.{name(place.namespace)}.{name(place.table)}"
    live = f"{source}_live"
    columns = _clustered(about)
    yield Warned(f"it copies the Iceberg table that `sluice access snowflake {about.pipeline.name}` creates: run that first")
    yield Warned(f"{_INTERACTIVE} costs while it runs, which is at least a day at a time: `--part cleanup` says what ends it")
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
        SNOWFLAKE,
        "Give it the copy, and start it: from here on it costs.",
        f"ALTER WAREHOUSE {_INTERACTIVE} ADD TABLES ({live});\nALTER WAREHOUSE {_INTERACTIVE} RESUME IF SUSPENDED;",
    )
    yield create(
        SNOWFLAKE, "Who may ask.",
        f"GRANT USAGE ON WAREHOUSE {_INTERACTIVE} TO ROLE {READER};\nGRANT SELECT ON TABLE {live} TO ROLE {READER};",
    )  # fmt: skip
    yield check(SNOWFLAKE, "Whether it runs, and what it has.", f"SHOW WAREHOUSES LIKE '{_INTERACTIVE}';")
    yield check(SNOWFLAKE, "How far behind the copy is.", f"SHOW TABLES LIKE '{name(place.table)}_live' IN DATABASE {database};")
    yield query(
        SNOWFLAKE,
        "Rows of one value.",
        f"USE WAREHOUSE {_INTERACTIVE};\nSELECT * FROM {live} WHERE {columns[0]} = '<value>' LIMIT 100;",
    )


def _clustered(about: About) -> list[str]:
    """What queries choose rows by: the keys or the order of the table, and its time; else its first column."""
    table = about.pipeline.table
    keys = list(table.keyed.keys) if table.keyed else []
    times = [each.name for each in table.columns if each.type in (TIMESTAMP, DATE) and not each.name.startswith("_")][:1]
    chosen = [*(table.sort_by or keys), *times] or [each.name for each in table.columns][:1]
    return list(dict.fromkeys(each.split()[0] for each in chosen))
