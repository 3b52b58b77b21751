"""Targets of `sluice access`, one file each; the file's name is the target's name.

A file has `OF`, which says whether it is about a `table` or a `topic`, and `steps(about)`, whose first line of documentation is its line in
the help. `TAKES` names the options of the command that not every target takes. `steps` yields what to run, in order, with what takes it
back; warnings are the first of it.
"""

from framework.base import components


def names() -> tuple[str, ...]:
    """As users type them."""
    return tuple(file.replace("_", "-") for file in components.names(__name__))
