"""The specs as Dagster assets. A server shows specs with problems as assets that fail; a command prints the problems and ends."""

import gc
import os
import sys

from dagster import AssetSelection, AutomationConditionSensorDefinition, DefaultSensorStatus, Definitions, in_process_executor

from sluice.dagster import SpecError, build_sluice_definitions

command = sys.argv[1] if "dagster" in sys.argv[0] and len(sys.argv) > 1 else ""
serves = command in ("api", "code-server") and not os.environ.get("DAGSTER_IS_DEFS_VALIDATION_CLI")
follows = AutomationConditionSensorDefinition(
    "New_data", target=AssetSelection.all(), minimum_interval_seconds=10, default_status=DefaultSensorStatus.RUNNING,
    description="Starts tables from tables with `run: on_new_data` once their sources have a commit.",
)  # fmt: skip
try:
    defs = Definitions.merge(
        build_sluice_definitions(os.environ.get("SLUICE_SPECS", "specs"), default_status="running", strict=not serves),
        Definitions(sensors=[follows], executor=in_process_executor),  # one Spark for all tables of a run
    )
except SpecError as error:
    if command in ("asset", "job"):
        raise SystemExit(str(error)) from None  # without the traceback that Dagster would print
    raise
gc.freeze()  # what Dagster loads stays, so no collection need look at it again
