"""The JSON Schema for editors accepts what the compiler accepts, and the compiler refuses what it refuses."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from framework.host.cli import main
from framework.host.plans import load
from framework.language import extensions
from framework.language.bind import bind
from framework.language.editor import as_data, document_schema
from framework.language.kind import document_types
from framework.language.node import YamlNode
from framework.language.reader import read_text
from framework.language.references import References
from tests.support.cases import CASES, read
from tests.support.full_spec import GOOD
from tests.support.selection import few

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "docs" / "language" / "schema.json"
SHIPPED = sorted((ROOT / "specs").rglob("*.yaml"))
EDITOR = Draft202012Validator(document_schema())
NAMED = "# yaml-language-server: $schema="
MORE_DOCUMENTS = """\
pipeline: all
from: {topics: [a, b]}
steps:
  - select: [a, b.c]
  - drop: [a]
  - rename: {old: new}
  - cast: {price: "decimal(18,2)"}
  - flatten: [location]
  - explode: {column: items, into: item}
  - sql: select a from input
into: {table: a.b, catalog: lake, sort_by: [a], kafka_columns: false, format_version: 3}
run: {every: 5m}
expect:
  - {column: price, between: [0, 1000], else: warn}
  - {name: sane, when: quantity > 0}
  - {column: side, one_of: [BUY, 5, true]}
maintain: {compact_to: 64MB, keep_at_least: 5, orphans_after: 3d}
fresh_within: 15m
warn_after: 10m
tests:
  - name: a price is kept
    given:
      - {side: BUY, quantity: 10, price: -1.0, at: 2026-01-05T10:00:00Z}
      - {message: {key: k1, at: 2026-01-05T10:00:01Z, partition: 2, value: null}}
      - {message: {raw: not json}}
      - new_batch
    expect: [{price: -1.0}]
    expect_bad: [{error: undecodable}]
