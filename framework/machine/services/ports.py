"""Free ports of 127.0.0.1."""

from __future__ import annotations

import os
import random
import socket

from framework.base.errors import SetupError
from framework.machine.processes import listener


def is_free(port: int) -> bool:
    """Whether a server can listen on this port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(count: int = 1) -> int:
    """The first of `count` neighbouring free ports, below those that the system gives to outgoing connections."""
    for port in random.sample(range(20000, 32000), 200):
        if all(is_free(port + step) for step in range(count)):
            return port
    raise SetupError("port-busy", "no free port found between 20000 and 32000", "see what listens there, and stop it")


def pair(variable: str, default: int) -> tuple[int, int]:
    """The port that the environment names, or the default, and the next one."""
    port_text = os.environ.get(variable) or str(default)
    if not port_text.isdecimal() or not 0 < int(port_text) < 65535:
        raise SetupError(
            "port-number", f"{variable} is {port_text!r}, which is not a port", "set it to a number from 1024 to 65534"
        )
    return int(port_text), int(port_text) + 1


def refuse_busy(port: int, service: str, hint: str) -> None:
    """Raise if another process listens on this port."""
    if not is_free(port):
        raise SetupError("port-busy", f"{service} needs port {port}, but {listener(port) or 'another process'} holds it", hint)
