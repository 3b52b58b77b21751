"""The tree of errors, as it is drawn for whoever reads the code."""

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
    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert drawn == {each.__name__: each.__bases__[0].__name__ for each in classes}
