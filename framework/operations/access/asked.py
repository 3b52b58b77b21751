"""Values that a script leaves open: whoever runs it fills them in, or sets a variable of the environment."""

from __future__ import annotations

from dataclasses import dataclass

from framework.plan import SecretRef
from framework.systems.secrets.env import variable


@dataclass(frozen=True)
class OpenValue:
    """A value left open: texts have `<description>` in its place, and programs look up the variable."""

    description: str
    variable: str

    def __str__(self) -> str:
        return f"<{self.description}>"


Value = str | OpenValue | tuple[str | OpenValue, ...]


def without_secret(value: str | SecretRef) -> str | OpenValue:
    """Returns `value`, or a placeholder for a secret, since no script has one in it."""
    return OpenValue(f"secret {value.name}", variable(value.name)) if isinstance(value, SecretRef) else value
