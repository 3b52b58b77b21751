"""Services of AWS that are not AWS: Glue, S3, STS and IAM by moto, on one port.

*Limit* All is in memory, so that it goes when this stops, and any login is accepted. Its Glue has no lock: it shows that tables get there,
not that two writers are safe.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.hints import pip
from framework.machine.services import http, process, s3
from framework.machine.services.ports import pair
from framework.machine.services.process import Service

_PORT = "SLUICE_AWS_PORT"


def ports() -> tuple[int, int]:
    return pair(_PORT, 19200)


@contextmanager
def running(home: Path) -> Iterator[str]:
    """Private services under `home`, on a free port. Yields their URL and always stops them."""
    with process.private_service(SERVICE, home, None) as started:
        yield f"http://{started.address}"


def _get(_: Callable[[str], object]) -> None:
    if importlib.util.find_spec("moto") is None:
        raise SetupError(
            "no-moto", "the services of AWS are moto's, which is not installed", f"`{pip('moto[s3]', 'flask-cors')}`"
        )


def _prepare(_: Path, ports: tuple[int, ...]) -> tuple[str, ...]:
    return (sys.executable, "-c", s3.MOTO, str(ports[0]), s3.BUCKET)


SERVICE = Service(
    name="aws",
    ports=ports,
    prepare=_prepare,
    answers=lambda port: http.status(port, "HEAD", f"/{s3.BUCKET}") in (200, 403),
    variable=_PORT,
    move=f"stop it, or choose another port with {_PORT}, for instance {_PORT}=29200 (29201 is used too)",
    get=_get,
)
