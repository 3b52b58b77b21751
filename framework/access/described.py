"""What another system printed of what was created there: names and values, however they are laid out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from framework.errors import SluiceError

# A name in capitals, and behind it, in the same cell or line, its value: as JSON, or in columns between bars or tabs.
_JSON = re.compile(r'"{1,2}([A-Z][A-Z0-9_]+)"{1,2}\s*:\s*"{1,2}([^"]+)"')
_COLUMNS = re.compile(
    r"^[|\s]*([A-Z][A-Z0-9_]+)[|\s]+(?:String|Boolean|Integer|List)[|\s]+([^|\t]+?)\s*(?:[|\t].*)?$", re.MULTILINE
)


def read(file: Path) -> Mapping[str, str]:
    """The values by their names. A file without any is an error."""
    text = file.read_text(encoding="utf-8", errors="replace")
    told = {**dict(_COLUMNS.findall(text)), **dict(_JSON.findall(text))}
    if not told:
        message = f"{file} has no names with values, such as STORAGE_AWS_IAM_USER_ARN"
        raise SluiceError("nothing-described", message, "save what DESC EXTERNAL VOLUME prints, as a table or as CSV")
    return told
