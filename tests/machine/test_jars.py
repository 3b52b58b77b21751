"""The jars: fetched by the real Ivy, from a folder that plays the company's mirror, and once from the real one."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from framework.base.errors import SetupError
from framework.host.cli import setup
from framework.machine.java import ivy, jars
from framework.machine.services.ports import free_port
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

FETCH = "import sys; from pathlib import Path; from framework.machine.java import jars; jars.fetch('small', Path(sys.argv[1]))"


@dataclass(frozen=True)
class Mirror:
    """Two small jars in a folder, the Ivy settings that find them there, and their lock file."""

    root: Path
    lock: Path

    @property
    def place(self) -> Path:
        return (self.root / "home" / "jars" / "small").resolve()

    def altered(self, old: str, new: str) -> Path:
        """A copy of the lock file with `new` in the place of `old`."""
        text = self.lock.read_text()
        assert old in text
        copy = self.root / "altered.lock"
        copy.write_text(text.replace(old, new))
        return copy


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    lines = ["# a comment", ""]
    for artifact in ("one", "two"):
        content = artifact.encode() * 1000
        (tmp_path / f"{artifact}-1.0.jar").write_bytes(content)
        lines.append(f"small org.example:{artifact}:1.0 {hashlib.sha256(content).hexdigest()} {len(content)}")
    lock = tmp_path / "test.lock"
    lock.write_text("\n".join(lines) + "\n")
    settings = '<ivysettings><settings defaultResolver="m"/><resolvers><filesystem name="m">'
    settings += (
        f'<artifact pattern="{tmp_path}/[artifact]-[revision](-[classifier]).[ext]"/></filesystem></resolvers></ivysettings>'
    )
    (tmp_path / "settings.xml").write_text(settings)
    monkeypatch.setenv("SLUICE_IVY_SETTINGS", str(tmp_path / "settings.xml"))
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Mirror(tmp_path, lock)


def refused(lock: Path) -> SetupError:
    with pytest.raises(SetupError) as error:
        jars.fetch("small", lock)
    assert error.value.hint
    return error.value


def test_jars_are_downloaded_once_and_then_reused(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="small jars are not on this machine") as error:
        jars.folder("small", mirror.lock)
    assert (error.value.code, error.value.hint) == ("jars-missing", "`sluice setup` downloads them")
    counts: list[tuple[int, int]] = []
    assert jars.fetch("small", mirror.lock, lambda *count: counts.append(count)) == mirror.place
    assert counts and sorted(counts) == counts and counts[-1][0] <= len(b"one" * 1000 + b"two" * 1000) == counts[-1][1]
    (mirror.place / "stray.jar").write_bytes(b"not locked")
    monkeypatch.setenv("JAVA_HOME", str(mirror.root / "nothing"))  # so that a second download would fail
    assert jars.fetch("small", mirror.lock) == mirror.place == jars.folder("small", mirror.lock)
    assert jars.class_path("small", mirror.lock) == f"{mirror.place}/one-1.0.jar:{mirror.place}/two-1.0.jar"
    assert sorted(path.name for path in mirror.place.parent.iterdir()) == ["lock", "small"]


def test_wrong_checksum_names_the_jar_and_keeps_nothing(mirror: Mirror) -> None:
    right = hashlib.sha256(b"two" * 1000).hexdigest()
    altered = mirror.altered(right, "0" * 64)
    error = refused(altered)
    assert error.code == "jar-checksum"
    assert "two-1.0.jar" in error.message and "0" * 64 in error.message and right in error.message
    assert not list(mirror.place.parent.rglob("*.jar"))
    with pytest.raises(SetupError, match="not on this machine"):
        jars.class_path("small", altered)


@pytest.mark.slow
def test_a_truncated_jar_and_a_changed_lock_are_detected_and_repaired(mirror: Mirror) -> None:
    jars.fetch("small", mirror.lock)
    (mirror.place / "one-1.0.jar").write_bytes(b"cut")
    assert jars.bad_jars("small", mirror.lock) == ("one-1.0.jar",)
    with pytest.raises(SetupError):
        jars.folder("small", mirror.lock)
    altered = mirror.altered("two:1.0", "two:1.1")
    (mirror.root / "two-1.1.jar").write_bytes(b"two" * 1000)
    jars.fetch("small", altered)
    assert jars.bad_jars("small", altered) == ()
    assert sorted(path.name for path in mirror.place.glob("*.jar")) == ["one-1.0.jar", "two-1.1.jar"]
    with pytest.raises(SetupError):
        jars.folder("small", mirror.lock)


def test_the_stamp_of_downloaded_jars_is_the_one_of_earlier_versions(tmp_path: Path) -> None:
    jar = ivy.Jar(group="org.example", artifact="small", version="1.0", sha256="ab12", classifier="linux", size=3)
    (tmp_path / jar.file).write_bytes(b"one")
    assert (
        jars._content(tmp_path, (jar,))
        == "9016106b752053c487404a9a4db2e74eb9eb43d1d3770e6f365e604e2dde7913\n3 small-1.0-linux.jar\n"
    )


def test_folders_share_what_their_program_needs(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    jars.fetch("small", mirror.lock)
    monkeypatch.setenv("SLUICE_HOME", str(mirror.root / "second"))
    assert jars.folder("small", mirror.lock) == mirror.place
    shutil.rmtree(mirror.root / "cache")
    jars.fetch("small", mirror.lock)
    assert jars.bad_jars("small", mirror.lock) == ()


def test_a_folder_that_another_program_used_has_jars_for_each(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    jars.fetch("small", mirror.lock)
    first_place, own_jars = mirror.place, ivy.of_pyspark()
    # The machine has one PySpark; another program may have another.
    monkeypatch.setattr("framework.machine.java.ivy.of_pyspark", lambda: [Path("/another/pyspark/jars/a.jar"), *own_jars])
    jars.fetch("small", mirror.lock)
    assert mirror.place != first_place and jars.folder("small", mirror.lock) == mirror.place
    assert sorted(path.name for path in first_place.glob("*.jar")) == ["one-1.0.jar", "two-1.0.jar"]


def test_jars_come_through_the_proxy_of_the_environment(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = []

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # and HEAD
            paths.append(self.path)
            file = mirror.root / self.path.rpartition("/")[2]
            self.send_response(200 if file.exists() else 404)
            self.end_headers()
            if self.command == "GET" and file.exists():
                self.wfile.write(file.read_bytes())

        do_HEAD = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    settings = '<ivysettings><settings defaultResolver="m"/><resolvers><ibiblio name="m" m2compatible="true" '
    settings += 'root="http://mirror.example.com/maven/"/></resolvers></ivysettings>'
    (mirror.root / "far.xml").write_text(settings)
    monkeypatch.setenv("SLUICE_IVY_SETTINGS", str(mirror.root / "far.xml"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with closing(server.socket):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_address[1]}")
        jars.fetch("small", mirror.lock)
        server.shutdown()
    assert "http://mirror.example.com/maven/org/example/one/1.0/one-1.0.jar" in paths
    monkeypatch.setenv("no_proxy", "localhost,.example.com")
    assert list(ivy._proxies())[-1] == "-Dhttp.nonProxyHosts=localhost|*.localhost|example.com|*.example.com"


def test_another_program_uses_the_cache_and_downloads_altered_jars_again(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root can write to each real folder of the machine.
    monkeypatch.setattr("framework.machine.java.jar_cache.shared", lambda _program: Path("/proc/no folder"))
    jars.fetch("small", mirror.lock)
    cached = mirror.root / "cache" / "sluice" / "jars"
    assert sorted(path.name for path in cached.iterdir()) == sorted(jar.sha256 for jar in jars.sets(mirror.lock)["small"])
    (mirror.root / "one-1.0.jar").rename(mirror.root / "gone.jar")
    (mirror.root / "two-1.0.jar").rename(mirror.root / "gone_too.jar")  # so that nothing can be fetched

    monkeypatch.setenv("SLUICE_HOME", str(mirror.root / "second"))
    assert jars.fetch("small", mirror.lock) == mirror.root / "second" / "jars" / "small"
    assert jars.bad_jars("small", mirror.lock) == ()
    assert sorted(path.name for path in (mirror.root / "second" / "jars").iterdir()) == ["lock", "small"]

    altered = cached / hashlib.sha256(b"one" * 1000).hexdigest()
    altered.unlink()
    altered.write_bytes(b"not what it is called by")
    monkeypatch.setenv("SLUICE_HOME", str(mirror.root / "third"))
    error = refused(mirror.lock)
    assert error.code == "jar-missing" and "one:1.0" in error.message and "two" not in error.message
    assert not altered.exists()
    (mirror.root / "gone.jar").rename(mirror.root / "one-1.0.jar")
    jars.fetch("small", mirror.lock)
    assert jars.bad_jars("small", mirror.lock) == () and altered.exists()


def test_everything_works_without_a_cache(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    (mirror.root / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(mirror.root / "file"))
    jars.fetch("small", mirror.lock)
    assert jars.bad_jars("small", mirror.lock) == ()


def test_a_missing_artifact_is_named(mirror: Mirror) -> None:
    error = refused(mirror.altered("two:1.0", "two:9.9"))
    assert error.code == "jar-missing"
    assert "org.example:two:9.9" in error.message and "one:1.0" not in error.message


@pytest.mark.slow
def test_a_jar_that_a_mirror_has_only_later_is_asked_for_again(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    late, downloads = mirror.root / "two-1.0.jar", ivy._ivy
    contents = late.read_bytes()
    late.unlink()

    def ivy_before_it_is_there(*arguments: Any) -> SetupError | None:
        failure = downloads(*arguments)
        late.write_bytes(contents)
        return failure

    # A mirror gets no jar between two tries by itself.
    monkeypatch.setattr(ivy, "_ivy", ivy_before_it_is_there)
    jars.fetch("small", mirror.lock)
    assert jars.bad_jars("small", mirror.lock) == ()


def test_an_unreachable_network_is_an_error(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = '<ivysettings><settings defaultResolver="m"/><resolvers><ibiblio name="m" m2compatible="true" '
    settings += f'root="http://127.0.0.1:{free_port()}/"/></resolvers></ivysettings>'
    (mirror.root / "dead.xml").write_text(settings)
    monkeypatch.setenv("SLUICE_IVY_SETTINGS", str(mirror.root / "dead.xml"))
    error = refused(mirror.lock)
    assert error.code == "jars-network"
    assert "SLUICE_IVY_SETTINGS" in error.hint and "\n" not in error.message
    monkeypatch.setenv("SLUICE_IVY_SETTINGS", "nowhere.xml")
    assert refused(mirror.lock).code == "ivy-settings"


def test_an_archive_is_downloaded_when_it_is_first_used(mirror: Mirror) -> None:
    (mirror.root / "three-1.0-all.tar.gz").write_bytes(b"three")
    jars.fetch("small", mirror.lock)
    right = hashlib.sha256(b"three").hexdigest()
    lock = mirror.altered("# a comment", f"late* org.example:three:1.0:all@tar.gz {right} 5")
    assert set(jars.sets(lock)) == {"small"} and jars.folder("small", lock) == mirror.place
    assert jars.fetch("late", lock) == mirror.place.with_name("late")
    (file,) = jars.files("late", lock)
    assert (file.name, file.read_bytes()) == ("three-1.0-all.tar.gz", b"three")
    (mirror.root / "three-1.1-all.tar.gz").write_bytes(b"threes")
    with pytest.raises(SetupError, match=r"three-1\.1-all\.tar\.gz is not the file") as error:
        jars.fetch("late", mirror.altered("# a comment", f"late* org.example:three:1.1:all@tar.gz {'0' * 64} 5"))
    assert error.value.code == "jar-checksum"
    with pytest.raises(SetupError, match=r"org\.example:three:1\.2:all@tar\.gz"):
        jars.fetch("late", mirror.altered("# a comment", f"late* org.example:three:1.2:all@tar.gz {'0' * 64} 5"))


def test_a_bad_line_of_the_lock_has_its_number(mirror: Mirror) -> None:
    with pytest.raises(SetupError, match=r"altered\.lock:3"):
        jars.sets(mirror.altered("one:1.0", "one"))


@pytest.mark.slow
def test_a_killed_download_and_two_at_once_leave_only_the_jars(mirror: Mirror) -> None:
    """One fetch is killed while its Ivy still writes; two others wait for that Ivy to end, then one of them fetches."""
    slow = mirror.root / "slow" / "bin" / "java"
    slow.parent.mkdir(parents=True)
    slow.write_text(
        '#!/bin/sh\ncase "$*" in *-version*) echo \'version "17.0.1"\'; exit 0;; esac\n'
        f'touch "{mirror.root}/begun"; sleep 0.7; ls "{mirror.place.parent}" > "{mirror.root}/ended"\n'
    )
    slow.chmod(0o755)
    command = [sys.executable, "-c", FETCH, str(mirror.lock)]
    killed = subprocess.Popen(command, env={**os.environ, "JAVA_HOME": str(mirror.root / "slow")})
    until((mirror.root / "begun").exists, "no Ivy was started")
    killed.kill()
    killed.wait()
    (staging,) = mirror.place.parent.glob("fetching-*")
    processes = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert staging.name in (mirror.root / "ended").read_text()  # nobody cleared it away while Ivy was writing there
    assert sorted(path.name for path in mirror.place.parent.iterdir()) == ["lock", "small"]
    assert jars.bad_jars("small", mirror.lock) == ()


def test_the_lock_names_no_address() -> None:
    assert set(jars.sets()) == {"spark", "kafka"}  # what `make setup` gets
    assert set(jars.sets(later=True)) == {"spark", "kafka", "registry", "compiler", "aws", "catalog"}
    assert "://" not in jars.LOCK.read_text()


@pytest.mark.kafka
@pytest.mark.long
def test_the_real_jars_come_through_ivys_own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in jars.sets():
        jars.fetch(name)
        assert jars.bad_jars(name) == ()


@pytest.mark.spark
def test_classes_are_cached_where_that_was_never_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setup is not done until caching was tried; one that is asked to try again after a failure does."""
    assert setup.is_done()
    monkeypatch.setattr("framework.host.class_archive.PATTERNS", ())  # what this machine has stays
    monkeypatch.setattr("framework.host.class_archive.was_tried", lambda: False)  # it was, on this machine
    assert not setup.is_done()
    tried = []
    monkeypatch.setattr("framework.host.class_archive.create", lambda: tried.append("here"))  # takes a minute
    monkeypatch.setattr("framework.host.class_archive.is_kept", lambda: False)  # as where it failed
    setup.get(())
    assert tried == []
    setup.get((), retry=True)
    assert tried == ["here"]


def test_a_session_has_the_classes_that_setup_keeps(spark: SparkSession) -> None:
    from pyspark import SparkContext

    from framework.host import class_archive

    assert class_archive.is_kept(), "make setup"
    java: Any = SparkContext._gateway
    assert re.search(r"/classes-\w+-\w+\.jsa$", Path(f"/proc/{java.proc.pid}/maps").read_text(), re.MULTILINE)
