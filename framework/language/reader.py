"""Parse YAML text to nodes. No value is resolved to a type, and the size of the result is limited."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

from framework.base.errors import Problem, Where
from framework.language.node import YamlNode
from framework.language.syntax import SECRET_NAME, FlowStyle, explain, quote, short
from framework.language.tree import MAX_REPAIRS, MAX_VALUES, Stop, Tree, Unquoted, too_many

MAX_DOCUMENTS = 1_000  # of one file
_MAX_REPAIRED = 300_000  # characters of one file; each repair reads its document again
_SPLIT = re.compile(r"^(?=---(?:\s|$))", re.MULTILINE)


@dataclass
class _Budget:
    """The limits that are left for one file."""

    values: int = MAX_VALUES
    repaired: int = _MAX_REPAIRED


def read_text(text: str, file: str, problems: list[Problem]) -> list[YamlNode]:
    """The documents of a file. `---` at the start of a line always ends a document, even a broken one."""
    documents: list[YamlNode] = []
    budget = _Budget()
    line = 0
    parts = _SPLIT.split(text)
    if len(parts) > MAX_DOCUMENTS:
        problems.append(too_many(Where(file, 1, 1), f"{MAX_DOCUMENTS:,} documents"))
        return []
    for part in parts:
        if part and budget.values > 0:
            documents += _read_part(part, file, line, budget, problems)
            line += part.count("\n")
    return documents


def _read_part(text: str, file: str, first_line: int, budget: _Budget, problems: list[Problem]) -> list[YamlNode]:
    repaired: dict[int, str] = {}
    while True:
        tree = Tree(text, file, first_line, budget.values, repaired)
        try:
            return tree.documents()
        except Stop as stop:
            tree.problems.append(stop.problem)
            return tree.whole
        except Unquoted as unquoted:
            start, end = unquoted.start, unquoted.end
        except yaml.MarkedYAMLError as error:
            explanation = explain(error, text, file, first_line, FlowStyle(tuple(tree.opened), tree.last_scalar))
            if explanation.span is None:
                tree.problems.append(explanation.problem)
                return tree.whole
            start, end = explanation.span
        finally:
            problems += tree.problems
            budget.values -= tree.count
        unquoted_text = text[start:end]
        hidden = SECRET_NAME.search(text, text.rfind("\n", 0, start) + 1, start) is not None
        problems.append(_unquoted(unquoted_text, _where_at(text, file, first_line, start), hidden))
        budget.values += tree.count  # it is read again
        budget.repaired -= len(text)
        if len(repaired) == MAX_REPAIRS or budget.repaired < 0:
            return tree.whole
        repaired[start] = unquoted_text
        text = text[:start] + "q" * (end - start) + text[end:]


def _where_at(text: str, file: str, first_line: int, index: int) -> Where:
    return Where(file, first_line + text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def _unquoted(text: str, where: Where, hidden: bool) -> Problem:
    if hidden:
        return Problem(where, "unquoted-comma", "text with a comma, a bracket or a brace needs quotes here", "put it in quotes")
    return Problem(
        where, "unquoted-comma", f"inside [] and {{}}, text with a comma, a bracket or a brace needs quotes: {short(text, 200)}",
        f"write {quote(text)}" if len(text) <= 200 else "put it in quotes",
    )  # fmt: skip
