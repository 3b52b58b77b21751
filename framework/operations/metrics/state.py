"""The state of a pipeline."""

from __future__ import annotations

from typing import get_args

from framework.operations.metrics import AlertRule, TableState
from framework.operations.observe.status import State, Status


def _of(status: Status) -> str:
    return status.state


METRIC = TableState(
    doc="The state of a pipeline.",
    of=_of,
    words=get_args(State),
    label="state",
    alerts=(
        AlertRule(
            name="SluiceSuspended",
            when='{metric}{state="suspended"} == 1',
            severity="critical",
            says="{{ $labels.pipeline }} is suspended: a person must decide. `sluice status {{ $labels.pipeline }}` says what.",
        ),
        AlertRule(
            name="SluiceFailing",
            when='{metric}{state="failing"} == 1',
            lasts="5m",
            severity="critical",
            says="{{ $labels.pipeline }} has failed for five minutes. `sluice status {{ $labels.pipeline }}` says why.",
        ),
    ),
)
