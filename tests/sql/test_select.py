"""The select of the step `sql`: its meaning, and the code, place and hint of each refusal. test_expressions_spark.py asks
Spark itself."""

from __future__ import annotations

import random

import pytest

from framework.base.type_text import parse
from framework.base.types import VOID
from framework.sql.expressions import ExpressionError, ExpressionFault, check
from framework.sql.select import Selected, select

COLUMNS = {
    name: parse(text)
    for name, text in {
        "price": "double",
        "quantity": "int",
        "Symbol": "string",
        "tags": "array<string>",
        "location": "struct<building string, Floor int, `room no` struct<n: int>>",
        "paid": "boolean",
        "_kafka_offset": "bigint",
    }.items()
}
OWN_COLUMNS = [name for name in COLUMNS if not name.startswith("_")]


def chosen(text: str) -> Selected:
    return select(text, COLUMNS, OWN_COLUMNS)


def faults(text: str) -> tuple[ExpressionFault, ...]:
    with pytest.raises(ExpressionError) as caught:
        chosen(text)
    return caught.value.faults


def test_items_have_names_types_and_a_safe_form() -> None:
    result = chosen("select price, upper(symbol) as name, quantity * 2 twice from input where price > 0")
    assert [(item.name, str(item.value.type), item.text) for item in result.items] == [
        ("price", "double", "price"),
        ("name", "string", "upper(symbol)"),
        ("twice", "int", "quantity * 2"),
    ]
    assert [item.value for item in result.items[1:]] == [check("upper(symbol)", COLUMNS), check("quantity * 2", COLUMNS)]
    assert result.where == check("price > 0", COLUMNS)
    assert result.where_text == "price > 0"


def test_columns_and_fields_keep_their_declared_names() -> None:
    names = {
        "PRICE": "price",
        "`symbol`": "Symbol",
        "location.FLOOR": "Floor",
        "location.`Room No`": "room no",
        "location.`room no`.n": "n",
        "(price)": "price",
        "price as PRICE": "PRICE",
        "price as `select`": "select",
        "price `two words`": "two words",
        "price input": "input",
    }
    for text, name in names.items():
        assert [item.name for item in chosen(f"select {text} from input").items] == [name], text


def test_a_star_stands_for_all_columns_except_those_left_out() -> None:
    assert [item.name for item in chosen("select * from input").items] == OWN_COLUMNS
    assert [item.name for item in select("select * from input", COLUMNS).items] == list(COLUMNS)
    result = chosen("select * except (PRICE, `tags`), _kafka_offset as at_offset from input")
    assert [item.name for item in result.items] == ["quantity", "Symbol", "location", "paid", "at_offset"]
    assert [item.value.sql for item in result.items] == ["`quantity`", "`Symbol`", "`location`", "`paid`", "`_kafka_offset`"]
    assert result.where is None


def test_words_are_read_in_any_case_and_on_any_line() -> None:
    short = chosen("select price as p, upper(symbol) as s from input where paid")
    long = chosen("\n  SELECT\n    price AS p,\n\tupper( symbol )\r\n AS s\nFROM `Input`\nWHERE\n  paid\n;\n")
    assert [item.value for item in short.items] == [item.value for item in long.items]
    assert short.where == long.where
    assert long.items[1].text == "upper( symbol )"


def test_the_place_is_right_on_every_line() -> None:
    text = "select\n  prce,\n  upper(symbl) as s,\n  count(*) as n\nfrom input\nwhere\n  quantity\norder by 1\n"
    problems = faults(text)
    assert [(text[fault.offset :].split()[0], fault.code) for fault in problems] == [
        ("prce,", "unknown-column"),
        ("symbl)", "unknown-column"),
        ("count(*)", "sql-aggregate"),
        ("quantity", "not-a-condition"),
        ("order", "sql-clause"),
    ]


