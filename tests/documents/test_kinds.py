"""Tests that every kind of document passes: Sluice's own and a toy, `tests/toys/kinds/reminder.py`, which nothing else names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from framework.host.cli import main
from framework.host.plans import draft, load
from framework.language.editor import as_data, document_schema
from framework.language.kind import Kind, document_kinds, later_kinds
from framework.language.reader import read_text
from framework.operations.reference import pages
from framework.plan.text import plan_text
from tests import toys


@pytest.fixture(autouse=True, scope="module")
def with_toys() -> Iterator[None]:
    with toys.installed():
        yield


def every_kind() -> Mapping[str, Kind]:
    with toys.installed():
        return document_kinds()


KINDS = every_kind()


def example(kind: str) -> str:
    module: Any = inspect.getmodule(KINDS[kind].document)
    return str(module.EXAMPLE)


def name_of(kind: str) -> str:
    return example(kind).splitlines()[0].partition(": ")[2]


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the example of every kind."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "specs"
    folder.mkdir()
    for kind in KINDS:
        (folder / f"{kind}.yaml").write_text(example(kind), encoding="utf-8")
    return Path("specs")


def codes(specs: Path, environment: str = "local") -> list[str]:
    return [problem.code for problem in draft(specs, environment)[1]]


def test_the_toy_is_a_kind() -> None:
    assert "reminder" in KINDS
    assert not set(KINDS) & set(later_kinds())


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_of_a_kind_is_named_as_its_documents_are(kind: str) -> None:
    assert KINDS[kind].document.__name__.lower() == kind
    assert example(kind).startswith(f"{kind}: ")


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_resolved_after_the_kinds_that_it_needs(kind: str) -> None:
    before = list(KINDS)[: list(KINDS).index(kind)]
    assert set(KINDS[kind].needs) <= set(before)


def test_the_examples_are_valid_together(specs: Path) -> None:
    plan, problems = draft(specs)
    assert problems == ()
    assert {(document.kind, document.name) for document in load(specs).documents} == {(kind, name_of(kind)) for kind in KINDS}
    assert [document.name for document in plan.documents_of("reminder")] == ["hello"]


@pytest.mark.slow
def test_every_kind_has_a_page_with_its_example() -> None:
    language = pages()
    for kind in KINDS:
        assert example(kind).strip() in language[f"{kind}.md"]
        assert f"]({kind}.md)" in language["index.md"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_for_editors_knows_a_kind(kind: str) -> None:
    editor = Draft202012Validator(document_schema())
    for text, right in ((example(kind), True), (f"{example(kind)}nonsense: 1\n", False)):
        assert editor.is_valid(as_data(read_text(text, "a.yaml", [])[0])) is right


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_key_has_a_hint(kind: str, specs: Path) -> None:
    (specs / f"{kind}.yaml").write_text(f"{example(kind)}nonsense: 1\n", encoding="utf-8")
    (problem,) = [problem for problem in load(specs).problems if problem.code == "unknown-key"]
    assert problem.message == f"`nonsense` is not an option of {kind} `{name_of(kind)}`"
    assert problem.hint


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_document_of_a_name_is_refused(kind: str, specs: Path) -> None:
    (specs / "second.yaml").write_text(example(kind), encoding="utf-8")
    assert codes(specs) == ["duplicate-name"]


@pytest.mark.parametrize("kind", KINDS)
def test_some_kinds_allow_only_one_document(kind: str, specs: Path) -> None:
    first_line, rest = example(kind).split("\n", 1)
    (specs / "second.yaml").write_text(f"{first_line}_2\n{rest}", encoding="utf-8")
    assert ("one-only" in codes(specs)) == KINDS[kind].one_only


@pytest.mark.parametrize("kind", KINDS)
def test_an_environment_replaces_a_document_unless_the_kind_is_the_same_everywhere(kind: str, specs: Path) -> None:
    (specs / "environments" / "prod").mkdir(parents=True)
    (specs / "environments" / "prod" / "a.yaml").write_text(example(kind), encoding="utf-8")
    assert codes(specs) == []
    assert codes(specs, "prod") == (["not-per-environment"] if KINDS[kind].same_everywhere else [])
    replaced = {document.where.file for document in load(specs, "prod").documents if document.kind == kind}
    assert replaced == {f"specs/{kind}.yaml" if KINDS[kind].same_everywhere else "specs/environments/prod/a.yaml"}


def test_a_plan_shows_documents_of_all_other_kinds(specs: Path) -> None:
    lines = "reminder hello  (specs/reminder.yaml:1:1)\n  about flagged_stock_trades: ask the sender for the currency\n"
    assert lines in plan_text(draft(specs)[0])
    assert lines in CliRunner().invoke(main, ["plan", "--no-look"]).stdout
