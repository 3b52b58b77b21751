"""Commands in texts for people, with the options by which they find the same specs."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

WITHOUT = ("completion", "demo", "docs", "init", "schema", "services", "setup")  # commands that read no specs, or make them
_COMMAND = re.compile(r"`sluice ([a-z-]+)(?: [^`]*)?`")


def options(environment: str, specs: Path = Path("specs")) -> tuple[str, ...]:
    """The options of a command that finds the same specs as this one."""
    folder = () if specs == Path("specs") else ("--specs", str(specs))
    usual = os.environ.get("SLUICE_ENV") or "local"
    return (*folder, *(() if environment == usual == "local" else ("--env", environment)))


def pip(*packages: str) -> str:
    """The command that installs packages next to Sluice, wherever that is."""
    program = (
        [sys.executable, "-m", "pip", "install"] if find_spec("pip") else ["uv", "pip", "install", "--python", sys.executable]
    )
    return shlex.join([*program, *packages])


def of_environment(text: str, environment: str) -> str:
    return with_options(text, options(environment))


def with_options(text: str, added_options: Sequence[str]) -> str:
    """A text in which each command in backticks has the options that it would need."""

    def complete(command: re.Match[str]) -> str:
        whole = command.group(0)[:-1]
        missing = (
            not {option for option in added_options if option.startswith("--")} & set(whole.split())
            and command.group(1) not in WITHOUT
        )
        return f"{whole} {shlex.join(added_options)}`" if missing else f"{whole}`"

    return _COMMAND.sub(complete, text) if added_options else text
