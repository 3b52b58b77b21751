"""Adds a row per message."""

from __future__ import annotations

from framework.core.rows.counts import Counted
from framework.core.rows.frame import Frame
from framework.core.staging import Target
from framework.plan.write import Mode


def stage(to: Target, frame: Frame) -> Counted:
    to.writer(frame.good).append()
    return to.counted(frame)


MODE = Mode("adds a row per message", stage, keeps_rows=True)
