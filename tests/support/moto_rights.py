"""Rights of AWS as moto applies them."""

from __future__ import annotations

from typing import Any

import requests


def asks(url: str, strictly: bool) -> None:
    requests.post(f"{url}/moto-api/reset-auth", data=b"0" if strictly else b"1000000", timeout=10)


def for_moto(statement: dict[str, Any]) -> dict[str, Any]:
    """Returns a statement for moto, which applies Glue's actions to all resources and knows no `?` in names."""
    of_glue = statement["Action"][0].startswith("glue:")
    names = ["*"] if of_glue else [name.replace("?" * 8, "*") for name in statement["Resource"]]
    return {**statement, "Resource": names}
