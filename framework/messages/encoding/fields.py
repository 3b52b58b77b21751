"""The fields of messages, as specs and schemas say them: a type, and how JSON writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from framework.base import types
from framework.base.types import Decimal, Type


@dataclass(frozen=True)
class WrittenType(Type):
    """A type that is written in JSON as another one: `format` says how."""

    type: Type
    format: str

    def __str__(self) -> str:
        return str(self.type)

    def text(self, named: Callable[[str], str]) -> str:
        return self.type.text(named)


@dataclass(frozen=True)
class MessageField:
    """A field of the message."""

    name: str
    type: Type
    required: bool = False
    format: str | None = None

    @property
    def written(self) -> Type:
        return WrittenType(self.type, self.format) if self.format else self.type


def suits(format_: str, type_: Type) -> bool:
    """Whether values of the type can be written in this format."""
    if format_ == "base64":
        return isinstance(type_, Decimal)
    return type_ == (types.DATE if format_ == "epoch_days" else types.TIMESTAMP)
