"""A mail server that sends nothing on: it keeps each mail, and shows them on a page of this machine.

*Guarantee* A mail that was accepted is in its data folder and survives a restart.
*Limit* Any sender and recipient, no login, no encryption; for demos and tests. Mails stay until their files are deleted.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from framework.base.errors import NotInstalled
from framework.machine.services import http, process
from framework.machine.services.ports import pair
from framework.machine.services.process import Service

_PORT = "SLUICE_MAIL_PORT"
_PROGRAM = Path(__file__).parent / "programs" / "mail_server.py"
DATA = "data"


def ports() -> tuple[int, int]:
    """The port that takes mails, and the next one, of the page."""
    return pair(_PORT, 1025)


def page(ports: tuple[int, ...]) -> str:
    """The address of the page with the mails."""
    return f"http://127.0.0.1:{ports[1]}/"


@contextmanager
def running(home: Path, port: int | None = None) -> Iterator[tuple[int, str]]:
    """A private mail server under `home`, on `port` or on free ports. Yields its port and its page and always stops it."""
    with process.private_service(SERVICE, home, port) as started:
        yield started.ports[0], page(started.ports)


def _get(_: Callable[[str], object]) -> None:
    if importlib.util.find_spec("aiosmtpd") is None:
        raise NotInstalled("aiosmtpd")


def _prepare(folder: Path, ports: tuple[int, ...]) -> tuple[str, ...]:
    (folder / DATA).mkdir(mode=0o700, exist_ok=True)
    return (sys.executable, "-I", str(_PROGRAM), str(ports[0]), str(ports[1]), DATA)


SERVICE = Service(
    name="mail",
    variable=_PORT,
    ports=ports,
    prepare=_prepare,
    answers=lambda port: http.status(port + 1, "GET", "/") == 200,  # the page answers after the other port does
    move=f"stop it, or choose another port with {_PORT}, for instance {_PORT}=21025 (21026 is used too)",
    get=_get,
    page=page,
)
