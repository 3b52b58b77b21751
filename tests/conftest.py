"""The parts that tests share: one Kafka and one Spark per test process, both real, and projects in folders of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from framework.host.components import all_components
from tests.support.halves import Halves
from tests.support.project import Project, plan_for
from tests.support.repository import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.decoders import Decoders
    from tests.support.registry_project import Registered

PLANNING = all_components()
PLANNING.__enter__()  # to the end of the process, for tests of parts of planning
settings.register_profile("without a bar of seconds", deadline=None)
settings.load_profile("without a bar of seconds")
os.environ["SLUICE_COLD"] = "1"  # no process is left behind but in test_warm.py
# Most Sparks here live for seconds. Without the second option Java keeps the code of its first compiler in a fifth of the space, and
# searches it for what can go for a third of the time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")


# All tests of these files need the result of one costly fixture, so that they go to one process.
TOGETHER = ("tests/operations/test_test_command.py", "tests/messages/test_values.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests go to the processes one by one, but for whole files. `--dist loadgroup` would say the same by marks; with pytest 9.2 xdist 3.8
    passes these over. The quick ones go by files: to hand one over takes longer than to run it."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    quick = "not slow" in config.option.markexpr

    class OneByOne(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if quick or file in TOGETHER else nodeid

    return OneByOne(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--half", type=int, choices=(1, 2), help="only the files of one half: with two such processes, none reads all"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Halves(config))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take minutes begin first: at the end, one process would run them alone."""
    items.sort(key=lambda item: "test_soak" not in item.nodeid)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Writes the exit status for `.ci/run`, which only sees the answer of make."""
    if not hasattr(session.config, "workerinput") and getattr(session.config, "cache", None):
        session.config.cache.set("sluice/status", int(exitstatus))


@pytest.fixture(scope="session")
def sluice_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder of this test process, with the jars that `make setup` got, and the programs that any test process builds."""
    home = tmp_path_factory.mktemp("home")
    (ROOT / ".sluice" / "programs").mkdir(parents=True, exist_ok=True)
    for name in ("jars", "programs"):
        (home / name).symlink_to(ROOT / ".sluice" / name)
    before = os.environ.get("SLUICE_HOME")
    os.environ["SLUICE_HOME"] = str(home)
    yield home
    os.environ.pop("SLUICE_HOME")
    if before is not None:
        os.environ["SLUICE_HOME"] = before


@pytest.fixture
def other_home(sluice_home: Path, tmp_path: Path) -> Path:
    """The home of another machine, with the jars of this one."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "jars").symlink_to((sluice_home / "jars").resolve())
    return home


@pytest.fixture(scope="session")
def decoders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Decoders]:
    """A JVM with our own decoders and nothing that runs jobs."""
    from tests.support import decoders as decoding

    with decoding.running(tmp_path_factory.getbasetemp().parent / "decoders") as bare_jvm:
        yield bare_jvm


@pytest.fixture(scope="session")
def kafka(sluice_home: Path) -> Iterator[str]:
    from framework.machine.services import kafka as service

    with service.running(sluice_home) as bootstrap:
        yield bootstrap


@pytest.fixture(scope="session")
def registry(sluice_home: Path) -> Iterator[str]:
    from framework.machine.java import jars
    from framework.machine.services import registry as service

    jars.fetch("registry")
    with service.running(sluice_home) as url:
        yield url


@pytest.fixture(scope="session")
def mail_port(sluice_home: Path) -> Iterator[int]:
    """The port of a mail server that keeps what it gets."""
    from framework.machine.services import mail as service

    with service.running(sluice_home) as (port, _):
        yield port


@pytest.fixture(scope="session")
def object_store(sluice_home: Path) -> Iterator[str]:
    from framework.machine.services import s3

    s3._gateway()
    with s3.running(sluice_home) as url:
        yield url


@pytest.fixture(scope="session")
def quick_store(sluice_home: Path) -> Iterator[str]:
    """An object store that starts at once and accepts any login."""
    from framework.machine.services import s3

    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:  # until it has started
            # Where Go is installed, the gateway would run, which takes minutes to build.
            patch.setattr(s3, "_go", lambda: False)
            url = stack.enter_context(s3.running(sluice_home / "quick"))
        yield url


@pytest.fixture(scope="session")
def rest_catalog(sluice_home: Path, quick_store: str) -> Iterator[str]:
    """The URL of an Iceberg REST catalog, whose files are in `quick_store`."""
    from framework.machine.services import catalog

    catalog.get(lambda _: None)
    with catalog.running(sluice_home, quick_store) as url:
        yield url


@pytest.fixture(scope="session")
def aws(sluice_home: Path) -> Iterator[str]:
    """The address of moto's Glue, S3, STS and IAM."""
    from framework.machine.services import aws as service

    with service.running(sluice_home) as url:
        yield url


