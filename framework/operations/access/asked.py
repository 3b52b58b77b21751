"""Values that a script leaves open: who runs it writes them in their place, or sets a variable of the environment."""

from __future__ import annotations

from dataclasses import dataclass

from framework.plan import SecretRef
from framework.systems.secrets import variable


@dataclass(frozen=True)
class Asked:
    """In texts it stands as `<what>`; programs look the variable up."""

    what: str
    variable: str

    def __str__(self) -> str:
        return f"<{self.what}>"


Value = str | Asked | tuple[str | Asked, ...]


def asked(value: str | SecretRef) -> str | Asked:
    """In place of a secret: nothing that is printed has one."""
    return Asked(f"secret {value.name}", variable(value.name)) if isinstance(value, SecretRef) else value
