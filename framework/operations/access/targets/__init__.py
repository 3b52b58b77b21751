"""Targets of `sluice access`, one file each; the file's name is the target's name.

The first line of a file's documentation is its line in the help. A file has `OF`, which says whether it is about a `table` or a
`topic`, and `steps(about)`. `TAKES` names the options of the command that not every target takes. `steps`
yields warnings first, then what to run, in order, and how to undo it.
"""

from collections.abc import Mapping
from types import ModuleType

from framework.base.components import components_in

TARGETS = components_in(__name__)


def names() -> tuple[str, ...]:
    """The names of the targets, as users type them."""
    return tuple(name.replace("_", "-") for name in TARGETS.names())


def targets() -> Mapping[str, ModuleType]:
    """The targets by their names as users type them."""
    return {name.replace("_", "-"): file for name, file in TARGETS.load_all().items()}