REFUSED = [
    ("^", "sql-not-a-select", "select …"),
    ("^price * 2", "sql-not-a-select", "select …"),
    ("^insert into t select 1", "sql-not-a-select", "select …"),
    ("^values (1)", "sql-not-a-select", "select …"),
    ("^execute immediate 'select 1'", "sql-not-a-select", "select …"),
    ("^from input select price", "sql-not-a-select", "select …"),
    ("^(select price from input)", "sql-not-a-select", "select …"),
    ("^with a as (select 1) select * from a", "sql-clause", "several steps"),
    ("select^", "sql-syntax", "select …"),
    ("select ^from input", "sql-syntax", "select …"),
    ("select price, ^from input", "sql-syntax", "select …"),
    ("select price^", "sql-table", "from input"),
    ("select price ^where paid", "sql-table", "from input"),
    ("select price quantity ^paid from input", "sql-table", "from input"),
    ("select price ^'p' from input", "sql-syntax", ""),
    ("select price as ^'p' from input", "sql-syntax", "backquotes"),
    ("select price as ^where from input", "sql-syntax", "backquotes"),
    ("select price as ^from input", "sql-syntax", "backquotes"),
    ("select ^upper(symbol) from input", "sql-no-name", "upper(symbol) as name"),
    ("select ^tags[0] from input", "sql-no-name", "tags[0] as name"),
    ("select ^1 from input", "sql-no-name", "1 as name"),
    ("select price, quantity as ^PRICE from input", "duplicate-column", "other_name"),
    ("select *, upper(symbol) as ^symbol from input", "duplicate-column", "except"),
    ("select * except (^prise) from input", "unknown-column", "`price`"),
    ("select * except (^_kafka_offset) from input", "unknown-column", "columns here"),
    ("select * except ^price from input", "sql-syntax", "* except (a, b)"),
    ("select * except (location^.floor) from input", "sql-syntax", ""),
    ("select * except (^) from input", "sql-syntax", ""),
    ("select * ^replace (1 as price) from input", "sql-star", "except"),
    ("select location.^* from input", "sql-star", "flatten"),
    ("select ^prce as p from input", "unknown-column", "`price`"),
    ("select ^input.price from input", "sql-table", "write `price`"),
    ("select price from input where ^input.paid", "sql-table", "write `paid`"),
    ("select price from input ^i", "sql-table", "delete it"),
    ("select price from input ^as i", "sql-table", "delete it"),
    ("select price from ^orders", "sql-table", "from input"),
    ("select price from ^shop.input", "sql-table", "from input"),
    ("select price from ^'input'", "sql-table", "from input"),
    ("select price from ^(select * from input)", "sql-subquery", "join"),
    ("select (^select max(price) from input) as p from input", "sql-subquery", "join"),
    ("select price from input where ^exists (select 1 from x)", "sql-subquery", "join"),
    ("select price from input where quantity in (^select 1 from x)", "sql-subquery", "join"),
    ("select price from input where ^quantity", "not-a-condition", "compare"),
    ("select price from input where^", "sql-syntax", ""),
    ("select ^distinct price from input", "sql-clause", "aggregate"),
    ("select price from input ^group by price", "sql-clause", "aggregate"),
    ("select price from input ^having paid", "sql-clause", "aggregate"),
    ("select price from input ^order by price", "sql-clause", "sort_by"),
    ("select price from input where paid ^limit 5", "sql-clause", "WHERE"),
    ("select price from input ^offset 5", "sql-clause", "WHERE"),
    ("select price from input ^tablesample (5 rows)", "sql-clause", "WHERE"),
    ("select price from input ^pivot (max(price) for symbol in ('a'))", "sql-clause", "explode"),
    ("select price from input ^natural join orders", "sql-clause", ""),
    ("select price from input ^left outer join orders on paid", "sql-clause", ""),
    ("select price from input^, orders", "sql-clause", ""),
    ("select price from input ^union all select price from input", "sql-clause", "several steps"),
    ("select price from input ^except select price from input", "sql-clause", "several steps"),
    ("select price from input ^intersect select price from input", "sql-clause", "several steps"),
    ("select price from input ^lateral view explode(tags) t as tag", "sql-clause", "explode"),
    ("select ^explode(tags) as tag from input", "sql-not-allowed", "explode"),
    ("select ^sum(price) as s from input", "sql-aggregate", "aggregate"),
    ("select ^rank() over (order by price) as r from input", "sql-window", ""),
    ("select abs(price) ^over (order by price) as r from input", "sql-window", ""),
    ("select price from input ^window w as (order by price)", "sql-clause", ""),
    ("select price from input; ^select price from input", "sql-several-statements", "one select"),
    ("select price from input;^;", "sql-several-statements", ""),
    ("select price ^-- all\nfrom input", "sql-comment", "YAML"),
    ("select ^/*+ broadcast(input) */ price from input", "sql-comment", "YAML"),
    ("select price from input where paid^)", "sql-syntax", "select …"),
    ("select price from input ^|> where paid", "sql-syntax", "select …"),
    ("select ^rand() as r from input", "sql-not-deterministic", "_kafka_timestamp"),
]


