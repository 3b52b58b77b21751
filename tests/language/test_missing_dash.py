"""An item of a list without its `- ` is reported where it is, and the hint is the corrected line."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.base.errors import Problem
from framework.host.plans import load

HEAD = """cluster: main
bootstrap: localhost:1
---
topic: orders
value: json
columns: {quantity: int, price: double}
---
pipeline: orders
from: {topic: orders}
into: {table: shop.orders}
"""
LINES_BELOW = "and move the lines below it, which belong to it, two columns to the right"
CASES = {
    "the first step": (
        "steps:\n  filter: quantity > 0\n  - derive: {total: quantity * price}\n",
        ("12:3", "write - filter: quantity > 0"),
        "steps:\n  - filter: quantity > 0\n  - derive: {total: quantity * price}\n",
    ),
    "a step with a map": (
        "steps:\n  derive:\n    a: quantity\n    b: price * 2\n\n  # then\n  - filter: quantity > 0\n",
        ("12:3", "write - derive: {a: quantity, b: price * 2}"),
        "steps:\n  - derive: {a: quantity, b: price * 2}\n\n  # then\n  - filter: quantity > 0\n",
    ),
    "a step with a list in it": (
        "steps:\n  flag:\n    into: size\n    rules:\n      - {when: price > 1, label: A}\n  - filter: quantity > 1\n",
        ("12:3", f"write - flag: {LINES_BELOW}"),
        "steps:\n  - flag:\n      into: size\n      rules:\n        - {when: price > 1, label: A}\n  - filter: quantity > 1\n",
    ),
    "a list without an indent": (
        "steps:\nderive:\n  a: quantity\n- filter: quantity > 0\n",
        ("12:1", "write - derive: {a: quantity}"),
        "steps:\n- derive: {a: quantity}\n- filter: quantity > 0\n",
    ),
    "the first of two": (
        "steps:\n  filter: quantity > 0\n  derive: {a: price}\n  - filter: quantity > 1\n",
        ("12:3", "write - filter: quantity > 0"),
        "steps:\n  - filter: quantity > 0\n  - derive: {a: price}\n  - filter: quantity > 1\n",
    ),
    "the second step": (
        "steps:\n  - filter: quantity > 0\n  derive: {a: price}\n  - filter: quantity > 1\n",
        ("13:3", "write - derive: {a: price}"),
        "steps:\n  - filter: quantity > 0\n  - derive: {a: price}\n  - filter: quantity > 1\n",
    ),
    "a step that is indented too far": (
        "steps:\n    filter: quantity > 0\n  - derive: {a: price}\n",
        ("12:5", "write - filter: quantity > 0"),
        "steps:\n  - filter: quantity > 0\n  - derive: {a: price}\n",
    ),
    "a step before one that is indented": (
        "steps:\n  filter: quantity > 0\n    - derive: {a: price}\n",
        ("12:3", "write - filter: quantity > 0"),
        "steps:\n  - filter: quantity > 0\n  - derive: {a: price}\n",
    ),
    "an item of two keys": (
        "steps:\n  - flag:\n      into: size\n      rules:\n        when: price > 1\n        label: A\n"
        "        - {when: price > 2, label: B}\n",
        ("15:9", "write - {when: price > 1, label: A}"),
        "steps:\n  - flag:\n      into: size\n      rules:\n        - {when: price > 1, label: A}\n"
        "        - {when: price > 2, label: B}\n",
    ),
}  # fmt: skip


def problems(folder: Path, body: str) -> tuple[Problem, ...]:
    specs = folder / "specs"
    specs.mkdir(exist_ok=True)
    (specs / "a.yaml").write_text(HEAD + body)
    return tuple(load(specs, "local").problems)


@pytest.mark.parametrize("case", CASES)
def test_an_item_without_its_dash_is_reported_where_it_is_and_the_hint_corrects_it(tmp_path: Path, case: str) -> None:
    body, (place, hint), corrected = CASES[case]
    (problem,) = problems(tmp_path, body)
    assert (str(problem.where).partition("a.yaml:")[2], problem.code) == (place, "yaml-syntax")
    assert (problem.message, problem.hint) == ("this item of a list has no `- `", hint)
    assert hint.removeprefix("write ").removesuffix(f" {LINES_BELOW}") in corrected
    assert problems(tmp_path, corrected) == ()


@pytest.mark.parametrize(
    "body", ["steps:\n  - filter: quantity > 0\n   - derive: {a: price}\n", "- filter: quantity > 0\n", "owner: a\n- b\n"]
)
def test_a_dash_in_another_wrong_place_is_reported_at_the_dash(tmp_path: Path, body: str) -> None:
    (problem,) = problems(tmp_path, body)
    assert problem.message != "this item of a list has no `- `"


def test_a_secret_is_in_no_hint(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "steps:\n  derive: {password: abcdef}\n  - filter: quantity > 0\n")
    assert problem.hint == "put `- ` before it"
