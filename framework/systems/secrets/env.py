"""Secrets in environment variables.

*Guarantee* A spec can name no variable but those that are meant for it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from framework.base.errors import SetupError
from framework.language.options import OptionGroup
from framework.systems.secrets import Store

_PREFIX, _LIST = "SLUICE_SECRET_", "SLUICE_SECRETS"


@dataclass(frozen=True)
class Options(OptionGroup):
    """Environment variables."""


def variable(name: str) -> str:
    """The environment variable in which a secret is looked up, as people are told."""
    return f"{_PREFIX}{_plain(name).upper()}"


def secret_variables() -> set[str]:
    """The environment variables that are secrets of specs."""
    return {name for name in os.environ if name.startswith(_PREFIX) or name in _listed()}


class Variables(Store):
    does = "looks into the environment variables `SLUICE_SECRET_NAME`"

    def value(self, name: str) -> str:
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
            variables = ",".join([*filter(None, listed), plain_variable])
            hint += f"; or let specs read {plain_variable}, which is set, by {_LIST}={variables}"
        raise SetupError("no-secret", f"the secret `{name}` is not in the environment", hint)


def _listed() -> list[str]:
    return [name.strip() for name in os.environ.get(_LIST, "").split(",")]


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


STORE = Variables
