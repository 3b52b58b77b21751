"""Whether a server of this machine answers by HTTP, without urllib, which would ask a company's proxy for 127.0.0.1."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException

from framework.base.patience import CONNECTING


def status(port: int, method: str, path: str) -> int | None:
    """The status of the server's answer; None if there is none."""
    connection = HTTPConnection("127.0.0.1", port, timeout=CONNECTING)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
