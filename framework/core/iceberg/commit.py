"""Commits that are tried again while others come between."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from framework.core.spark.causes import commit_failed
from framework.core.spark.java_errors import CommitRefused, CommitUnknown

RETRY_HINT = "give the same command again: it continues where it stopped"
_TRIES = 5
_T = TypeVar("_T")


def again(identifier: str, once: Callable[[], _T], hint: str = RETRY_HINT, code: str = "table-busy") -> _T:
    """Runs `once` again while other commits come between. `once` loads the table each time, which also shows whether a commit without
    an answer was done."""
    cause = ""
    for _ in range(_TRIES):
        try:
            return once()
        except (CommitRefused, CommitUnknown) as error:
            cause = str(error)
    message = f"the catalog did not accept a commit to {identifier} in {_TRIES} tries"
    raise commit_failed(code, message, cause, hint)
