"""Examples of steps and expectations, as text for pages and as specs that run.

An example is YAML: the columns of a topic, a part of a pipeline, and the rows before and after it. Other documents that it needs
follow `---`.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace

from framework.base import type_text
from framework.base.errors import Problem, SpecError
from framework.documents.pipeline.written import Step
from framework.documents.rows import Rows
from framework.language import extensions
from framework.language.bind import bind_part
from framework.language.node import NOWHERE, YamlNode
from framework.language.reader import read_text
from framework.language.shapes import NO_OPTION, shape_of
from framework.operations.reference.options import table
from framework.plan import Column

_NEXT_DOCUMENT = "---\n"
ROWS = {"given": "Rows before:", "expect": "Rows after:", "expect_bad": "Bad rows:"}


def spec(example: str, name: str) -> str:
    """The spec of an example: a topic, and a pipeline with a test. It needs a cluster and a catalog to run."""
    parts = _parts(example)
    columns = parts.pop("columns")
    if "given" in parts:
        test = "".join(parts.pop(key) for key in ("tables", *ROWS) if key in parts)
        parts["tests"] = f"tests:\n  - name: {name}\n{textwrap.indent(test, '    ')}"
    into_options = parts.pop("into", "into: {}").strip().removeprefix("into: {").removesuffix("}")
    head = f"topic: {name}\nvalue: json\n{columns}---\npipeline: {name}\nfrom: {{topic: {name}}}\n"
    next_documents = f"---\n{example.partition(_NEXT_DOCUMENT)[2]}" if _NEXT_DOCUMENT in example else ""
    return (
        f"{head}{''.join(parts.values())}into: {{table: examples.{name}{into_options and f', {into_options}'}}}\n{next_documents}"
    )


def rendered(example: str, key: str) -> str:
    """The part of the pipeline under this key, and the rows before and after it; the unchanged example if its rows are messages."""
    document = _read(example)
    tests = document.get("tests")
    test = tests.items[0] if tests else document
    rows = {heading: node for heading in ROWS if (node := test.get(heading)) is not None}
    if not all(item.kind == "map" and item.get("message") is None for item in rows["given"].items):
        return _yaml(example)
    before, after = _types(document)
    columns = {"given": before, "expect": after, "expect_bad": {}}
    tables = [(name.text, node) for name, node in (test.get("tables") or NOWHERE).entries]
    table_texts = (f"Rows of `{name}`:\n\n{_rows(node, {})}" for name, node in tables)
    return "\n\n".join(
        [_yaml(_parts(example)[key]), *table_texts, *(_table(heading, node, columns[heading]) for heading, node in rows.items())]
    )


def _read(example: str) -> YamlNode:
    problems: list[Problem] = []
    documents = read_text(example, "EXAMPLE", problems)
    if problems:
        raise SpecError(problems)
    return documents[0]


def _parts(example: str) -> dict[str, str]:
    """The lines of each top-level key."""
    parts = re.split(r"^(?=\w+:)", example.partition(_NEXT_DOCUMENT)[0].lstrip("\n"), flags=re.MULTILINE)
    return {part.partition(":")[0]: part.rstrip("\n") + "\n" for part in parts if part}


def _types(document: YamlNode) -> tuple[dict[str, str], dict[str, str]]:
    """The columns before and after the steps."""
    types_before = {name.text: type_text.parse(type_.text) for name, type_ in (document.get("columns") or NOWHERE).entries}
    rows = Rows(tuple(Column(name, type_) for name, type_ in types_before.items()), [])
    for item in (document.get("steps") or NOWHERE).items:
        step = bind_part(shape_of(Step), NO_OPTION, item)
        rows = replace(rows, columns=extensions.find(extensions.STEPS)[step.name].resolve(step, rows).columns)
    if rows.problems:
        raise SpecError(rows.problems)
    return {name: str(type_) for name, type_ in types_before.items()}, {column.name: str(column.type) for column in rows.columns}


def _yaml(text: str) -> str:
    return f"```yaml\n{text.strip()}\n```"


def _table(heading: str, rows: YamlNode, types: dict[str, str]) -> str:
    return f"{ROWS[heading]}\n\n{_rows(rows, types)}"


def _rows(rows: YamlNode, types: dict[str, str]) -> str:
    names = list(dict.fromkeys(key.text for row in rows.items for key, _ in row.entries))
    head = [f"{name} `{types[name]}`" if name in types else name for name in names]
    cells = ([_text(row.get(name)) for name in names] for row in rows.items)
    return table(head, cells) if names else "There are none."


def _text(node: YamlNode | None) -> str:
    if node is None:
        return ""
    if node.kind == "list":
        return f"[{', '.join(map(_text, node.items))}]"
    if node.kind == "map":
        return f"{{{', '.join(f'{key.text}: {_text(value)}' for key, value in node.entries)}}}"
    return "null" if node.is_null else node.text
