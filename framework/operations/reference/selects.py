"""The page on whole selects: their parts, the functions over many rows, and refused selects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from framework.base import type_text
from framework.operations.reference.options import table
from framework.sql.faults import ExpressionError
from framework.sql.query.functions import AGGREGATES, RANKED, Function
from framework.sql.query.whole import GivenColumn, whole

INTRODUCTION = """\
# Whole selects

The step `sql` of a pipeline that reads `tables` is one select over them, as Spark has it. Values and conditions are
[expressions](expressions.md); all names and types are checked before anything runs, and `sluice plan` shows the columns.

```yaml
pipeline: by_country
from: {tables: [shop.orders, shop.customers]}
steps:
  - sql: |
      select country, date_trunc('hour', at) as hour, count(*) as orders, sum(amount) as total
      from shop.orders join shop.customers using (customer)
      group by country, hour
into: {table: shop.by_country, write: replace}
```

- `with name as (select …)`, `select distinct`, `from` with tables, names and selects in parentheses, `where`, `group by` with expressions,
  numbers and names of columns, `having`, `union`, `union all`, `except`, `intersect`.
- `join`, `left join`, `right join`, `full join`, `cross join`, `left semi join` and `left anti join`, with `on` or `using`.
- Windows: `over (partition by … order by … rows between … and …)`, also `range` by a number or an interval. `group by
  session_window(at, interval 30 minutes)` and `window(at, interval 1 hour)` make groups by time, with the fields `start` and `end`:
  `session_window.start`, `window.end`.
- A column has its own name, with its table's in front where two have it: `orders.id`, `shop.orders.id`, or `o.id` behind
  `from shop.orders o`. What the select makes itself has its name only behind it: in `having`, `group by`, or around the select in
  parentheses.
- `*`, `o.*` and `* except (a)` leave out Kafka's columns, which can be named.
- Where an expression has no value for some row, such as a division by zero, nothing is published: write `try_divide` or `case`.

A run reads all tables as they are at its beginning, and puts what the select gives in the place of the rows that are there, in one
commit. If nothing has changed it does nothing. A select over one table can do with less: if it groups by columns of the table, or all its
windows are by them (`partition by`), and they are columns of the result, then a run reads and computes again only the groups in which
rows have changed. `sluice plan` says which columns these are. It does not do so where a row of the result can be a bad row: with
expectations that quarantine, or partitioned by a text by which the table that is read is not."""
AGGREGATED = "Over the rows of a group, or of a window. `filter (where …)` can follow, `distinct` can be inside."
ONLY_WINDOWS = "Over the rows of a window, with an order:"
REFUSED = (
    "select id from shop.orders order by id", "select id from shop.orders limit 10",
    "select id from shop.orders where customer in (select customer from shop.customers)",
    "select first(amount) as amount from shop.orders", "select customer, amount, count(*) as n from shop.orders group by customer",
    "select id from shop.orders, shop.customers", "select id from shop.orders natural join shop.customers",
    "select id from shop.orders group by rollup(id)", "select id from shop.orders qualify id = 1",
    "select row_number() over (partition by id) as n from shop.orders",
)  # fmt: skip
TABLES = {
    "shop.orders": {"id": "bigint", "customer": "string", "amount": "double", "at": "timestamp"},
    "shop.customers": {"customer": "string", "country": "string"},
}


def page() -> str:
    return "\n\n".join(
        [
            INTRODUCTION,
            f"## Functions over many rows\n\n{AGGREGATED}\n\n{table(('functions', 'take'), _functions(AGGREGATES))}",
            f"{ONLY_WINDOWS}\n\n{table(('functions', 'take'), _functions(RANKED))}",
            "Lists and texts of many values are sorted, so that they are the same each time.",
            f"## Refused\n\n{table(('what', 'why', 'instead'), map(_refusal, REFUSED))}\n",
        ]
    )


def _functions(functions: Mapping[str, Function]) -> Iterable[tuple[str, str]]:
    """The names of functions that take the same arguments, and these arguments."""
    by_arguments: dict[str, list[str]] = {}
    for name, function in functions.items():
        by_arguments.setdefault(_takes(function), []).append(name)
    return ((" ".join(f"`{name}`" for name in names), arguments) for arguments, names in by_arguments.items())


def _takes(function: Function) -> str:
    words = []
    for index, (_, argument_type) in enumerate(function.takes):
        literal = " that is written out" if index in function.literals else ""
        words.append(f"{argument_type}{literal}{' (or left out)' if index >= function.fewest else ''}")
    return ", ".join(words) or "nothing"


def _refusal(text: str) -> tuple[str, str, str]:
    table_columns = {
        name: [GivenColumn(column, type_text.parse(type_)) for column, type_ in columns.items()]
        for name, columns in TABLES.items()
    }
    try:
        whole(text, table_columns)
    except ExpressionError as error:
        return f"`{text}`", error.message, error.hint
    raise AssertionError(f"{text} is not refused")
