"""Values of secrets, looked up when they are used and never stored.

*Guarantee* A spec can name neither just any environment variable, nor a file outside the project.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.home import home
from framework.plan import SecretStore
from framework.plan.secret import SecretRef

_PREFIX, _LIST = "SLUICE_SECRET_", "SLUICE_SECRETS"
_LARGEST = 1 << 20


def reveal(value: str | SecretRef, store: SecretStore) -> str:
    if isinstance(value, str):
        return value
    return _from_file(value.name, Path(store.path)) if store.path else _from_environment(value.name)


def variable(name: str) -> str:
    """The environment variable in which a secret is looked up, as people are told."""
    return f"{_PREFIX}{_plain(name).upper()}"


def secret_variables() -> set[str]:
    """The environment variables that are secrets of specs."""
    return {name for name in os.environ if name.startswith(_PREFIX) or name in _listed()}


def _listed() -> list[str]:
    return [name.strip() for name in os.environ.get(_LIST, "").split(",")]


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _from_environment(name: str) -> str:
    """The value of an environment variable for secrets: `SLUICE_SECRET_NAME`, or one that `SLUICE_SECRETS` lists."""
    plain = _plain(name)
    listed = _listed()
    own_variables = [f"{_PREFIX}{plain}", variable(name)]
    for candidate in (*own_variables, *(spelling for spelling in (name, name.upper()) if spelling in listed)):
        if candidate in os.environ:
            return os.environ[candidate]
    hint = f"set the environment variable {own_variables[-1]}"
    plain_variable = next((spelling for spelling in (name, name.upper()) if spelling in os.environ), None)
    if plain_variable:
        hint += (
            f"; or let specs read {plain_variable}, which is set, by {_LIST}={','.join([*filter(None, listed), plain_variable])}"
        )
    raise SetupError("no-secret", f"the secret `{name}` is not in the environment", hint)


def _from_file(name: str, path: Path) -> str:
    """The value in a line `name=value` of a file that only its owner can read."""
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


def make_up(names: Iterable[str], store: SecretStore) -> None:
    """Adds a random value to a file of secrets for each missing name. Secrets of another store are left alone."""
    if not store.path:
        return
    path = Path(store.path)
    lines = _lines(path) if path.exists() else []
    existing_names = {line.partition("=")[0].strip() for line in lines}
    new_lines = [f"{name}={secrets.token_hex(32)}" for name in dict.fromkeys(names) if name not in existing_names]
    if new_lines:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "a", encoding="utf-8") as stream:
            stream.write("".join(f"\n{line}" for line in new_lines) + "\n")


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
