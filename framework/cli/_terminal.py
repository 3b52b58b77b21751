"""What a terminal gets: colours where it has them and nobody objects."""

from __future__ import annotations

import os
from typing import IO, Any

from rich.console import Console


def console(out: IO[str], **more: Any) -> Console:
    """Without any colour or bold where NO_COLOR is set; rich itself leaves them out where `out` is no terminal."""
    colours: Any = None if os.environ.get("NO_COLOR") else "auto"
    return Console(file=out, color_system=colours, highlight=False, markup=False, **more)
