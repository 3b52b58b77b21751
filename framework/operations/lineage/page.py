"""A page that shows where columns come from and where they go. It is one file, which needs no network."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from framework.operations.lineage.flow import LineageFlow, LineagePart

_DATA = "__DATA__"


def html(flow: LineageFlow, environment: str) -> str:
    template = resources.files("framework.operations.lineage").joinpath("page.html").read_text(encoding="utf-8")
    data = {
        "environment": environment,
        "parts": [_part(part) for part in flow.parts],
        "columns": [[list(origin), list(target)] for origin, target in flow.columns],
        "between": [list(pair) for pair in flow.parts_of],
    }
    # A text in a spec must not end the script.
    return template.replace(_DATA, json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"))


def _part(part: LineagePart) -> dict[str, Any]:
    kind = part.key.partition(" ")[0]
    columns = [{"name": column.name, "type": str(column.type), "doc": column.doc} for column in part.columns]
    return {
        "key": part.key, "kind": kind, "title": part.title, "doc": part.doc, "where": part.where, "pipeline": part.pipeline,
        "steps": part.steps, "columns": columns,
    }  # fmt: skip