@pytest.fixture
def kafka_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes calls fail after a moment if no Kafka answers."""
    from framework.core.kafka.cluster import Kafka

    # Commands make this client themselves, and wait for many seconds.
    monkeypatch.setattr(Kafka.__init__, "__defaults__", (0.2,))


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kafka_away: None) -> Path:
    """The current folder, with a state of its own, where no Kafka answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    return tmp_path


@pytest.fixture
def spec_folder(own_folder: Path) -> Path:
    """An empty folder of specs in `own_folder`."""
    folder = own_folder / "specs"
    folder.mkdir()
    return folder


class _Hurried:
    """A clock that is put forward where somebody would wait."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.skipped

    def sleep(self, seconds: float) -> None:
        self.skipped += seconds


@pytest.fixture
def registry_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the pauses between tries to ask a registry."""
    from framework.messages.registry import client

    # The client waits by the clock of the machine, for seconds.
    monkeypatch.setattr(client, "time", _Hurried())


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The project's folder, with the one catalog that all tests of this process share; each test has a namespace of its own."""
    folder = tmp_path_factory.mktemp("lake")
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.fixture(scope="session")
def spark(sluice_home: Path, lake: Path) -> Iterator[SparkSession]:
    from framework.core.spark import session
    from framework.machine.java import jars

    jars.fetch("aws")
    os.environ["SPARK_DIST_CLASSPATH"] = jars.class_path("aws")  # as for a catalog whose files are in an object store
    started = session.start(plan_for(lake, "127.0.0.1:1"))
    yield started
    started.stop()


@pytest.fixture
def lent_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes commands use the test's Spark, and leave it running."""
    # Starting a Spark for each command takes seconds, and a process has only one.
    monkeypatch.setattr("framework.core.spark.start.start", lambda *_: spark)
    # The tests behind this one use it, too.
    monkeypatch.setattr("framework.core.spark.session.stop", lambda _: None)


@pytest.fixture
def large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes batches read only those files of any table that can have their keys, as of large tables."""
    from framework.core.staging import hashes, ranges

    monkeypatch.setattr(ranges, "_SMALL", 0)  # a table of 32 MB takes minutes to load
    monkeypatch.setattr(hashes, "_MUCH", 0)


@pytest.fixture
def many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes batches read only those files of any table that can have their keys, as of small tables with many files."""
    from framework.core.staging import ranges

    monkeypatch.setattr(ranges, "_MANY", 0)  # seventeen batches take half a minute


@pytest.fixture
def project(tmp_path: Path, lake: Path, kafka: str, spark: SparkSession) -> Iterator[Project]:
    new_project = Project(tmp_path, lake, kafka, spark)
    yield new_project
    new_project.close()


@pytest.fixture
def trades(tmp_path: Path, lake: Path, kafka: str, spark: SparkSession, registry: str) -> Iterator[Registered]:
    """A project whose topic is there, and has its schemas in the registry."""
    from tests.support.registry_project import Registered

    new_project = Registered(tmp_path, lake, kafka, spark, registry)
    new_project.make_topic()
    yield new_project
    new_project.close()
