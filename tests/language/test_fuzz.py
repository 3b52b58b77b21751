"""Any spec is planned or refused: never another exception, never a problem without a place, the same problems each time.

Three kinds of input: shipped specs with mistakes typed into them, documents made of the options with wrong values
everywhere, and expressions and types of random words. The inputs are the same at each run; `FUZZ_SEED=7 FUZZ_EXAMPLES=20000`
in the environment makes others.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from framework.base.errors import Problem
from framework.base.type_text import TypeTextError, parse
from framework.host.plans import draft, load
from framework.language.kind import document_types
from framework.language.shapes import (
    BoundClass,
    EnumShape,
    FilesShape,
    ListShape,
    MapShape,
    RecordShape,
    ScalarShape,
    Shape,
    UnionShape,
    record_shape,
)
from framework.plan.text import plan_text
from framework.sql.expressions import ExpressionError, check

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SEED = os.environ.get("FUZZ_SEED")
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
Draw = Callable[[st.SearchStrategy[Any]], Any]

# What is judged


def judge(folder: Path, text: str) -> None:
    (folder / "specs").mkdir(exist_ok=True)
    file = folder / "specs" / "a.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
    plan, problems = draft(folder / "specs")
    for problem in problems:
        judge_problem(problem, str(file), lines)
    assert draft(folder / "specs")[1] == problems, "other problems the second time"
    if not problems:
        plan_text(plan).encode()
    written = load(folder / "specs")
    values = [document.value for document in written.documents]
    assert problems or all(value is not None and not value.gaps for value in values), "refused in silence"


def judge_problem(problem: Problem, file: str, lines: list[str]) -> None:
    where = problem.where
    assert where.file in (file, str(Path(file).parent)), problem
    assert where.file != file or 1 <= where.line <= len(lines), f"line {where.line} of {len(lines)}: {problem}"
    assert where.file != file or 1 <= where.column <= len(lines[where.line - 1]) + 1, problem
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", problem.code), problem
    assert problem.message, problem
    assert problem.hint, problem
    assert len(str(problem)) < 10_000, problem.code
    assert str(problem).encode().count(b"\n") == 1, "more than a line and its hint"


def run(strategy: st.SearchStrategy[str], examples: int, body: Callable[[str], None]) -> None:
    limits = settings(
        max_examples=EXAMPLES or examples,
        derandomize=SEED is None,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    judged = limits(given(strategy)(body))
    (seed(int(SEED))(judged) if SEED is not None else judged)()


# Mistakes typed into specs

PIECES = [
    *"[]{},:'\"-#&*!|>%@`~?\\$ \n\t", "\r", "\r\n", "---\n", "...\n", "- ", "? ", ": ", "<<: *a", "&a ", "*a", "!!str ", "!x",
    "%YAML 1.1\n",
    "null", "~", "true", "no", "012", "0x1F", "1_000", "12:30:45", "1.10", "1e400", "-0", "9" * 30, "9" * 5000, "2026-02-30",
    "${var:X}", "${var:X:-y}", "${var:", "${secret:s}", "${", "}", "x" * 300, "ä", "日本", "😀", "\u00a0", "\u200b", "\u202e", "\ufeff",
    "\x85", "\u2028", "\x00", "\x1b", "\x7f", "\ud800", "\uffff", "\U0010ffff", '"\\u0000"', '"\\e[31m"', '"a\\nb"', '"\\ud800"',
    "|\n  x", ">\n  x",
    "topic", "pipeline", "table", "filter", "derive", "select", "from", "into", "value", "columns", "steps", "x: ", "a > 0", "f(a, b)",
]  # fmt: skip


def texts() -> list[str]:
    """The shipped specs, and one that says everything."""
    shipped = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "specs").rglob("*.yaml"))]
    return ["---\n".join(shipped), EVERYTHING, EVERYTHING]


@st.composite
def mistyped(draw: Draw) -> str:
    text: str = draw(st.sampled_from(texts()))
    for _ in range(draw(st.integers(1, 6))):
        text = mistake(draw, text)
    return text


def mistake(draw: Draw, text: str) -> str:
    by_line = draw(st.booleans())
    parts = text.splitlines(keepends=True) if by_line else re.findall(r"\w+|[^\w\n]|\n", text)
    if not parts:
        return str(draw(st.sampled_from(PIECES)))
    index = draw(st.integers(0, len(parts) - 1))
    other_index = draw(st.integers(0, len(parts) - 1))
    kind = draw(st.sampled_from(["delete", "repeat", "swap", "insert", "replace", "indent", "copy", "copy", "copy", "cut"]))
    if kind == "delete":
        del parts[index : index + draw(st.integers(1, 5))]
    elif kind == "repeat":
        parts.insert(index, parts[index])
    elif kind == "swap":
        parts[index], parts[other_index] = parts[other_index], parts[index]
    elif kind == "insert":
        parts.insert(index, draw(st.sampled_from(PIECES)))
    elif kind == "replace":
        parts[index] = draw(st.sampled_from(PIECES))
    elif kind == "indent":
        parts[index] = " " * draw(st.integers(0, 8)) + parts[index].lstrip(" ")
    elif kind == "copy":
        parts[index] = parts[other_index]
    else:
        parts[index] = parts[index][: draw(st.integers(0, len(parts[index])))]
    return "".join(parts)


EVERYTHING = """\
cluster: main
bootstrap: ${var:KAFKA:-127.0.0.1:19092}
security: {protocol: SASL_SSL, mechanism: PLAIN, username: "${secret:kafka_key}", password: "${secret:kafka_secret}"}
---
catalog: lake
type: sql
uri: sqlite:///.sluice/lake.db
warehouse: .sluice/warehouse
---
secrets: main
store: file
path: .sluice/secrets
---
variables: main
values: {LARGE: 4000, ALSO: "${var:LARGE}"}
---
topic: a
value: json
key: {format: string, as: k}
headers: {source: string}
columns:
  a: &t int
  b: {type: string, doc: B, required: true}
  at: {type: timestamp, format: epoch_millis}
  s: struct<x int, y array<string>>
  m: "map<string,decimal(18,2)>"
  l: array<int>
