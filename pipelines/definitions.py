"""The specs as Dagster assets."""

from pathlib import Path

from framework.assets import definitions

defs = definitions(Path("specs"))
