"""A sensor that replaces the keys of the specs that are due.

*Guarantee* A key is replaced once, also where `sluice stream` or `sluice keys` does so beside it.
"""

from __future__ import annotations

from dagster import SensorDefinition, SensorEvaluationContext, SkipReason, sensor

from framework.host.assets import default_status
from framework.host.assets.default_status import DefaultStatus
from framework.host.assets.translator import Assets
from framework.operations.keys import due
from framework.plan import Plan
from framework.systems import secrets

_EVERY = 300  # seconds


def sensor_of(plan: Plan, assets: Assets, status: DefaultStatus) -> SensorDefinition:
    @sensor(
        name=assets.named("Keys"), minimum_interval_seconds=_EVERY, default_status=default_status.of_sensors(status),
        description="Replaces the keys of the specs that are due, and retires former ones that nobody uses any longer.",
    )  # fmt: skip
    def replace(context: SensorEvaluationContext) -> SkipReason:
        secrets.look_again(plan.secrets)
        replaced = due.replace_due(plan)
        for line in (*replaced.lines, *replaced.lasting):
            context.log.info(line)
        for failure in replaced.failures:
            context.log.error(str(failure))
        return SkipReason("; ".join((*replaced.lines, *replaced.lasting, *map(str, replaced.failures))) or "no key is due")

    return replace
