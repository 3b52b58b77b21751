"""The specs as Dagster assets. A server shows specs with problems as assets that fail; a command prints the problems and ends."""

import gc
import os

from dagster import AssetSelection, AutomationConditionSensorDefinition, DefaultSensorStatus, Definitions, in_process_executor

from framework.host.assets.loading import require_selected
from sluice.dagster import build_sluice_definitions

follows = AutomationConditionSensorDefinition(
    "New_data", target=AssetSelection.all(), minimum_interval_seconds=10, default_status=DefaultSensorStatus.RUNNING,
    description="Starts tables from tables with `run: on_new_data` once their sources have a commit.",
)  # fmt: skip
defs = Definitions.merge(
    build_sluice_definitions(os.environ.get("SLUICE_SPECS", "specs"), default_status="running"),
    Definitions(sensors=[follows], executor=in_process_executor),  # one Spark for all tables of a run
)
require_selected(defs)
gc.freeze()  # what Dagster loads stays, so no collection need look at it again
