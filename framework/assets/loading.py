"""Who loads definitions: a server of Dagster's, which shows specs with problems as assets, or a command, which prints the problems and
ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from framework.errors import SluiceError

Strict: TypeAlias = bool | Literal["auto"]
_SERVING = {("dagster", "api"), ("dagster", "code-server")}  # a code location, and the runs and steps that one starts
_LOADING = {("dagster", "asset"), ("dagster", "job"), ("dg", "launch"), ("dg", "list")}  # in their own process, with tracebacks
_VALIDATION = "DAGSTER_IS_DEFS_VALIDATION_CLI"  # `dagster definitions validate` and `dg check defs` set it, which start a server


def is_strict(strict: Strict) -> bool:
    """Whether problems of specs end the load. `auto`: in everything but a server, such as a command, a test and a script."""
    if strict not in (True, False, "auto"):
        raise SluiceError("bad-choice", f"`strict` cannot be {strict!r}", "write True, False or 'auto'")
    if strict == "auto":
        return _command() not in _SERVING or bool(os.environ.get(_VALIDATION))
    return bool(strict)


@contextmanager
def naming_errors() -> Iterator[None]:
    """A scope whose error ends a command of Dagster's, which prints the error alone. Dagster would print a traceback."""
    try:
        yield
    except SluiceError as error:
        if _command() in _LOADING:
            raise SystemExit(str(error)) from None
        raise


def _command() -> tuple[str, str]:
    """Dagster's program and its command, such as `dagster` and `api`. Processes that one starts for steps have the same."""
    path = Path(sys.argv[0])
    program = path.parent.name if path.name == "__main__.py" else path.stem
    return program, next((word for word in sys.argv[1:] if not word.startswith("-")), "")
