"""An object store that speaks the protocol of S3: versitygw, built by Go from what `s3_gateway.mod` names; where there is no Go, moto.

*Guarantee* A file is in its data folder, under `sluice`, once the upload was answered, and survives a restart.
*Limit* One login, for demos and tests. moto keeps files in memory, so that they go with it, and accepts any key.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.hints import pip
from framework.base.home import private
from framework.machine.services import http, process
from framework.machine.services.ports import pair
from framework.machine.services.process import Service

BUCKET, KEY, SECRET, REGION = "sluice", "sluice", "only-on-this-machine", "us-east-1"
_PORT = "SLUICE_S3_PORT"
_MODULE = Path(__file__).parent
_PROGRAM = "github.com/versity/versitygw/cmd/versitygw"
_NO_GO = f"install Go (https://go.dev/dl), or `{pip('moto[s3]', 'flask-cors')}` for one that forgets all files when it stops"


def ports() -> tuple[int, int]:
    return pair(_PORT, 19100)


@contextmanager
def running(home: Path, port: int | None = None) -> Iterator[str]:
    """A private store under `home`, on `port` or on a free one. Yields its URL and always stops it."""
    with process.private_service(SERVICE, home, port) as started:
        yield f"http://{started.address}"


def _get(say: Callable[[str], object]) -> None:
    if _go():
        _gateway(say)
    elif importlib.util.find_spec("moto") is None:
        raise SetupError("no-go", "the object store is built by Go, which is not on this machine", _NO_GO)
    else:
        say("s3: there is no Go to build versitygw, so moto is started, which forgets all files when it stops")


def _go() -> bool:
    return shutil.which("go") is not None


def _gateway(say: Callable[[str], object] = lambda _: None) -> Path:
    """The path of the gateway's program, built if it is missing. Go checks the hash of each module."""
    place = private("programs")
    module = (_MODULE / "s3_gateway.mod").read_bytes()
    program = place / "versitygw"
    with process.turn(place):
        if program.exists() and (place / "go.mod").exists() and (place / "go.mod").read_bytes() == module:
            return program
        say("s3: building versitygw, once; a minute or two ...")
        program.unlink(missing_ok=True)
        (place / "go.mod").write_bytes(module)
        shutil.copyfile(_MODULE / "s3_gateway.sum", place / "go.sum")
        build = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", "versitygw.new", _PROGRAM]
        process.prepare("the build of the object store by Go", _NO_GO, place, *build)
        (place / "versitygw.new").rename(program)
    return program


def _prepare(folder: Path, ports: tuple[int, ...]) -> tuple[str, ...]:
    if not _go():
        return (sys.executable, "-c", MOTO, str(ports[0]), BUCKET)
    (folder / "data" / BUCKET).mkdir(parents=True, exist_ok=True)
    login = ("--access", KEY, "--secret", SECRET, "--region", REGION)
    return (str(_gateway()), "--port", f"127.0.0.1:{ports[0]}", *login, "--quiet", "posix", "data")


# A bucket is there before the server answers.
MOTO = """
import sys
import boto3
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", int(sys.argv[1]))
server.start()
login = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
boto3.client("s3", endpoint_url=f"http://127.0.0.1:{sys.argv[1]}", **login).create_bucket(Bucket=sys.argv[2])
server._thread.join()
"""


def _answers(port: int) -> bool:
    """Whether the bucket is there. A refusal counts, too, since this request has no login."""
    return http.status(port, "HEAD", f"/{BUCKET}") in (200, 403)


SERVICE = Service(
    name="s3",
    ports=ports,
    prepare=_prepare,
    answers=_answers,
    variable=_PORT,
    move=f"stop it, or choose another port with {_PORT}, for instance {_PORT}=29100 (29101 is used too)",
    get=_get,
)
