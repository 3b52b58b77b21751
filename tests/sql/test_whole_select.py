"""Whole selects over tables: they give the rows and types that Spark gives for the text itself, or are refused."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from framework.base import type_text, types
from framework.sql.faults import ExpressionError
from framework.sql.query.functions import AGGREGATES, RANKED
from framework.sql.query.whole import GivenColumn, Whole, whole
from framework.sql.quote import substituted
from tests.support.selection import few

ORDERS = {
    "id": "bigint", "customer": "string", "product": "int", "price": "decimal(10,2)", "quantity": "int", "weight": "double",
    "at": "timestamp", "paid": "boolean", "day": "date", "place": "struct<city:string,zip:int>", "tags": "array<string>",
    "small": "smallint", "ratio": "float",
}  # fmt: skip
CUSTOMERS = {"customer": "string", "country": "string", "since": "date"}
TABLES = {
    "shop.orders": [GivenColumn(name, type_text.parse(text)) for name, text in ORDERS.items()]
    + [GivenColumn("_kafka_offset", types.BIGINT, True)],
    "shop.customers": [GivenColumn(name, type_text.parse(text)) for name, text in CUSTOMERS.items()],
}
OVER = "over (partition by customer order by at, id)"
LIKE_SPARK = [
    "select customer, count(*) as n, sum(price * quantity) as total from shop.orders group by customer having count(*) > 2",
    "select country, date_trunc('day', at) as d, avg(price) as a from shop.orders join shop.customers using (customer) group by 1, d",
    "select o.id, c.country, c.since from shop.orders as o left join shop.customers c on o.customer = c.customer and o.paid",
    "select coalesce(o.customer, '-') as customer, c.country from shop.orders o right outer join shop.customers c using (customer)",
    "select customer, id, country from shop.orders full join shop.customers using (customer)",
    "select id from shop.orders o left semi join shop.customers c on c.customer = o.customer",
    "select id from shop.orders o left anti join (select customer from shop.customers where country = 'DE') c using (customer)",
    "select a.id, b.customer from shop.orders a cross join shop.customers b where a.id < 5",
    "with big as (select * from shop.orders where price > 5), n as (select customer, count(*) as n from big group by customer) "
    "select big.*, n.n from big join n on n.customer <=> big.customer",
    "select id from shop.orders where price > 5 union all select id + 1 from shop.orders union select cast(product as bigint) "
    "from shop.orders",
    "select customer from shop.orders except select customer from shop.customers",
    "select customer from shop.orders intersect select customer from shop.customers union all select country from shop.customers",
    "select distinct customer, paid from shop.orders",
    f"select id, row_number() {OVER} as n, lag(price) {OVER} as before, lead(quantity, 2, 0) {OVER} as later from shop.orders",
    "select id, avg(weight) over (partition by customer order by at range between interval 6 hours preceding and current row) as a, "
    "sum(quantity) over (partition by product order by at, id rows between 3 preceding and 1 following) as s from shop.orders",
    "select id, sum(quantity) over (order by day range between interval 2 days preceding and current row) as s from shop.orders",
    "select id, last_value(price) ignore nulls over (partition by customer order by at, id "
    "rows between unbounded preceding and 1 preceding) as p, ntile(4) over (order by id) as t, "
    "rank() over (order by product desc nulls last) as r from shop.orders",
    "select customer, sum(sum(price)) over (order by customer nulls first) as running, count(*) filter (where paid) as paid "
    "from shop.orders group by customer",
    "select count(*) as n, count(distinct customer, product) as pairs, count(price) as prices from shop.orders where paid is not null",
    "select customer, session_window(at, '2 hours').start as since, session_window(at, '2 hours').end as until, count(*) as n "
    "from shop.orders group by customer, session_window(at, '2 hours')",
    "select customer, window.start, window.end as till, count(*) as n from shop.orders "
    "group by customer, window(at, '2 hours', '1 hour') having window.start > timestamp '2026-01-01 03:00:00'",
    "select session_window.start as since, count(*) as n from shop.orders group by session_window(at, '2 hours')",
    "select customer, count(*) as orders, max(quantity) as m from shop.orders group by customer",
    "select window.start, transform(array_sort(collect_list(id)), window -> window) as s from shop.orders group by window(at, '1 hour')",
    "select w.start as hour, w.end as till, n from "
    "(select window(at, '1 hour') as w, count(*) as n from shop.orders group by window(at, '1 hour'))",
    "select place.city as city, size(tags) as tags, transform(tags, t -> concat(t, customer)) as named, max(place.zip) as zip "
    "from shop.orders group by place.city, tags, customer",
    "with seen as (select *, at > lag(at) over (partition by customer order by at, id) + interval 1 hour as is_new from shop.orders), "
    "numbered as (select *, count_if(is_new) over (partition by customer order by at, id) as session from seen) "
    "select customer, session, min(at) as since, max(at) as until, count(*) as clicks from numbered group by customer, session",
    "select id as customer, customer as id, case when id between 2 and 5 then 'few' end as x from shop.orders where customer in ('a', 'b')",
    "select * except (tags, place) from shop.orders where not paid",
    "select o.id, b.id as other from shop.orders o full join (select id, customer from shop.orders where paid) b using (id) "
    "full join (select product as id from shop.orders where id < 9) c using (id)",
    "select id, n.product from (select cast(product as bigint) as id, price from shop.orders) o "
    "full join (select product as id, product from shop.orders) n using (id)",
    "select id from (select customer, id from shop.orders) o right join (select customer, country from shop.customers) c using (customer) "
    "union all select id from shop.orders",
    "select customer, count(*) as n from shop.orders group by customer having n > 2 and max(price) > 1",
    "select 1 as one from shop.orders having count(*) > 1",
    "select customer as c from shop.customers union all select upper(customer) as c from shop.orders group by c",
    "select transform(tags, customer -> upper(customer)) as t from shop.orders group by tags, customer",
    "select customer, transform(array_sort(collect_set(id)), customer -> customer) as l from shop.orders group by customer",
    "select upper(customer) as customer, max_by(id, at) as newest, min_by(at, price) as cheap from shop.orders group by upper(customer)",
]  # fmt: skip
AGGREGATED = {
    "count": "count(weight)", "min_by": "min_by(id, at)", "max_by": "max_by(id, at)", "corr": "corr(weight, id)",
    "covar_pop": "covar_pop(weight, id)", "covar_samp": "covar_samp(weight, id)", "percentile": "percentile(quantity, 0.25)",
    "collect_set": "array_sort(collect_set(id))", "collect_list": "array_sort(collect_list(id))", "array_agg": "array_sort(array_agg(id))",
    "string_agg": "string_agg(customer, '-') within group (order by customer)",
    "listagg": "listagg(customer) within group (order by customer)",
    **{name: f"{name}(price > 5)" for name in ("bool_and", "every", "bool_or", "any", "some", "count_if")},
}  # fmt: skip
OURS = {"string_agg": "string_agg(customer, '-')", "listagg": "listagg(customer)"} | {
    name: f"{name}(id)" for name in ("collect_set", "collect_list", "array_agg")
}
NUMBERS = ("price", "quantity", "weight", "small", "ratio", "id")
WINDOWED = {
    "ntile": "ntile(3)", "nth_value": "nth_value(price, 2)", "lag": "lag(place, 1)", "lead": "lead(small, 1, cast(0 as smallint))",
    "first_value": "first_value(day)", "last_value": "last_value(tags)",
}  # fmt: skip


def _rows(seed: int, count: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    rows = []
    for id_ in range(count):
        row = {
            "id": id_, "customer": chance.choice(["a", "b", "c", None]), "product": chance.randrange(4),
            "price": chance.randrange(1000) / 100, "quantity": chance.randrange(5), "weight": chance.choice([0.5, 1.5, 2.25, None]),
            "at": f"2026-01-0{1 + id_ % 3} {chance.randrange(24):02}:{chance.randrange(60):02}:00",
            "paid": chance.choice([True, False, None]), "day": "2026-01-01", "place": {"city": chance.choice(["x", "y"]), "zip": id_ % 3},
            "tags": ["t", str(id_ % 2)],
            "small": id_ % 7, "ratio": id_ / 4, "_kafka_offset": id_,
        }  # fmt: skip
        rows.append({name: None if chance.random() < 0.05 and name not in ("id", "at") else value for name, value in row.items()})
    return rows


@pytest.fixture(scope="module")
def views(spark: Any) -> dict[str, str]:
    orders = {**ORDERS, "_kafka_offset": "bigint"}
    as_text = ("timestamp", "date", "decimal(10,2)")
    texts = {name: "string" if text in as_text else text for name, text in orders.items()}
    rows = [{**row, "price": None if row["price"] is None else str(row["price"])} for row in _rows(1, 60)]
    frame = spark.createDataFrame(rows, ", ".join(f"`{name}` {text}" for name, text in texts.items()))
    frame.selectExpr(*(f"CAST(`{name}` AS {text}) AS `{name}`" for name, text in orders.items())).createOrReplaceTempView(
        "whole_orders"
    )
    customers = [("a", "DE", "2025-01-01"), ("b", "FR", None), ("d", None, "2026-01-01")]
    frame = spark.createDataFrame(customers, "customer string, country string, since string")
    frame.selectExpr("customer", "country", "CAST(since AS date) AS since").createOrReplaceTempView("whole_customers")
    return {"shop.orders": "whole_orders", "shop.customers": "whole_customers"}


def _same(spark: Any, views: dict[str, str], text: str, of_spark: str = "") -> None:
    select = whole(text, TABLES)
    names = {f"_sluice_table_{index}": views[name] for index, name in enumerate(select.used)}
    ours = spark.sql(substituted(select.sql, names))
    of_spark = of_spark or text
    for name, view in views.items():
        of_spark = of_spark.replace(f"{name} ", f"{view} ").replace(f"{name})", f"{view})")
        of_spark = of_spark.removesuffix(name) + (view if of_spark.endswith(name) else "")
    theirs = spark.sql(of_spark)
    typed = [(field.name, str(field.type)) for field in select.fields]
    assert [(field.name, field.dataType.simpleString()) for field in ours.schema] == typed, text
    if "*" not in text.partition("from")[0].replace("count(*)", "").replace("price * quantity", ""):
        assert [(field.name.lower(), field.dataType.simpleString()) for field in theirs.schema] == [
            (n.lower(), t) for n, t in typed
        ], text
        assert Counter(map(repr, ours.collect())) == Counter(map(repr, theirs.collect())), text


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("text", few(LIKE_SPARK, *LIKE_SPARK[::5]), ids=range(len(LIKE_SPARK)))
def test_gives_what_spark_gives(spark: Any, views: dict[str, str], text: str) -> None:
    _same(spark, views, text)


@pytest.mark.spark
@pytest.mark.slow
def test_texts_of_no_values_are_null_as_in_spark(spark: Any, views: dict[str, str]) -> None:
    text = "select paid, {} as l from shop.orders where customer is null or customer = 'a' and paid group by paid"
    _same(spark, views, text.format("listagg(customer)"), text.format("listagg(customer) within group (order by customer)"))


@pytest.mark.spark
@pytest.mark.slow
def test_each_function_gives_what_spark_gives(spark: Any, views: dict[str, str]) -> None:
    items, of_spark = [], []
    for name in sorted(AGGREGATES):
        numbers = NUMBERS[3:4] if name == "approx_count_distinct" else NUMBERS
        calls = [AGGREGATED[name]] if name in AGGREGATED else [f"{name}({column})" for column in numbers]
        for index, call in enumerate(calls):
            items.append(f"{OURS.get(name, call)} as {name}_{index}")
            of_spark.append(f"{call} as {name}_{index}")
    select = "select customer, {} from shop.orders group by customer"
    _same(spark, views, select.format(", ".join(items)), select.format(", ".join(of_spark)))
    windowed = [
        f"{WINDOWED.get(name, f'{name}()')} over (partition by paid order by at, id) as {name}_0" for name in sorted(RANKED)
    ]
    windowed += [f"sum({column}) over (partition by paid order by at, id) as sum_{column}" for column in NUMBERS[:2]]
    _same(spark, views, f"select id, {', '.join(windowed)} from shop.orders")


REFUSED = {
    "select o.id from shop.orders o left semi join shop.customers c on c.customer = o.customer where c.country = 'x'": (
        "unknown-column", 98,
    ),
    "select c.* from shop.orders o left semi join shop.customers c on c.customer = o.customer": ("sql-star", 7),
    "select count(distinct *) as n from shop.orders": ("sql-star", 22),
    "select count() as n from shop.orders": ("sql-syntax", 13),
    "with x as (select customer from shop.customers) select id from shop.orders": ("sql-unused", 5),
    "with a as (select id as _sluice_w0 from shop.orders) select _sluice_w0 from a": ("reserved-name", 24),
    "with `shop.orders` as (select customer from shop.customers) select customer from shop.orders": ("sql-table", 5),
    "select id from shop.orders o join shop.customers c on c.country": ("not-a-condition", 56),
    "select sum(id) over (order by customer range between 5 preceding and current row) as s from shop.orders": ("sql-window", 53),
    "select sum(id) over (order by id range between interval 1 hour preceding and current row) as s from shop.orders": ("sql-window", 47),
    "select sum(id) over (order by id rows between 1 following and 1 preceding) as s from shop.orders": ("sql-window", 33),
    "select sum(id) over (order by id rows between 99999999999 preceding and current row) as s from shop.orders": ("sql-window", 46),
    "select ntile(0) over (order by id) as n from shop.orders": ("sql-type", 13),
    "select percentile(price, 2) as p from shop.orders": ("sql-type", 25),
    "select window(at, '-1 hour') as w, count(*) as n from shop.orders group by window(at, '-1 hour')": ("sql-type", 86),
    "select count(*) as n from shop.orders group by window(at, '1 hour', '2 hours')": ("sql-type", 68),
    "select count(*) as n from shop.orders group by window(at, '1 hour'), session_window(at, '1 hour')": ("sql-window", 69),
    "select limit from shop.orders": ("sql-syntax", 7),
    "select top 5 id from shop.orders": ("sql-clause", 7),
    "select sum(id) over (order by day range between interval 3 hours preceding and current row) as s from shop.orders": ("sql-window", 48),
    "select sum(id) over (order by small range between 99999 preceding and current row) as s from shop.orders": ("sql-window", 50),
    "select distinct on (id) id from shop.orders": ("sql-clause", 16),
    "select listagg(customer) within group (order by customer) as l from shop.orders": ("sql-clause", 25),
    "select id from shop.orders o asof join shop.customers c on true": ("sql-clause", 29),
    "select customer, count(*) as n from shop.orders group by customer grouping sets ((customer))": ("sql-clause", 66),
    "select id from shop.orders for system_time as of '2026-01-01'": ("sql-clause", 27),
    "select id from shop.orders intersect all select id from shop.orders": ("sql-clause", 27),
    "select prise from shop.orders": ("unknown-column", 7),
    "select o.prise from shop.orders o": ("unknown-column", 9),
    "select id from shop.order": ("unknown-table", 15),
    "select id from shop.orders, shop.customers": ("sql-join", 26),
    "select id from shop.orders join shop.customers": ("sql-join", 32),
    "select id from shop.orders cross join shop.customers on true": ("sql-join", 38),
    "select customer from shop.orders o join shop.customers c on o.customer = c.customer": ("sql-ambiguous", 7),
    "select * from shop.orders o join shop.customers c on o.customer = c.customer": ("duplicate-column", 7),
    "select a.id from shop.orders a join shop.orders a on true": ("sql-table", 36),
    "select customer, price, count(*) as n from shop.orders group by customer": ("sql-not-grouped", 17),
    "select price from shop.orders having price > 1": ("sql-clause", 43),
    "select count(*) from shop.orders": ("sql-no-name", 7),
    "select sum(customer) as s from shop.orders": ("sql-type", 11),
    "select sum(sum(price)) as s from shop.orders": ("sql-aggregate", 11),
    "select id from shop.orders where count(*) > 1": ("sql-aggregate", 33),
    "select id from shop.orders where row_number() over (order by id) = 1": ("sql-aggregate", 33),
    "select first(price) as p from shop.orders": ("sql-not-allowed", 7),
    "select row_number() over (partition by id) as n from shop.orders": ("sql-window", 7),
    "select lag(price) as p from shop.orders": ("sql-window", 7),
    "select sum(price) over (order by id rows between id preceding and current row) as s from shop.orders": ("sql-window", 49),
    "select sum(price) over (order by id, at range 5 preceding) as s from shop.orders": ("sql-window", 40),
    "select lag(price, id) over (order by id) as p from shop.orders": ("sql-type", 18),
    "select session_window(at, interval 1 hour) as w from shop.orders": ("sql-window", 7),
    "select id from shop.orders where customer in (select customer from shop.customers)": ("sql-subquery", 46),
    "select (select max(id) from shop.orders) as m from shop.orders": ("sql-subquery", 8),
    "select id from shop.orders order by id": ("sql-clause", 27),
    "select id from shop.orders limit 5": ("sql-clause", 27),
    "select id from shop.orders union all select customer from shop.orders": ("sql-type", 27),
    "select id, at from shop.orders union all select id from shop.orders": ("sql-type", 31),
    "select id from shop.orders group by rollup(id)": ("sql-clause", 36),
    "select id from shop.orders qualify row_number() over (order by id) = 1": ("sql-clause", 27),
    "select id from shop.orders natural join shop.customers": ("sql-clause", 27),
    "select rand() as r from shop.orders": ("sql-not-deterministic", 7),
    "select current_timestamp() as now from shop.orders": ("sql-not-deterministic", 7),
    "select 1 as a": ("sql-table", 13),
    "select from shop.orders": ("sql-syntax", 7),
    "delete from shop.orders": ("sql-not-a-select", 0),
    "select id from shop.orders; select 1 as a from shop.orders": ("sql-syntax", 28),
    "with a as (select id from shop.orders), a as (select id from shop.orders) select id from a": ("duplicate-name", 40),
    "with recursive a as (select id from shop.orders) select id from a": ("sql-clause", 5),
    "select max(distinct id) as m from shop.orders": ("sql-aggregate", 7),
    "select id from shop.orders where id": ("not-a-condition", 33),
    "select id from shop.orders group by 2": ("unknown-column", 36),
    "select null as a from shop.orders": ("sql-type", 7),
    "select max(at) - min(at) as d from shop.orders": ("sql-type", 15),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_a_wrong_select_is_refused_at_its_place(text: str) -> None:
    with pytest.raises(ExpressionError) as error:
        whole(text, TABLES)

    assert (error.value.code, error.value.offset) == REFUSED[text], error.value.faults
    assert error.value.hint


WHOLE_NAMES = (
    "select shop.orders.ID, shop.orders.place.city from shop.orders join shop.customers on shop.orders.day = shop.customers.since",
    "select shop.orders.* except (at) from shop.orders where shop.orders.paid",
    "select shop.orders.customer, count(*) as orders, max(shop.orders.quantity) as shop from shop.orders group by shop.orders.customer",
    "select o.n from (select count(*) as n from shop.orders having max(shop.orders.id) > 1) o",
)


@pytest.mark.parametrize("text", WHOLE_NAMES)
def test_a_column_by_the_whole_name_of_its_table(text: str) -> None:
    short = text.replace("shop.orders.", "orders.").replace("shop.customers.", "customers.")
    assert whole(text, TABLES) == whole(short, TABLES)


def test_a_select_that_grows_without_end_is_refused() -> None:
    names = ", ".join(
        f"a{level} as (select id from a{level - 1} union all select id from a{level - 1})" for level in range(1, 40)
    )

    with pytest.raises(ExpressionError, match="too large"):
        whole(f"with a0 as (select id from shop.orders), {names} select id from a39", TABLES)


def test_all_faults_at_once() -> None:
    with pytest.raises(ExpressionError) as error:
        whole("select prise, sum(customer) as s, upper(id, 2) as u from shop.orders group by prise, cities", TABLES)

    assert [fault.code for fault in error.value.faults] == ["unknown-column", "unknown-column"]


APART_COLUMNS = {
    "select customer, count(*) as n from shop.orders group by customer": {"customer": "customer"},
    "select customer as c, day, count(*) as n from shop.orders group by day, customer": {"customer": "c", "day": "day"},
    "select upper(customer) as c, count(*) as n from shop.orders group by upper(customer)": {},
    "select count(*) as n from shop.orders": {},
    "select count(*) as n from shop.orders group by customer": {},
    "select id, customer, sum(price) over (partition by customer order by id) as s from shop.orders": {"customer": "customer"},
    "select id, customer, sum(price) over (order by id) as s from shop.orders": {},
    "with n as (select customer, day, count(*) as n from shop.orders group by customer, day) "
    "select customer, max(n) as most from n group by customer": {"customer": "customer"},
    "with n as (select customer, count(*) as n from shop.orders group by customer) "
    "select o.customer, o.id, n.n from shop.orders o join n on n.customer = o.customer": {},
    "select customer, id from shop.orders union all select customer, id + 1 from shop.orders": {"customer": "customer"},
    "select customer, country from shop.customers union all select customer, 'x' from shop.orders": {},
    "select o.customer, c.country, count(*) as n from shop.orders o join shop.customers c using (customer) group by 1, 2": {},
    "select distinct customer, paid from shop.orders": {"customer": "customer", "paid": "paid"},
}  # fmt: skip


@pytest.mark.parametrize("text", APART_COLUMNS, ids=range(len(APART_COLUMNS)))
def test_what_can_be_computed_apart(text: str) -> None:
    assert dict(_whole(text).apart) == APART_COLUMNS[text]


def test_origins_pass_through_every_part() -> None:
    select = _whole(
        "with n as (select customer, sum(price * quantity) as total from shop.orders group by customer) "
        "select country, max(total) as most, count(*) as n from n join shop.customers c using (customer) group by country"
    )

    assert {field.name: sorted(field.origins) for field in select.fields} == {
        "country": ["shop.customers.country"], "most": ["shop.orders.price", "shop.orders.quantity"], "n": [],
    }  # fmt: skip


def _whole(text: str) -> Whole:
    return whole(text, TABLES)
