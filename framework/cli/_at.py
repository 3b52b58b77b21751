"""Options of commands that name a moment of a table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from framework.cli._scalar import Scalar

_MOST_DIGITS = 19  # of a snapshot's id


class At(click.ParamType["datetime | int"]):
    """A time as in a spec, or the id of a snapshot."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | int:
        if value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS:
            return int(value)
        try:
            time: datetime = Scalar("Time").convert(value, param, ctx)
        except ValueError:  # no such day
            self.fail(f"`{value}` is not a time", param, ctx)
        return time
