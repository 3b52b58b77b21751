"""Secrets in a file of the project.

*Guarantee* The file is inside the project, and only its owner can read it; else it is refused.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.home import home
from framework.language.options import OptionGroup, option
from framework.language.scalars import Location
from framework.systems.secrets import Store

_LARGEST = 1 << 20


@dataclass(frozen=True)
class Options(OptionGroup):
    """A file of the project."""

    path: Location = option(
        "The file, with lines `NAME=value`; only its owner may read it (mode 0600).", example=".sluice/secrets", aka=["file"]
    )


class File(Store):
    does = "looks into the file `path`"

    options: Options

    def value(self, name: str) -> str:
        """The value in a line `name=value` of a file that only its owner can read."""
        path = self._path
        try:
            lines = _lines(path)
        except OSError as error:
            raise SetupError(
                "no-secret", f"the secrets in {path} cannot be read: {error.strerror}", f"write `{name}=…` into it"
            ) from None
        except UnicodeDecodeError:
            raise SetupError("no-secret", f"{path} is not UTF-8 text", "save it as UTF-8, with lines `NAME=value`") from None
        for line in lines:
            key, equals, value = line.partition("=")
            if equals and key.strip() == name:
                return value.strip()
        raise SetupError("no-secret", f"the secret `{name}` is not in {path}", f"add a line `{name}=…`")

    def add(self, names: Iterable[str]) -> None:
        path = self._path
        lines = _lines(path) if path.exists() else []
        existing_names = {line.partition("=")[0].strip() for line in lines}
        new_lines = [f"{name}={secrets.token_hex(32)}" for name in dict.fromkeys(names) if name not in existing_names]
        if new_lines:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "a", encoding="utf-8"
            ) as stream:
                stream.write("".join(f"\n{line}" for line in new_lines) + "\n")

    @property
    def _path(self) -> Path:
        return Path(self.options.path)


def _lines(path: Path) -> list[str]:
    """The lines of a file of the project. The opened file is the one that is checked."""
    real = path.resolve(strict=True)
    allowed_folders = [Path.cwd().resolve(), *([home().resolve()] if os.environ.get("SLUICE_HOME") else [])]
    if real != Path(os.path.abspath(path)) and not any(map(real.is_relative_to, allowed_folders)):
        hint = "keep the secrets in a file of the project's folder; a link to another place is not followed"
        raise SetupError("open-secrets", f"{path} is a link to {real}, which is outside the project", hint)
    with open(os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), encoding="utf-8") as stream:
        file_status = os.fstat(stream.fileno())
        if not stat.S_ISREG(file_status.st_mode) or file_status.st_size > _LARGEST:
            raise SetupError("open-secrets", f"{path} is not a file of at most 1 MiB", "write lines `NAME=value` into a file")
        mode = stat.S_IMODE(file_status.st_mode)
        if mode & 0o077:
            raise SetupError("open-secrets", f"others can read {path} (mode {mode:04o})", f"chmod 600 {path}")
        return stream.read().splitlines()


STORE = File