@pytest.mark.parametrize(("marked", "code", "hint"), REFUSED, ids=[marked for marked, *_ in REFUSED])
def test_other_clauses_of_sql_are_refused_once_by_name(marked: str, code: str, hint: str) -> None:
    """Each clause is refused at the place that `^` marks."""
    (fault,) = faults(marked.replace("^", ""))
    assert (fault.offset, fault.code) == (marked.index("^"), code)
    assert hint in fault.hint
    assert fault.message


def test_all_errors_are_reported_at_once() -> None:
    text = "select prce, f(a, b(, count(*) as n, quantity + symbol as s from orders o where o.paid group by 1 having paid limit 2"
    assert [(text[fault.offset :].split()[0], fault.code) for fault in faults(text)][:2] == [
        ("prce,", "unknown-column"),
        (",", "sql-syntax"),
    ]
    text = text.replace("f(a, b(", "f(a)")
    assert [(text[fault.offset :].split()[0], fault.code) for fault in faults(text)] == [
        ("prce,", "unknown-column"),
        ("f(a),", "sql-not-allowed"),
        ("a),", "unknown-column"),
        ("count(*)", "sql-aggregate"),
        ("symbol", "sql-type"),
        ("orders", "sql-table"),
        ("o", "sql-table"),
        ("o.paid", "sql-table"),
        ("group", "sql-clause"),
        ("having", "sql-clause"),
        ("limit", "sql-clause"),
    ]


def test_from_inside_an_item_does_not_end_it() -> None:
    assert chosen("select price is distinct from quantity as d from input").items[0].name == "d"
    problems = faults("select prce is distinct from as d, prise as p from input")
    assert [fault.code for fault in problems] == ["sql-alias", "unknown-column"]


def test_uses_of_an_invalid_column_are_not_reported() -> None:
    columns = COLUMNS | {"odd": VOID}
    result = select("select odd, odd + 1 as more, odd.x, price from input where odd > 0", columns)
    assert [(item.name, str(item.value.type)) for item in result.items] == [
        ("odd", "void"),
        ("more", "void"),
        ("x", "void"),
        ("price", "double"),
    ]


def test_a_star_without_any_column_left_is_refused() -> None:
    assert [fault.message for fault in faults(f"select * except ({', '.join(OWN_COLUMNS)}) from input")] == ["no column is left"]


@pytest.mark.slow
def test_any_text_is_accepted_or_refused_at_a_place_inside_it() -> None:
    draw = random.Random(13)
    words = (
        "select select price quantity Symbol location . , , * ( ) except from from input input where as a b paid and is distinct "
        "not null 1 'x' ; group by order limit join on union [ ] upper ( case when then end `q` ~ =>"
    )
    accepted = 0
    for _ in range(6000):
        text = "select " * draw.randint(0, 1) + " ".join(draw.choices(words.split(), k=draw.randint(1, 9)))
        text += draw.choice(["", " from input", " from input where paid"])
        problems = tried(text)
        accepted += not problems
        assert all(0 <= fault.offset <= len(text) and fault.message for fault in problems), text
    assert accepted > 30


def tried(text: str) -> tuple[ExpressionFault, ...]:
    try:
        result = chosen(text)
    except ExpressionError as error:
        return error.faults or (ExpressionFault(-1, "", ""),)
    assert result.items, text
    return ()
