"""Rules for the tests themselves."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_no_test_pauses_for_a_fixed_time() -> None:
    """Tests use `until` of waiting.py instead, which waits for the event itself."""
    pauses = [path.name for path in sorted(TESTS.rglob("*.py")) if re.search(r"\.sleep\(", path.read_text(encoding="utf-8"))]
    assert set(pauses) <= {"waiting.py", "test_suite.py"}
