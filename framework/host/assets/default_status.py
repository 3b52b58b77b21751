"""Whether sensors and schedules work from the first load on, or only once somebody turns them on in Dagster."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from dagster import DefaultScheduleStatus, DefaultSensorStatus

from framework.base.errors import SluiceError

DefaultStatus: TypeAlias = Literal["stopped", "running"]


def require_valid(status: str) -> None:
    if status not in get_args(DefaultStatus):
        hint = f"write {' or '.join(map(repr, get_args(DefaultStatus)))}"
        raise SluiceError("bad-choice", f"`default_status` cannot be {status!r}", hint)


def of_sensors(status: DefaultStatus) -> DefaultSensorStatus:
    return DefaultSensorStatus[status.upper()]


def of_schedules(status: DefaultStatus) -> DefaultScheduleStatus:
    return DefaultScheduleStatus[status.upper()]
