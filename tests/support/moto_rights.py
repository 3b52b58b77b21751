"""Rights of AWS as moto applies them."""

from __future__ import annotations

from typing import Any

import requests


def asks(url: str, strictly: bool) -> None:
    requests.post(f"{url}/moto-api/reset-auth", data=b"0" if strictly else b"1000000", timeout=10)


def for_moto(statement: dict[str, Any]) -> dict[str, Any]:
    """Returns a statement for moto, which knows names of files alone, no `?` in them, and no conditions but those of trust."""
    actions, names = (value if isinstance(value, list) else [value] for value in (statement["Action"], statement["Resource"]))
    known_names = [name.replace("?" * 8, "*") for name in names] if actions[0].startswith("s3:") else ["*"]
    without_condition = {key: value for key, value in statement.items() if key != "Condition"}
    return {**without_condition, "Action": actions, "Resource": known_names}
