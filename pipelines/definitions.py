"""The specs as Dagster assets."""

import os
from pathlib import Path

from framework.assets import definitions

defs = definitions(Path(os.environ.get("SLUICE_SPECS", "specs")))
