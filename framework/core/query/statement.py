"""One select of DuckDB's SQL, and the tables that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb

from framework.base.errors import SluiceError
from framework.core.query.database import CLOSED
from framework.core.query.errors import duckdb_errors

_ROWS = ("generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest")
"""Table functions that make rows of their arguments alone. Others read files, settings or another text of SQL."""


def single_select(text: str) -> str:
    """The text, if it is one select."""
    with duckdb_errors(first_line=1):
        statements = duckdb.extract_statements(text)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        hint = "write one SELECT; `describe NAME` and `summarize NAME` are fine too"
        if len(statements) == 2 and not statements[0].query:
            hint = "say which values become columns: `pivot … on side in ('BUY', 'SELL') using sum(quantity)`"
        raise SluiceError("not-a-select", "a query is one SELECT that changes nothing", hint)
    return str(statements[0].query.strip().rstrip(";"))


def table_names(select: str) -> Iterator[tuple[str, ...]]:
    """The tables that a select names, in parts, by DuckDB's parser: `get_table_names` also binds columns, which do not exist yet."""
    with duckdb_errors(), duckdb.connect(config=CLOSED) as bare:
        parsed_select = json.loads(bare.execute("SELECT json_serialize_sql(?)", [select]).fetchone()[0])  # type: ignore[index]
    if parsed_select["error"]:
        raise SluiceError("bad-query", f"{parsed_select['error_type']}: {parsed_select['error_message']}")
    nodes = list(_nodes(parsed_select["statements"]))
    cte_names = {entry["key"].lower() for node in nodes for entry in node.get("cte_map", {}).get("map", ())}
    for node in nodes:
        if node.get("type") == "TABLE_FUNCTION" and (name := node["function"].get("function_name", "")).lower() not in _ROWS:
            hint = f"a query reads tables by name; functions that return rows are {', '.join(_ROWS)}"
            raise SluiceError("unknown-table", f"there is no table `{name}(…)`", hint)
        if node.get("type") == "BASE_TABLE":
            parts = tuple(part for part in (node["catalog_name"], node["schema_name"], node["table_name"]) if part)
            # A name with a dot or a slash could be a file, outside the part of the select that its `with` covers.
            if len(parts) > 1 or parts[0].lower() not in cte_names or not parts[0].isidentifier():
                yield parts


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for inner in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(inner)
