"""Secrets in a file of the project.

*Guarantee* The file is inside the project, and only its owner can read it; else it is refused.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.home import home
from framework.language.options import OptionGroup, option
from framework.language.scalars import Location
from framework.systems.keyring import Ring, StoredKey
from framework.systems.secrets import KeyStore, _file_ring

_LARGEST = 1 << 20


@dataclass(frozen=True)
class Options(OptionGroup):
    """A file of the project."""

    path: Location = option(
        "The file, with lines `NAME=value`; only its owner may read it (mode 0600).", example=".sluice/secrets", aka=["file"]
    )


class File(KeyStore):
    does = "looks into the file `path`"

    options: Options

    def value(self, name: str) -> str:
        """The value in a line `name=value` of a file that only its owner can read."""
        return self.values([name])[name]

    def values(self, names: Iterable[str]) -> Mapping[str, str]:
        names = list(names)
        values: dict[str, str] = {}
        for key, equals, value in (line.partition("=") for line in self._read(names[0])):
            if equals:
                values.setdefault(key.strip(), value.strip())
        for name in names:
            if name not in values:
                raise SetupError("no-secret", f"the secret `{name}` is not in {self._path}", f"add a line `{name}=…`")
        return {name: values[name] for name in names}

    def add(self, names: Iterable[str]) -> None:
        def added(lines: list[str]) -> list[str]:
            existing_names = {line.partition("=")[0].strip() for line in lines}
            new_names = [name for name in dict.fromkeys(names) if name not in existing_names]
            return [*lines, *(f"{name}={secrets.token_hex(32)}" for name in new_names)]

        self._change(added)

    def keys(self, ring: Ring) -> tuple[StoredKey, ...]:
        return _file_ring.keys(self._read(ring.secrets[0]) if self._path.exists() else [], ring)

    def ring(self, name: str, is_rotated: bool) -> tuple[StoredKey, ...]:
        """All keys of the file, also of one that no document replaces any longer: what they encrypted is still there."""
        return _file_ring.whole(self._read(name), Ring(name=name, secrets=(name,)), str(self._path))

    def add_key(self, ring: Ring, number: int, values: Mapping[str, str], by_hand: bool = False) -> None:
        self._change(lambda lines: _file_ring.added(lines, ring, number, values, by_hand))

    def use_key(self, ring: Ring, number: int) -> None:
        self._change(lambda lines: _file_ring.used(lines, ring, number))

    def remove_key(self, ring: Ring, number: int) -> None:
        self._change(lambda lines: _file_ring.removed(lines, ring, number))

    @property
    def _path(self) -> Path:
        return Path(self.options.path)

    def _read(self, name: str) -> list[str]:
        """The lines of the file, for who wants the secret of this name."""
        path = self._path
        try:
            return _lines(path)
        except OSError as error:
            raise SetupError(
                "no-secret", f"the secrets in {path} cannot be read: {error.strerror}", f"write `{name}=…` into it"
            ) from None
        except UnicodeDecodeError:
            raise SetupError("no-secret", f"{path} is not UTF-8 text", "save it as UTF-8, with lines `NAME=value`") from None

    def _change(self, change: Callable[[list[str]], list[str]]) -> None:
        """Changes the file, whole or not at all, while nobody else does: who reads it sees one key's name with its own password."""
        path = self._path.resolve()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _alone(path.parent):
                lines = self._read("NAME") if path.exists() else []
                new_lines = change(lines)
                if new_lines != lines:
                    _replace(path, "".join(f"{line}\n" for line in new_lines))
        except OSError as error:
            message = f"the secrets in {path} cannot be written: {error.strerror}"
            raise SetupError("no-secret", message, "let its owner write it and its folder") from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time changes the secrets in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, text: str) -> None:
    """Replaces a file by one with the same owner. What a killed process has left goes, too."""
    for leftover in path.parent.glob(f".{path.name}.*.new"):
        leftover.unlink()
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as stream:
        if path.exists() and path.stat().st_uid != os.geteuid():
            os.fchown(stream.fileno(), path.stat().st_uid, path.stat().st_gid)
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)


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
