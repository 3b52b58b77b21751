"""Examples of steps and expectations: the columns of a topic, a part of a pipeline and a test of it; as a page and as a whole spec."""

from __future__ import annotations

import re
import textwrap

from framework.errors import Problem, SpecError
from framework.spec.node import Node
from framework.spec.reader import read_text

ROWS = {"given": "Rows before:", "expect": "Rows after:", "expect_bad": "Bad rows:"}
NONE = "There are none."


def spec(example: str, name: str) -> str:
    """A topic, and a pipeline with a test. A cluster and a catalog belong to it."""
    parts = _parts(example)
    columns = parts.pop("columns")
    if "given" in parts:
        test = "".join(parts.pop(key) for key in ROWS if key in parts)
        parts["tests"] = f"tests:\n  - name: {name}\n{textwrap.indent(test, '    ')}"
    pipeline = "".join(parts.values())
    return (
        f"topic: {name}\nvalue: json\n{columns}---\npipeline: {name}\nfrom: {{topic: {name}}}\n"
        f"{pipeline}into: {{table: examples.{name}}}\n"
    )


def shown(example: str, key: str) -> str:
    """The part of the pipeline under this key, and the rows before and after it. All as it is written where rows are no tables."""
    parts = _parts(example)
    written = read(example)
    tests = written.get("tests")
    test = tests.items[0] if tests else written
    rows = {said: node for each, said in ROWS.items() if (node := test.get(each)) is not None}
    if not all(_is_table(node) for node in rows.values()):
        return _yaml(example)
    types = {name.text: type_.text for name, type_ in written.entries[0][1].entries}
    tables = [f"{said}\n\n{_table(node, types if node is test.get('given') else {})}" for said, node in rows.items()]
    return "\n\n".join([_yaml(parts[key]), *tables])


def read(example: str) -> Node:
    problems: list[Problem] = []
    documents = read_text(example, "EXAMPLE", problems)
    if problems:
        raise SpecError(problems)
    return documents[0]


def _parts(example: str) -> dict[str, str]:
    """Each top key's lines."""
    parts = re.split(r"^(?=\w+:)", example.lstrip("\n"), flags=re.MULTILINE)
    return {part.partition(":")[0]: part.rstrip("\n") + "\n" for part in parts if part}


def _yaml(text: str) -> str:
    return f"```yaml\n{text.strip()}\n```"


def _is_table(node: Node) -> bool:
    return all(item.kind == "map" and "message" not in [key.text for key, _ in item.entries[:1]] for item in node.items)


def _table(node: Node, types: dict[str, str]) -> str:
    names = list(dict.fromkeys(key.text for item in node.items for key, _ in item.entries))
    if not names:
        return NONE
    head = [f"{name} `{types[name]}`" if name in types else name for name in names]
    rows = [[_cell(item.get(name)) for name in names] for item in node.items]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(names), *rows])


def _cell(node: Node | None) -> str:
    return "" if node is None else _text(node).replace("|", "\\|")


def _text(node: Node) -> str:
    match node.kind:
        case "list":
            return f"[{', '.join(map(_text, node.items))}]"
        case "map":
            return f"{{{', '.join(f'{key.text}: {_text(value)}' for key, value in node.entries)}}}"
    return "null" if node.is_null else node.text
