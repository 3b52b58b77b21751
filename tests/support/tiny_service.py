"""The smallest local service."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from framework.machine.services.ports import free_port
from framework.machine.services.process import Service

LISTEN = """
import signal, socket, sys
print("signals", signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, signal.getsignal(signal.SIGINT), flush=True)
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    server.accept()[0].close()
"""


def tiny(code: str = LISTEN, *arguments: str, patience: float = 10.0) -> Service:
    def answers(port: int) -> bool:
        with socket.socket() as probe:
            return not probe.connect_ex(("127.0.0.1", port))

    def prepare(folder: Path, ports: tuple[int, ...]) -> tuple[str, ...]:
        return (sys.executable, "-c", code, str(ports[0]), *arguments)

    return Service(
        name="tiny", ports=lambda: (free_port(),), prepare=prepare, answers=answers, move="choose another", patience=patience
    )
