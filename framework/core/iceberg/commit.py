"""The one loop in which commits are tried again while others come between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from framework.core.spark.causes import commit_failed
from framework.core.spark.java_errors import CommitRefused, CommitUnknown

RETRY_HINT = "give the same command again: it continues where it stopped"
TRIES = 5
_T = TypeVar("_T")


@dataclass(frozen=True)
class Outcome(Generic[_T]):
    """The end of a commit without another try: it is done already, or there is nothing to commit any more."""

    value: _T


def commit(judge: Callable[[], Outcome[_T] | Callable[[], _T]], given_up: Callable[[str], Exception], tries: int = TRIES) -> _T:
    """Makes a commit as soon as no other one comes between. `judge` loads the table each time, and returns how to commit, or an
    `Outcome`. It judges once more after the last try, so that a commit whose answer was lost is found by what it wrote.
    `given_up` makes the error of the catalog's last text."""
    cause = ""
    for tries_left in reversed(range(tries + 1)):
        try:
            judged = judge()
            if isinstance(judged, Outcome):
                return judged.value
            if tries_left:
                return judged()
        except (CommitRefused, CommitUnknown) as error:
            cause = str(error)
    raise given_up(cause)


def again(identifier: str, once: Callable[[], _T], hint: str = RETRY_HINT, code: str = "table-busy") -> _T:
    """Makes a commit by `once`, which loads the table, does nothing where the commit is done, and else commits."""
    return commit(lambda: once, partial(refused, identifier, hint=hint, code=code))


def refused(identifier: str, cause: str, *, hint: str, code: str, tries: int = TRIES) -> Exception:
    """The error of a commit that is given up."""
    return commit_failed(code, f"the catalog did not accept a commit to {identifier} in {tries} tries", cause, hint)
