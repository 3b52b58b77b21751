"""Rules for the tests themselves."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
_FOR_TOOLS = re.compile(r"#\s*(type:|noqa|fmt:|pragma)")


def test_no_test_pauses_for_a_fixed_time() -> None:
    """Tests use `until` of waiting.py instead, which waits for the event itself."""
    pauses = [path.name for path in sorted(TESTS.rglob("*.py")) if re.search(r"\.sleep\(", path.read_text(encoding="utf-8"))]
    assert set(pauses) <= {"waiting.py", "test_suite.py"}


def judged(rule: Callable[[str], Iterator[int]]) -> list[str]:
    """The lines of tests that break the rule."""
    sources = ((path.relative_to(TESTS), path.read_text(encoding="utf-8")) for path in sorted(TESTS.rglob("*.py")))
    return [f"{path}:{line}" for path, source in sources for line in rule(source)]


def without_a_reason(source: str) -> Iterator[int]:
    """Calls of a monkeypatch's `setattr` with no comment on one of their lines or on the line above."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and is_replacement(node.func)]
    if calls:
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        comments = {token.start[0] for token in tokens if token.type == tokenize.COMMENT and not _FOR_TOOLS.match(token.string)}
        for call in calls:
            if comments.isdisjoint(range(call.lineno - 1, (call.end_lineno or call.lineno) + 1)):
                yield call.lineno


def is_replacement(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr == "setattr"


def test_what_a_test_replaces_has_its_reason() -> None:
    """The reason says why the real thing cannot be had. Where an argument or a real part serves as well, nothing is replaced."""
    assert judged(without_a_reason) == []


def test_a_replacement_without_a_reason_is_found() -> None:
    call = 'patch.setattr(loop, "_INTERVAL", 0.01)'
    assert list(without_a_reason(f"import loop\n{call}\n")) == [2]
    assert list(without_a_reason(f"# of the import\nimport loop\n{call}  # type: ignore[attr-defined]\n")) == [3]
    assert list(without_a_reason(f'with patch:\n    a = """\n# a text\n"""; {call}\n')) == [4]
    assert list(without_a_reason(f"{call}  # seconds\n\n# seconds\n{call}\n\nsetattr(loop, 'a', 1)\n")) == []
    assert list(without_a_reason('patch.setattr(\n    loop,\n    "_INTERVAL",  # seconds\n    0.01,\n)\n')) == []


def from_tests(source: str) -> Iterator[int]:
    """Imports of a test module or of conftest.py, or of a name of one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom) and any(is_of_tests(name) for name in imported(node)):
            yield node.lineno


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    names = [alias.name for alias in node.names]
    return [f"{'.' * node.level}{node.module or ''}.{name}" for name in names] if isinstance(node, ast.ImportFrom) else names


def is_of_tests(name: str) -> bool:
    top, *parts = name.split(".")
    return top in ("tests", "") and any(part == "conftest" or part.startswith("test_") for part in parts)


def test_no_module_imports_from_a_test_module() -> None:
    """Modules of `tests/support` have what tests share."""
    assert judged(from_tests) == []


def test_an_import_from_a_test_module_is_found() -> None:
    wrong = [
        "from tests.core.test_kill import PATIENCE",
        "from tests.core import test_kill",
        "import tests.core.test_kill as kill",
    ]
    wrong += [
        "from tests.conftest import ROOT",
        "from tests import conftest",
        "from .test_kill import PATIENCE",
        "from . import test_kill",
    ]
    assert [line for text in wrong for line in from_tests(f"def test() -> None:\n    {text}\n")] == [2] * len(wrong)
    right = [
        "from tests.support.victims import PATIENCE",
        "from tests import toys",
        "import pytest",
        "from framework.core import trial",
    ]
    assert [line for text in right for line in from_tests(text)] == []
