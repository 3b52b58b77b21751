"""Orders of people, who can be forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from framework.core.context.context import Context
from framework.operations.forget import forget
from framework.plan import Pipeline
from tests.support.file_texts import everything
from tests.support.project import Project

ANN, BOB = "ann.canary@example.com", "bob@example.com"
ORDERS = """
topic: trades
kafka_name: {topic}
key: {{format: string, as: email}}
value: json
columns: {{id: {{type: bigint, required: true}}, amount: int}}
---
pipeline: trades
from: {{topic: trades}}
{more}
into: {{table: {namespace}.trades%s}}
"""
APPEND = ORDERS % ", partition_by: [email]"
UPSERT = ORDERS % ", write: upsert, keys: [email], deletes: tombstones"
HISTORY = ORDERS % ", write: history, keys: [email], deletes: tombstones"


def order(email: str, number: int, amount: Any = 1) -> dict[str, Any]:
    return {"key": email, "value": json.dumps({"id": number, "amount": amount}).encode(), "partition": 0}


def orders(*emails: str) -> list[dict[str, Any]]:
    return [order(email, number) for number, email in enumerate(emails)]


def trades(context: Context) -> Pipeline:
    pipeline = context.plan.pipeline("trades")
    assert pipeline is not None
    return pipeline


def forgotten(
    project: Project, on_point: Callable[[str], None] | None = None, key: Mapping[str, str] = MappingProxyType({"email": ANN})
) -> list[str]:
    context = project.context(on_point)
    pipeline = trades(context)
    meaning = forget.judged(context, pipeline, key)
    return list(forget.forget(context, pipeline, meaning.key))


def files_with(project: Project, text: str = "canary") -> set[str]:
    """Paths below the namespace's folder with the text in their name or in their decoded content."""
    folder = project.lake / "warehouse" / project.namespace
    named = {path for path in folder.rglob("*") if text in path.name}
    return {str(path.relative_to(folder)) for path in {path for path, content in everything(folder) if text in content} | named}


def emails(project: Project) -> list[str]:
    return sorted(row["email"] for row in project.rows())
