"""An Iceberg REST catalog behind OAuth2: the one of Iceberg's own tests, whose tables' files are in the object store of `s3`.

*Guarantee* A commit that was answered is in its data folder and survives a restart, also after a kill.
*Limit* One client without roles, for demos and tests: it proves the protocol, not the rights that a catalog such as Polaris has.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from framework.base.errors import SetupError
from framework.base.patience import STUCK
from framework.machine.services import http, process, s3
from framework.machine.services.ports import pair
from framework.machine.services.process import Service, last_lines

PATH, CLIENT, SECRET = "/api/catalog", "sluice", "only-on-this-machine"
WAREHOUSE = f"s3://{s3.BUCKET}/lake"
_PORT = "SLUICE_CATALOG_PORT"
_SETS = ("catalog", "aws")
_SOURCE = Path(__file__).with_name("CatalogServer.java")
_SERVER = "org.apache.iceberg.rest.CatalogServer"
_LASTS = 3600  # seconds of a token


def ports() -> tuple[int, int]:
    return pair(_PORT, 18182)


@contextmanager
def running(home: Path, store: str, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """A private catalog under `home` on a free port, with its files in the object store at `store`. Yields its URL and always stops it."""
    with process.private_service(_service(lambda: store, settings or {}), home, None) as started:
        yield f"http://{started.address}{PATH}"


def get(say: Callable[[str], object]) -> None:
    """Downloads the catalog's jars and compiles its server."""
    from framework.machine.java import jars

    for name in _SETS:
        if not jars.are_here(name):
            say(f"catalog: downloading the {name} jars, once ...")
            jars.fetch(name)
    _classes()


def _prepare(folder: Path, ports: tuple[int, ...], store: str, extra_settings: Mapping[str, str]) -> tuple[str, ...]:
    from framework.machine.java.java import java

    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "data").mkdir(exist_ok=True)
    settings = {
        "port": str(ports[0]), "path": PATH, "client_id": CLIENT, "client_secret": SECRET, "token_seconds": str(_LASTS),
        "catalog.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "catalog.uri": "jdbc:sqlite:data/catalog.db?busy_timeout=30000",
        "catalog.jdbc.schema-version": "V1",
        "catalog.warehouse": WAREHOUSE,
        "catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "catalog.s3.endpoint": store, "catalog.s3.path-style-access": "true", "catalog.client.region": s3.REGION,
        "catalog.s3.access-key-id": s3.KEY, "catalog.s3.secret-access-key": s3.SECRET,
        "catalog.include-credentials": "true",
        **extra_settings,
    }  # fmt: skip
    file = os.open(folder / "server.properties", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(file, "w", encoding="utf-8") as stream:
        stream.write("".join(f"{name}={value}\n" for name, value in settings.items()))
    return (
        *(str(java()), "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
        *("-XX:ErrorFile=crash.log", "-Djava.io.tmpdir=tmp"),
        *("-cp", os.pathsep.join([str(_classes()), _class_path()]), _SERVER, "server.properties"),
    )


def _class_path() -> str:
    from framework.machine.java import ivy, jars

    drivers = [file for file in jars.files("spark") if file.name.startswith("sqlite-jdbc-")]
    return os.pathsep.join([*map(jars.class_path, _SETS), *map(str, drivers), *map(str, ivy.of_pyspark())])


def _classes() -> Path:
    """The folder with the compiled server, which is compiled if it is missing."""
    from framework.machine.java import jars
    from framework.machine.jvm.build import compiler

    place = jars.folder("catalog") / f"server-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]}"
    with process.turn(place.parent):
        if not place.exists():
            draft = place.with_name("compiling")
            command = [*compiler(), "-encoding", "UTF-8", "-cp", _class_path(), "-d", str(draft), str(_SOURCE)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=STUCK, check=False)
            if done.returncode != 0:
                words = last_lines(done.stdout + done.stderr)
                raise SetupError("service-failed", f"the catalog's server does not compile:{words}", "see `java -version`")
            draft.rename(place)
    return place


def _answers(port: int) -> bool:
    """Whether the server answers: it refuses a request without a token."""
    return http.status(port, "GET", f"{PATH}/v1/config") == 401


def _service(store: Callable[[], str], extra_settings: Mapping[str, str]) -> Service:
    return Service(
        name="catalog",
        ports=ports,
        prepare=lambda folder, ports: _prepare(folder, ports, store(), extra_settings),
        answers=_answers,
        variable=_PORT,
        move=f"stop it, or choose another port with {_PORT}, for instance {_PORT}=28182 (28183 is used too)",
        get=get,
    )


SERVICE = _service(lambda: f"http://127.0.0.1:{s3.ports()[0]}", {})
