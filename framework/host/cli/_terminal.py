"""Consoles with colours, if the terminal has them and NO_COLOR is not set."""

from __future__ import annotations

import os
from typing import IO, Any

from rich.console import Console


def console(stream: IO[str], **options: Any) -> Console:
    """A console without colour and bold if NO_COLOR is set; rich leaves them out itself if `stream` is no terminal."""
    colours: Any = None if os.environ.get("NO_COLOR") else "auto"
    return Console(file=stream, color_system=colours, highlight=False, markup=False, **options)
