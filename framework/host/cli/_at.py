"""Options of commands that name a moment of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from framework.host.cli._scalar import ScalarParameter

if TYPE_CHECKING:
    from framework.core.iceberg.at import Moment

METAVAR = "TIME|SNAPSHOT|batch:N"
SAYS = "2026-01-05T10:00:00Z, or a snapshot or batch:N of `sluice history`"
_MOST_DIGITS = 19  # of a snapshot's id


class At(click.ParamType["Moment"]):
    """A time as in a spec, the id of a snapshot, or the number of a batch."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Moment:
        from framework.core.iceberg.at import OfBatch

        word, _, number = value.rpartition(":")
        if number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS and word in ("", "batch"):
            return OfBatch(int(number)) if word else int(number)
        try:
            time: Moment = ScalarParameter("Time").convert(value, param, ctx)
        except (ValueError, click.BadParameter):
            self.fail(f"`{value}` is none: write {SAYS}", param, ctx)
        return time