"""
ODD = (
    *("~", "true", "True", "5", "0", "-1", "1.5", ".5", "1e3", "0x1F", "0o17", ".inf", "012", "1_000", "2026-01-05", "nope"),
    *("5m", "128MB", "a.b", "by_hand", '"5"', '"true"', '""', '"x\\n"', '"${var:ONE}"', '"${var:NO:-5m}"', '"a${var:ONE}b"'),
    *('"${var:}"', '"${secret:key}"', '"x${secret:key}"', "[]", "[a]", "[1, 2]", "[~]", "{}", "{a: 1}", "{a: ~}", "[{}]"),
    *("{every: 1m}", "{type: string}", "{type: string, doc: ~}", "{format: string, as: 5}", "[{filter: true}]", "[filter]"),
    *("[{filter: a, derive: {b: c}}]", '"[a, b]"', '[{when: true, label: 5}]', "{one_of: [true, 5, x]}", "{now: ~}", '{now: "true"}'),
)  # fmt: skip


def documents(text: str) -> list[YamlNode]:
    problems: list[Any] = []
    nodes = read_text(text, "f.yaml", problems)
    return [] if problems else nodes


def written(node: YamlNode) -> str:
    """Returns the node as YAML on one line."""
    if node.kind == "list":
        return f"[{', '.join(map(written, node.items))}]"
    if node.kind == "map":
        return f"{{{', '.join(f'{json.dumps(key.text)}: {written(value)}' for key, value in node.entries)}}}"
    plain = not node.quoted and re.fullmatch(r"[\w.+~/-]*", node.text)
    return (node.text or "~") if plain else json.dumps(node.text, ensure_ascii=False)


@cache
def odd_values() -> tuple[YamlNode, ...]:
    return documents(f"[{', '.join(ODD)}]")[0].items


def mutations(node: YamlNode) -> Iterator[YamlNode]:
    """Yields the node with one change: a value replaced, or a key removed, added or misspelt."""
    yield from odd_values()
    for index, item in enumerate(node.items):
        for changed in mutations(item):
            yield replace(node, items=(*node.items[:index], changed, *node.items[index + 1 :]))
    for index, (key, value) in enumerate(node.entries):
        before, after = node.entries[:index], node.entries[index + 1 :]
        yield replace(node, entries=(*before, *after))
        yield replace(node, entries=(*before, (replace(key, text=f"{key.text}_"), value), *after))
        yield replace(node, entries=(*node.entries, (replace(key, text="1x.y"), value)))
        for changed in mutations(value):
            yield replace(node, entries=(*before, (key, changed), *after))


def right() -> list[YamlNode]:
    """Returns documents without problems."""
    cases = [case for path in sorted(CASES.parent.rglob("*.case")) for case in read(path) if case.expected.strip() == "ok"]
    texts = [GOOD, MORE_DOCUMENTS, *(path.read_text(encoding="utf-8") for path in SHIPPED)]
    texts += [text for case in cases for text in re.split(r"^>>> .*\n", case.spec_text, flags=re.MULTILINE)]
    return [node for text in texts for node in documents(text) if node.kind == "map"]


@cache
def wrong_texts(count: int) -> list[str]:
    """Returns `count` changed texts of every document."""
    chance = random.Random(7)
    return [written(changed) for node in right() for changed in chance.sample(list(mutations(node)), count)]


def refused(node: YamlNode) -> bool:
    return not EDITOR.is_valid(as_data(node))


# against the compiler


@pytest.mark.parametrize("node", right(), ids=lambda node: f"{node.entries[0][0].text}-{node.entries[0][1].text}")
def test_the_schema_accepts_right_specs(node: YamlNode) -> None:
    assert [error.message for error in EDITOR.iter_errors(as_data(node))] == []


@pytest.mark.slow
@pytest.mark.parametrize("count", few((2, 6), 2))
def test_a_text_that_the_schema_refuses_has_problems(count: int, tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    refusals = {True: 0, False: 0}
    for text in wrong_texts(count):
        nodes = documents(text)
        if nodes:
            (tmp_path / "specs" / "a.yaml").write_text(text, encoding="utf-8")
            problems = load(tmp_path / "specs", environ={"SLUICE_VAR_ONE": "1"}).problems
            refusals[refused(nodes[0])] += 1
            assert problems or not refused(nodes[0]), text
    assert min(refusals.values()) > 8 * count


@pytest.mark.slow
def test_a_case_that_the_schema_refuses_has_problems() -> None:
    count = 0
    for case in (case for path in sorted(CASES.parent.rglob("*.case")) for case in read(path)):
        for text in re.split(r"^>>> .*\n", case.spec_text, flags=re.MULTILINE):
            if any(node.kind == "map" and refused(node) for node in documents(text)):
                count += 1
                assert case.expected.strip() != "ok", case.title
    assert count > 50


def problems_of_shape(node: YamlNode) -> list[Any]:
    """Returns the problems that the compiler finds from a document's declared options alone."""
    problems: list[Any] = []
    expanded = References(environ={"SLUICE_VAR_ONE": "1"}, written={}, problems=problems).expand(node)
    bind(document_types()[node.entries[0][0].text], expanded, ROOT, problems)
    return problems


def beyond_json_schema(node: YamlNode) -> bool:
    """Returns whether an editor sees another document: references, numbers of YAML 1.2, or a map in place of a message."""
    numbers = [scalar.text for scalar in node.scalars() if not scalar.quoted and not isinstance(as_data(scalar), str | None)]
    odd = [text for text in numbers if not re.fullmatch(r"-?(0|[1-9][0-9]*)|true|false", text)]
    return bool(odd) or "${" in written(node) or '"message":' in written(node)


@pytest.fixture(autouse=True)
def of_this_project() -> Iterator[None]:
    with extensions.project(ROOT):
        yield


@pytest.mark.slow
def test_the_compiler_and_the_schema_judge_a_shape_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    binder = import_module("framework.language.bind")._Binder
    monkeypatch.setattr(binder, "judged", lambda _, bound: bound)  # JSON Schema does not say what options demand of each other
    judged = {True: 0, False: 0}
    for text in wrong_texts(6):
        for node in documents(text):
            if node.entries and node.entries[0][0].text in document_types() and not beyond_json_schema(node):
                problems = problems_of_shape(node)
                judged[bool(problems)] += 1
                assert refused(node) == bool(problems), f"{text}\n{problems[:1]}"
    assert min(judged.values()) > 20


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("nothing: 1", []),
        ("topic: T-1\nvalue: string", ["topic"]),
        ("topic: t\nvalue: xml", ["value"]),
        ("engine: spark\nremote: x", []),
        ("topic: t\nvalue: string\npartitions: six", ["partitions"]),
        ("topic: t\nvalue: string\npartitions: 0", ["partitions"]),
        ("topic: t\nvalue: string\npartitions: ${secret:six}", ["partitions"]),
        ("topic: t\nvalue: json\ncolumns: {a: {type: int, required: yes}}", ["columns", "a"]),
        ("topic: t\nvalue: string\npipeline: p", []),
        ("cluster: c\nbootstrap: a:1\nsecurity: {protocol: SSL, password: hello}", ["security", "password"]),
        ("pipeline: p\nfrom: {topic: t}\ninto: {table: a.b}\nsteps: [{flag: {into: x}}]", ["steps", 0, "flag"]),
        ("pipeline: p\nfrom: {topic: t}\ninto: {table: a.b}\nsteps: [{fliter: a > 1}]", ["steps", 0]),
        ("pipeline: p\nfrom: {topic: t}\ninto: {table: a.b}\nfresh_within: 15 minutes", ["fresh_within"]),
    ],
)
def test_the_schema_refuses_wrong_documents(text: str, path: list[str | int]) -> None:
    assert path in [list(error.absolute_path) for error in EDITOR.iter_errors(as_data(documents(text)[0]))]


