"""Texts that harm what writes them into a file, a path or a query without quotes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.support.registry_project import framed

TEXTS = (
    "${env:HOME}", "${spark.app.name}", "${system:user.dir}", "$${", "a'b", "' OR 1=1 --", 'a"b', "a\\b", "\\'", "a`b", "``", "a\0b",
    "a\u2028b",
    "é", "e\u0301", "a.b", "a b", "a;b", "a\nb", "a\tb", "\u202e", "😀", "x_sluice_value", "%s", "{0}", "a,b", "a:b", "a<b>", "a(b)", "a/b",
    "..", 'q"', "q\"'", "NULL", "x" * 300,
)  # fmt: skip


def message(schema_id: int, value: Mapping[str, Any]) -> bytes:
    return framed(schema_id, json.dumps(value).encode())


def written(*texts: str) -> str:
    """The texts as a list in a spec, with each character escaped."""
    escaped = ("".join(f"\\U{ord(character):08x}" for character in text.replace("${", "$${var:brace}")) for text in texts)
    return "[" + ", ".join(f'"{text}"' for text in escaped) + "]"
