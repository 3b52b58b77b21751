"""Values as Python writes them. A value that is left open is looked up in the environment."""

from __future__ import annotations

import json
from collections.abc import Mapping

from framework.operations.access.asked import OpenValue, Value


def mapping(values: Mapping[str, Value]) -> str:
    lines = (f"    {text(key)}: {expression(value)},\n" for key, value in values.items())
    return "{\n" + "".join(lines) + "}"


def expression(value: Value) -> str:
    if isinstance(value, tuple):
        return ' + ":" + '.join(map(expression, value))
    return f"os.environ[{text(value.variable)}]" if isinstance(value, OpenValue) else text(value)


def text(value: str) -> str:
    """The text in double quotes, as Python's formatters write it."""
    return json.dumps(value)
