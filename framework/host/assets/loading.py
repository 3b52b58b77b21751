"""How definitions are loaded: by a server of Dagster's, which shows specs with problems as assets, or by a command, which prints the
problems and ends."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeAlias

from dagster import Definitions

from framework.base.errors import SluiceError
from framework.base.spelling import did_you_mean, listed

Strict: TypeAlias = bool | Literal["auto"]
_SERVING = {("dagster", "api"), ("dagster", "code-server")}  # a code location, and the runs and steps that one starts
_LOADING = {("dagster", "asset"), ("dagster", "job"), ("dg", "launch"), ("dg", "list")}  # in their own process, with tracebacks
_SELECTING = {("dagster", "asset"): "--select", ("dg", "launch"): "--assets"}
_PLAIN = re.compile(r"[\w./-]+")  # a key, not one of Dagster's expressions such as `group:shop` or `*`
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


def require_selected(defs: Definitions) -> None:
    """End a command of Dagster's that selects an asset which no run writes, such as one that does not exist. Dagster would print a
    traceback."""
    option = _SELECTING.get(_command())
    selected = [part for text in _values(option) for part in text.split(",") if _PLAIN.fullmatch(part)] if option else []
    with naming_errors():
        for name in selected:
            _require_executable(defs, name)


def _require_executable(defs: Definitions, name: str) -> None:
    graph = defs.resolve_asset_graph()
    names = sorted(key.to_user_string() for key in graph.executable_asset_keys)
    if name in names:
        return
    if name in [key.to_user_string() for key in graph.get_all_asset_keys()]:
        hint = f"select what a run writes, such as `{names[0]}`" if names else ""
        raise SluiceError("unknown-asset", f"no run writes `{name}`, a topic or where a table is shown", hint)
    hint = did_you_mean(name, names, f"the assets that a run writes are: {listed(names)}")
    raise SluiceError("unknown-asset", f"there is no asset `{name}`", hint)


def _values(option: str) -> Iterator[str]:
    words = sys.argv[1:]
    yield from (word.removeprefix(f"{option}=") for word in words if word.startswith(f"{option}="))
    yield from (value for word, value in pairwise(words) if word == option)


def _command() -> tuple[str, str]:
    """Dagster's program and its command, such as `dagster` and `api`. Processes that one starts for steps have the same."""
    path = Path(sys.argv[0])
    program = path.parent.name if path.name == "__main__.py" else path.stem
    return program, next((word for word in sys.argv[1:] if not word.startswith("-")), "")
