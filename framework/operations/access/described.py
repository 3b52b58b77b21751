"""Descriptions of objects that another system printed: names and values, in any of three layouts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from framework.base.errors import SluiceError

_NAME = r"([A-Z][A-Z0-9_]+)"
# JSON, in which quotes may be escaped by a backslash, or doubled where the JSON is a cell of CSV.
_JSON = re.compile(r'\\?"{1,2}([A-Za-z][A-Za-z0-9_]+)\\?"{1,2}\s*:\s*\\?"{1,2}([^"\\]+)')
# An object for each row, as `snow sql --format json` prints them.
_OBJECTS = re.compile(rf'"property"\s*:\s*"{_NAME}"[^}}]*?"property_value"\s*:\s*"([^"\\]+)"', re.DOTALL)
# A table, whose columns are between bars, tabs or commas: a name, its type and its value.
_COLUMNS = re.compile(
    rf'^[|\s,"]*{_NAME}[|\s,"]+(?:String|Boolean|Integer|List)[|\s,"]+([^|\t,"\n]+?)\s*(?:[|\t,"].*)?$', re.MULTILINE
)


def read(file: Path) -> Mapping[str, str]:
    """Returns the values by their names. A file without any is an error."""
    text = file.read_text(encoding="utf-8", errors="replace")
    values = {**dict(_COLUMNS.findall(text)), **dict(_JSON.findall(text)), **dict(_OBJECTS.findall(text))}
    if not values:
        message = f"{file} has no names with values, such as STORAGE_AWS_IAM_USER_ARN"
        raise SluiceError("nothing-described", message, "save what DESC EXTERNAL VOLUME prints, as a table, as CSV or as JSON")
    return values
