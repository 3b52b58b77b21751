"""The tree of errors in the code, as it is drawn for readers."""

from __future__ import annotations

import re

from framework.base import errors


def test_every_error_is_drawn_below_the_one_that_it_is_a_kind_of() -> None:
    drawn: dict[str, str] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"    ([│├└─ ]*)([A-Z]\w+) {2,}\S", line):
            level = len(match[1]) // 4
            above[level:] = [match[2]]
            drawn[match[2]] = above[level - 1] if level else "Exception"
    classes = [error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, Exception)]
    assert drawn == {error.__name__: error.__bases__[0].__name__ for error in classes}
