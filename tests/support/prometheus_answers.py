"""A real Prometheus, asked by its own API."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any


def rules_of(url: str) -> list[Mapping[str, Any]]:
    return [rule for group in answer(url, "/api/v1/rules")["groups"] for rule in group["rules"]]


def answer(url: str, path: str) -> Any:
    with urllib.request.urlopen(f"{url}{path}", timeout=10) as response:
        document = json.load(response)
    assert document["status"] == "success", document
    return document["data"]


def asked(url: str, expression: str) -> list[Any]:
    result: list[Any] = answer(url, f"/api/v1/query?{urllib.parse.urlencode({'query': expression})}")["result"]
    return result


def value(result: list[Any]) -> float:
    (sample,) = result
    return float(sample["value"][1])
