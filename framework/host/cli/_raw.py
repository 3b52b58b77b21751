"""A message's bytes in a JSON document."""

from __future__ import annotations

import base64


def raw(name: str, data: bytes | None) -> dict[str, str | None]:
    """Bytes as text, or in base64 if they are not UTF-8."""
    try:
        return {name: None if data is None else data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data or b"").decode()}
