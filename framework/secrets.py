"""A secret's value, looked up at the moment of use and kept nowhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from framework.errors import SetupError
from framework.plan.model import SecretStore
from framework.spec.options import SecretRef


def reveal(value: str | SecretRef, secrets: SecretStore) -> str:
    if isinstance(value, str):
        return value
    return _from_file(value.name, Path(secrets.path)) if secrets.path else _from_environment(value.name)


def _from_environment(name: str) -> str:
    for candidate in (name, name.upper()):
        if candidate in os.environ:
            return os.environ[candidate]
    raise SetupError("no-secret", f"the secret `{name}` is not in the environment", f"set the environment variable {name}")


def _from_file(name: str, path: Path) -> str:
    """A line `name=value` of a file that only its owner can read."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SetupError(
            "no-secret", f"the secrets in {path} cannot be read: {error.strerror}", f"write `{name}=…` into it"
        ) from None
    if mode & 0o077:
        raise SetupError("open-secrets", f"others can read {path} (mode {mode:04o})", f"chmod 600 {path}")
    for line in lines:
        key, found, value = line.partition("=")
        if found and key.strip() == name:
            return value.strip()
    raise SetupError("no-secret", f"the secret `{name}` is not in {path}", f"add a line `{name}=…`")
