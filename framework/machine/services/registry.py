"""A schema registry, Apicurio, which speaks Confluent's API; from the archive that jars.lock names.

*Guarantee* Acknowledged schemas are in its data folder and survive a restart, also after a kill.
*Limit* One server without a login, for demos and tests. Like every Apicurio, it checks no compatibility until a rule is set.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from framework.machine.services import http, process
from framework.machine.services.ports import pair
from framework.machine.services.process import Service

API = "/apis/ccompat/v7"
_PORT = "SLUICE_REGISTRY_PORT"
_SETTINGS = {
    "quarkus.http.host": "127.0.0.1",
    "quarkus.management.host": "127.0.0.1",
    "quarkus.http.access-log.enabled": "false",  # the log would grow by a line a request, for ever
    "quarkus.otel.sdk.disabled": "true",
    "apicurio.storage.kind": "sql",
    "apicurio.storage.sql.kind": "h2",
    "apicurio.datasource.url": "jdbc:h2:file:./data/registry;WRITE_DELAY=0",  # else half a second can be lost with a kill
    "apicurio.datasource.jdbc.initial-size": "1",
    "apicurio.datasource.jdbc.min-size": "1",
    "apicurio.datasource.jdbc.max-size": "10",
}


def ports() -> tuple[int, int]:
    """The port of its API, and the next port, for its health page."""
    return pair(_PORT, 18081)


def java() -> Path:
    """The `java` program that runs it."""
    from framework.machine.java.java import at_least

    return at_least(21, "the registry")


@contextmanager
def running(home: Path, port: int | None = None) -> Iterator[str]:
    """A private registry under `home`, on `port` or on free ports. Yields its URL and always stops it."""
    with process.private_service(SERVICE, home, port) as started:
        yield f"http://{started.address}{API}"


def _get(say: Callable[[str], object]) -> None:
    from framework.machine.java import jars

    java()  # fails before 158 MB are downloaded for nothing
    if not jars.are_here("registry"):
        say("registry: downloading Apicurio, 158 MB, once ...")
    _app()


def _app() -> Path:
    """The folder of the unpacked archive, which is downloaded and unpacked if it is missing."""
    import tarfile

    from framework.machine.java import jars

    jars.fetch("registry")
    (archive,) = jars.files("registry")
    app = archive.with_name(archive.name.removesuffix(".tar.gz"))
    with process.turn(archive.parent):
        if not app.exists():
            for old in filter(Path.is_dir, archive.parent.iterdir()):  # another version's, or one that was cut off
                shutil.rmtree(old)
            draft = archive.parent / "unpacking"
            with tarfile.open(archive) as tar:
                tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)  # absent before 3.10.12
                tar.extractall(draft)
            draft.rename(app)
    return app


def _prepare(folder: Path, ports: tuple[int, ...]) -> tuple[str, ...]:
    shutil.rmtree(folder / "tmp", ignore_errors=True)  # one that was killed leaves a megabyte there
    (folder / "tmp").mkdir()
    settings = {**_SETTINGS, "quarkus.http.port": str(ports[0]), "quarkus.management.port": str(ports[1])}
    return (
        *(str(java()), "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
        *("-XX:ErrorFile=crash.log", "-Djava.io.tmpdir=tmp"),
        *(f"-D{name}={value}" for name, value in settings.items()),
        *("-jar", str(_app() / "quarkus-run.jar")),
    )


def _answers(port: int) -> bool:
    return http.status(port, "GET", f"{API}/subjects") == 200


SERVICE = Service(
    name="registry",
    ports=ports,
    prepare=_prepare,
    answers=_answers,
    variable=_PORT,
    move=f"stop it, or choose another port with {_PORT}, for instance {_PORT}=28081 (28082 is used too)",
    get=_get,
)