def test_text_that_looks_like_a_number_is_accepted_as_text() -> None:
    assert not refused(documents("topic: 'true'\nvalue: string\ndoc: 1.10\nkafka_name: 42")[0])
    assert not refused(documents("topic: true\nvalue: string\ndoc:\npartitions: ${var:N:-3}")[0])
    assert not refused(documents("variables: v\nvalues: {a: 1, b: .5, c: false, d: 0x1F, e: 2026-01-05}")[0])


def test_a_node_becomes_plain_data() -> None:
    text = "[5, 012, 0x1F, 0o17, 1.10, 1e3, .inf, true, True, yes, ~, '5', null, 12:30:45, 1_000, -.5]"
    data = [5, 12, 31, 15, 1.1, 1000.0, float("inf"), True, True, "yes", None, "5", None, "12:30:45", "1_000", -0.5]
    assert as_data(documents(text)[0]) == data


# the schema itself


def test_the_committed_schema_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # with this project's own step
    printed = CliRunner().invoke(main, ["schema"]).stdout
    assert printed == SCHEMA.read_text(encoding="utf-8"), "renew it: sluice schema > docs/language/schema.json"


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Yields every object in the schema."""
    if isinstance(schema, dict):
        yield schema
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from parts(inner)


@pytest.mark.slow
def test_the_schema_is_valid() -> None:
    Draft202012Validator.check_schema(document_schema())
    assert document_schema()["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    patterns = [part["pattern"] for part in parts(document_schema()) if isinstance(part.get("pattern"), str)]
    # In a pattern that editors read as Unicode, a backslash may stand before these only.
    assert {escaped for pattern in patterns for escaped in re.findall(r"\\(.)", pattern)} <= set("nrtuxsSdDwW^$.*+?()[]{}|/\\")
    assert all(re.compile(pattern) for pattern in patterns)


def test_defaults_and_examples_are_right() -> None:
    described = [part for part in parts(document_schema()) if isinstance(part.get("description"), str)]
    for part in described:
        for value in [*part.get("examples", []), *([part["default"]] if "default" in part else [])]:
            assert list(Draft202012Validator(part).iter_errors(value)) == []
    topic, pipeline = (document_schema()["$defs"][kind]["properties"] for kind in ("topic", "pipeline"))
    assert topic["partitions"]["default"] == 1
    assert topic["unknown_fields"]["default"] == "ignore"
    assert pipeline["run"]["default"] == {"every": "1m"}
    assert pipeline["into"]["properties"]["kafka_columns"]["default"] is True
    assert pipeline["into"]["properties"]["format_version"]["default"] == 3
    assert pipeline["fresh_within"]["examples"] == ["15m"]


def test_every_option_is_described() -> None:
    for kind, schema in document_schema()["$defs"].items():
        for part in parts(schema):
            if part.get("additionalProperties") is False:
                assert all("description" in option for option in part["properties"].values()), (
                    f"{kind}: {list(part['properties'])}"
                )


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_specs_name_the_schema(path: Path) -> None:
    """Each document names it, because editors read only the document's own first comment."""
    comments = path.read_text(encoding="utf-8").split("---\n")
    assert [text.splitlines()[0].partition(NAMED)[0] for text in comments] == [""] * len(comments)
    schema_paths = {text.splitlines()[0].partition(NAMED)[2] for text in comments}
    assert [(path.parent / name).resolve() for name in schema_paths] == [SCHEMA]