unknown_fields: bad
event_time: at
start_from: 2026-01-05T10:00:00+02:00
generate: {rate: 1/s, columns: {a: {between: [1, 9]}, b: {pattern: "[a-z]{3}"}, s.x: {one_of: [1, 2]}, at: {now: true}}}
---
pipeline: p
doc: Everything.
owner: team:markets
tags: {tier: gold}
from: {topic: a}
steps:
  - select: [a, b, at, s, s.x, l]
  - filter: a > ${var:LARGE} and b like 'x%'
  - derive: {twice: a * 2, day: "date_trunc('day', at)"}
  - cast: {twice: "decimal(18,2)"}
  - rename: {b: name}
  - flag: {into: f, rules: [{when: a > 5, label: HIGH}, {when: name is null, label: NONE}], otherwise: LOW}
  - flatten: [s]
  - explode: {column: l, into: item}
  - drop: [day]
into:
  table: markets.everything
  partition_by: [day(at), "bucket(16, name)"]
  sort_by: [a, at]
  kafka_columns: true
  format_version: 2
batch: {rows: 5000}
run: {every: 1m}
bad_rows: quarantine
fresh_within: 15m
warn_after: 10m
"""

# Documents made of the options

BASE = """\
cluster: main
bootstrap: a:1
---
catalog: lake
type: sql
uri: sqlite:///l.db
warehouse: w
---
topic: t
value: json
key: {as: k}
columns: {a: int, b: string, at: timestamp, s: "struct<x int, y array<string>>", l: array<int>, m: "map<string,int>", d: "decimal(9,2)"}
---
"""
NAMES = [
    *["a", "b", "at", "s", "l", "m", "d", "k"] * 4,
    "value", "A", "_kafka_offset", "_sluice_x", "a.b", "s.x", "x y", "a\\", "", "é", "n1", "n2",
]  # fmt: skip
SPECIFIC = {
    "a table's name": [*["m.a", "m.b", "m.c", "m.d"] * 4, "m.a__bad_rows", "a", "a.b.c"],
    "a column's name": NAMES,
    "the name of a column or a field": NAMES,
    "a type": [
        "int", "string", "timestamp", "array<int>", "struct<x int, y string>", "map<string,int>", "decimal(18,2)", "decimal(99,2)",
        "strin", "array<", "struct<a int, A int>", "date", "binary", "void",
    ],
    "an SQL expression": ["a > 0", "b = 'x'", "at", "s.x + 1", "l[0] = 1", "a", "nope", "day(at)", "null", "a +", "1 / 0 > 0"],
    "a path or an address": [".sluice/x", "sqlite:///x.db", "../x", "/etc/x", "s3://b/w", "sqlite:////etc/x", "file:///x", "x"],
}  # fmt: skip
WRONG = [
    "", "null", "~", "x", "true", "yes", "0", "-1", "1.5", "1e9", "012", '"6"', "[]", "{}", "[x]", "{x: y}", "[[]]", "[{}]",
    "[~]", "{a: ~}", '"a\\nb"', '"\\0"', "${var:NO}", "${var:NO:-1}", '"${secret:s}"',
    '"x ${secret:s}"', "9" * 40, "x" * 300, "AKIAABCDEFGHIJKLMNOP",
    "a://u:p@h", "2026-02-30", "12:30:45", "1d", "0s", "99w", "1KB", "'it''s'", '"\\u202e"', "*q", "&q x", "!t x", "? x", "|\n x",
]  # fmt: skip


REFERRING = {"topic": ["t"] * 8 + ["n0", "n1", "A"], "catalog": ["lake"] * 8 + ["n0", "A"]}


@st.composite
def of_options(draw: Draw) -> str:
    """Draws documents: some are full of mistakes, others have few, so that they get as far as the plan."""
    kinds = draw(st.lists(st.sampled_from(["pipeline"] * 12 + ["topic"] * 4 + sorted(document_types())), min_size=1, max_size=3))
    maker = Made(draw, draw(st.sampled_from([6, 60, 600])))
    documents = []
    for number, kind in enumerate(kinds):
        cls: BoundClass = document_types()[kind]
        options = dict(maker.record(record_shape(cls)))
        if maker.rarely() or kind not in options:
            documents.append(options)
        else:
            documents.append({**options, kind: f"n{number}"})
    return BASE + "---\n".join("".join(f"{key}: {value}\n" for key, value in document.items()) for document in documents)


@dataclass
class Made:
    """Values for options; one in `right` is wrong."""

    draw: Draw
    right: int

    def rarely(self) -> bool:
        return bool(self.draw(st.integers(0, self.right)) == self.right // 2)

    def record(self, shape: RecordShape) -> list[tuple[str, str]]:
        required = [(name, slot) for name, slot in shape.slots.items() if slot.required or name == shape.name]
        optional = [(name, slot) for name, slot in shape.slots.items() if (name, slot) not in required]
        if shape.cls.exactly_one:
            chosen = [self.draw(st.sampled_from([entry for entry in optional if entry[0] not in shape.cls.besides]))]
            chosen += [entry for entry in optional if entry[0] in shape.cls.besides and self.draw(st.booleans())]
        else:
            chosen = (
                self.draw(st.lists(st.sampled_from(optional), max_size=4, unique_by=lambda item: item[0])) if optional else []
            )
        entries = [
            (
                name,
                self.draw(st.sampled_from(REFERRING[name])) if name in REFERRING else self.value(slot.shape, slot.option.example),
            )
            for name, slot in [*required, *chosen]
        ]
        entries += [(name, self.draw(st.sampled_from(WRONG))) for name in shape.later if self.rarely()]
        if self.rarely():
            entries.append((self.draw(st.sampled_from(["quux", "nmae", '"a b"', "a", "? [a]\n", "<<"])), "x"))
        return entries

    def value(self, shape: Shape, example: str = "") -> str:
        draw = self.draw
        if self.rarely():
            return str(draw(st.sampled_from(WRONG)))
        if isinstance(shape, UnionShape):
            return self.value(draw(st.sampled_from(shape.alternatives)), example)
        if isinstance(shape, EnumShape):
            return json.dumps(draw(st.sampled_from(shape.values)))
        if isinstance(shape, ListShape):
            count = draw(st.integers(1, 4)) if shape.length is None else shape.length
            return f"[{', '.join(self.value(shape.item) for _ in range(count))}]"
        if isinstance(shape, MapShape):
            count = draw(st.integers(1, 4))
            keys = dict.fromkeys(self.value(shape.key) for _ in range(count))
            return f"{{{', '.join(f'{key}: {self.value(shape.value)}' for key in keys)}}}"
        if isinstance(shape, RecordShape):
            if shape.cls.short and draw(st.booleans()):
                return self.value(shape.slots[shape.cls.short].shape)
            return f"{{{', '.join(f'{key}: {inner}' for key, inner in self.record(shape))}}}"
        if isinstance(shape, FilesShape):
            name, slot = draw(st.sampled_from(sorted(shape.slots().items(), key=lambda item: item[0])))
            return f"{{{name}: {self.value(slot.shape)}}}"
        return self.scalar(shape, example) if isinstance(shape, ScalarShape) else str(draw(st.sampled_from([*WRONG, "{a: 1}"])))

    def scalar(self, shape: ScalarShape, example: str) -> str:
        draw = self.draw
        if shape.json in ("integer", "number"):
            return str(draw(st.sampled_from([example or "5", "0", "1", "-1", "999999999999999999", "1.5", "1e99", "-0"])))
        if shape.json == "boolean":
            return str(draw(st.sampled_from(["true", "false", "True"])))
        if shape.secret == "must":
            return '"${secret:s}"'
        texts = SPECIFIC.get(shape.scalar.noun, [example.strip('"') or shape.scalar.example or "text"])
        return in_quotes(draw(st.sampled_from(texts)))


def in_quotes(text: str) -> str:
    """The text as a quoted string of YAML."""
    return (
        '"'
        + "".join(
            character if character.isprintable() and character not in '\\"' else f"\\U{ord(character):08x}" for character in text
        )
        + '"'
    )


# Expressions and types

WORDS = (
    """
    price quantity side at day paid tags counts location wide nope _kafka_offset _event_time `side` `a b` . , ( ) [ ] + - * / % || | &
    ^ ~ ! = <> != < <= > >= <=> == and or not is null true false in like ilike rlike between case when then else end cast ( as int
    string timestamp decimal(18,2) array<int> struct<a:int> interval 1 day hours date'2026-01-31' timestamp'2026-01-31 10:00:00' 'a'
    '%a_' '(a+)+' r'\\d' 0 1 -1 2.5 1e5 300Y 9223372036854775808 1e400 1bd 38bd :: => -> ; -- /* ? : distinct from escape div abs(
    round( upper( coalesce( if( nullif(
    concat( substring( split( regexp_replace( regexp_extract( to_date( date_trunc( date_format( add_months( make_date( element_at( size(
    named_struct( array( greatest( least( lpad( sha2( pmod( try_add( try_divide( get( map_keys( sort_array( flatten( array_join( hex(
    sum( count(*) rand() now() uuid() exists( select over ( with `` " ' ` é \u00ad \u202e \x0b 😀 \\ $ # @ {{ }} ${{var:X:-1}}
""".replace("{{", "{")
    .replace("}}", "}")
    .split()
)
VALID = [
    "price * quantity > 100 and side in ('BUY', 'SELL')", "case when paid then upper(side) else coalesce(side, 'none') end = 'X'",
    "cast(price as decimal(18,2)) + wide / 3 > 1.5", "at between timestamp'2026-01-01 00:00:00' and at + interval 1 day",
    "date_trunc('hour', at) = at and day = date'2026-01-31'", "size(tags) > 0 and tags[0] like 'a%' and counts['x'] is not null",
    "location.building || ' ' || cast(location.floor as string) rlike '^[a-z]+ [0-9]{1,3}$'", "not (quantity % 2 = 0 or quantity is null)",
    "try_divide(price, quantity) <=> round(price, 2) and abs(quantity) div 2 >= 1", "if(price < 0, -price, price) between 1 and 5",
    "regexp_replace(side, '(a)(b)', '$2$1') = named_struct('a', side).a", "concat_ws(',', tags, side) = lpad(side, 10, ' ')",
]  # fmt: skip
COLUMNS = {
    "price": "double", "quantity": "int", "side": "string", "at": "timestamp", "day": "date", "paid": "boolean", "tags": "array<string>",
    "counts": "map<string,int>", "location": "struct<building string, floor int>", "wide": "decimal(38,10)",
}  # fmt: skip
TYPES = {name: parse(text) for name, text in COLUMNS.items()}
TYPE_WORDS = [
    "int",
    "bigint",
    "string",
    "timestamp",
    "date",
    "double",
    "decimal",
    "decimal(",
    "18",
    ",",
    "2",
    ")",
    "(",
    "38",
    "99",
    "0",
    "array",
    "array<",
    "map<",
    "struct<",
    "<",
    ">",
    ">>",
    ":",
    ";",
    "a",
    "b",
    "`a",
    "b`",
    "``",
    "string>",
    "int>",
    ",",
    "not",
    "null",
    "comment",
    "default",
    "varchar(10)",
    "char",
    "interval",
    "void",
    "time",
    "variant",
    "strin",
    "é",
    "\xad",
    "'",
    '"',
    "1",
    "a:",
    "a.b",
]


@st.composite
def expressions(draw: Draw) -> str:
    words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(lambda words: " ".join(words))
    valid = st.sampled_from(VALID)
    return str(draw(st.one_of(words, valid, mutated(draw(valid)), mutated(draw(valid)))))


@st.composite
def mutated(draw: Draw, text: str) -> str:
    words = re.findall(r"\w+|\s+|.", text)
    for _ in range(draw(st.integers(1, 4))):
        index = draw(st.integers(0, len(words) - 1))
        words[index : index + draw(st.integers(0, 2))] = draw(st.lists(st.sampled_from([*WORDS, *words, " "]), max_size=2))
        words = words or ["price"]
    return "".join(words)


def types() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(TYPE_WORDS), max_size=10).flatmap(
        lambda words: st.sampled_from(["".join(words), " ".join(words)])
    )


@st.composite
def with_expressions(draw: Draw) -> str:
    """A spec with an expression at every place that takes one; in quotes, so that it is YAML whatever it holds."""
    columns = {**COLUMNS, "other": draw(st.one_of(st.just("string"), st.just("int"), types()))}
    quoted = [in_quotes(draw(expressions())) for _ in range(6)]
    steps = [
        f"filter: {quoted[0]}", f"derive: {{made: {quoted[1]}, side: {quoted[2]}}}",
        f"flag: {{into: f, rules: [{{when: {quoted[3]}, label: A}}, {{when: {quoted[4]}, label: B}}]}}",
        f"cast: {{price: {in_quotes(draw(types()))}}}", f"sql: {quoted[5]}", f"sql: {select(draw)}",
    ]  # fmt: skip
    chosen = draw(st.lists(st.sampled_from(steps), min_size=1, max_size=5))
    types_ = "".join(f"  {name}: {in_quotes(text)}\n" for name, text in columns.items())
    return (
        "cluster: main\nbootstrap: a:1\n---\ncatalog: lake\ntype: sql\nuri: sqlite:///l.db\nwarehouse: w\n---\n"
        f"topic: t\nvalue: json\ncolumns:\n{types_}---\npipeline: p\nfrom: {{topic: t}}\ninto: {{table: a.b}}\n"
        f"steps:\n{''.join(f'  - {step}{chr(10)}' for step in chosen)}"
    )


def select(draw: Draw) -> str:
    items = draw(
        st.lists(st.one_of(expressions(), st.sampled_from(["*", "* except (side)", "price as x", "side s"])), max_size=3)
    )
    rest = draw(st.sampled_from(["", " where price > 0", " group by side", " order by 1", " limit 1", ", b", " join b", ";"]))
    return in_quotes(f"select {', '.join(items)} from input{rest}")


def judge_expression(text: str) -> None:
    try:
        check(text, TYPES)
    except ExpressionError as error:
        faults = error.faults
    else:
        return
    for fault in faults:
        assert 0 <= fault.offset <= len(text), (text, fault)
        assert fault.message, (text, fault)
        assert fault.code.startswith("sql-") or fault.code == "unknown-column", (text, fault)


def judge_type(text: str) -> None:
    try:
        assert parse(str(parse(text)) if "`" not in text else text) == parse(text)
    except TypeTextError as error:
        refused = error
    else:
        return
    assert 0 <= refused.offset <= len(text), (text, refused.offset)
    assert refused.message, text


INPUTS: dict[str, st.SearchStrategy[str]] = {"mistyped": mistyped(), "options": of_options(), "expressions": with_expressions()}


@pytest.mark.parametrize("kind", INPUTS)
def test_specs_are_planned_or_refused(kind: str, tmp_path: Path) -> None:
    run(INPUTS[kind], 15, lambda text: judge(tmp_path, text))


def test_expressions_are_checked_or_refused() -> None:
    run(expressions(), 300, judge_expression)
    run(types(), 200, judge_type)


@pytest.mark.long
@pytest.mark.parametrize("kind", INPUTS)
def test_many_specs_are_planned_or_refused(kind: str, tmp_path: Path) -> None:
    run(INPUTS[kind], 400, lambda text: judge(tmp_path, text))


@pytest.mark.long
def test_many_expressions_are_checked_or_refused() -> None:
    run(expressions(), 5000, judge_expression)
    run(types(), 3000, judge_type)
