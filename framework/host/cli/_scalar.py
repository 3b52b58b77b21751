"""Options of commands with the values of a spec's scalars, such as `10/s`."""

from __future__ import annotations

import re
from typing import Any, get_args

import click


class ScalarParameter(click.ParamType[Any]):
    """A parameter type with the name of a type in `framework.language.scalars`, which is imported only to read a value:
    `sluice --help` stays fast."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.name = kind.lower()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from framework.language import scalars

        scalar = get_args(getattr(scalars, self.kind))[1]
        if not re.search(scalar.pattern, value):
            self.fail(f"`{value}` is not {scalar.noun}: write {scalar.rule}", param, ctx)
        return scalar.read(value)
