"""The warm JVM: what commands share in it, what they do not, and commands that die while it writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from framework.base.home import turn as turn_of
from framework.core.rules import attempts
from framework.core.spark import session, warm, warm_jvm
from framework.machine import processes
from framework.machine.java import java
from tests.support.accumulations import KILLED
from tests.support.processes import SLUICE
from tests.support.project import Project, plan_for
from tests.support.victims import PATIENCE, victim
from tests.support.waiting import until
from tests.support.warm_homes import LOCKS, jvm, sluice, specs, warm_home

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
__all__ = ["warm_home"]  # a fixture
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Returns a function that counts the starts of Spark."""
    log, program = tmp_path / "starts", tmp_path / "java" / "bin" / "java"
    log.touch()
    program.parent.mkdir(parents=True)
    counts = f'case "$*" in *launcher.Main*) ;; *org.apache.spark.deploy.SparkSubmit*) echo 1 >> {log} ;; esac'
    program.write_text(f'#!/bin/sh\n{counts}\nexec {java.java()} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    return lambda: len(log.read_text().splitlines())


def _has_ended(pid: int) -> bool:
    return processes.began(pid) is None


def test_commands_share_a_jvm(project: Project, warm_home: Path, starts: Callable[[], int]) -> None:
    project.make_topic()
    folder = specs(project)
    project.send_good(30)

    assert "30 rows" in sluice(folder, "run")
    first_pid = jvm()
    assert "lands in" in sluice(folder, "preview", "trades", "--from", "earliest")
    project.send_good(6)
    assert "6 rows" in sluice(folder, "run")
    assert (jvm(), starts()) == (first_pid, 1)
    assert attempts.alive() == []
    assert (warm_home / "warm" / "address").stat().st_mode & 0o077 == 0
    assert (
        f"warm Spark: stopped, process {first_pid}"
        in subprocess.run([*SLUICE, "services", "down"], capture_output=True, text=True, check=True, cwd=warm_home).stdout
    )
    project.assert_exactly_once()


@pytest.mark.long
def test_another_setting_starts_another_and_cold_uses_none(project: Project, warm_home: Path, starts: Callable[[], int]) -> None:
    project.make_topic()
    folder = specs(project)
    project.send_good(3)
    sluice(folder, "run")
    first_pid = jvm()
    main = folder / "main.yaml"
    main.write_text(main.read_text().replace("memory: 2g", "memory: 1g"))
    project.send_good(3)
    assert "3 rows" in sluice(folder, "run")
    assert jvm() != first_pid

    second = jvm()
    project.send_good(3)
    assert starts() == 2
    assert "3 rows" in sluice(folder, "run", "--cold")
    assert (jvm(), starts()) == (second, 3)
    project.assert_exactly_once()


@pytest.mark.long
def test_a_busy_one_is_not_waited_for(project: Project, warm_home: Path) -> None:
    project.make_topic()
    folder = specs(project)
    project.send_good(30)
    with victim(project, "branched", signal.SIGSTOP) as stopped:
        assert "30 rows" in sluice(folder, "run")
        os.kill(stopped.pid, signal.SIGCONT)
        stopped.wait(PATIENCE)
    project.send_good(3)
    sluice(folder, "run")

    project.assert_exactly_once()
    assert project.branches() == []


def killed_while_its_jvm_writes(project: Project) -> str:
    """Kills a run whose JVM is stopped, and returns its attempt, which the JVM could still write."""
    with victim(project, "writing", signal.SIGKILL) as process:
        process.wait(PATIENCE)
    (attempt,) = attempts.alive()
    return attempt


def ends(attempt: str) -> None:
    """Continues the JVM until it ends the work of its dead command."""
    os.kill(jvm(), signal.SIGCONT)
    until(lambda: attempts.is_dead(attempt), "the JVM continues what nobody waits for", 60)


@pytest.mark.parametrize(
    "into",
    ["", *(pytest.param(f", write: {mode}, keys: [id]", marks=pytest.mark.long, id=mode) for mode in ("upsert", "history"))],
)
def test_the_command_dies_while_its_jvm_writes(project: Project, warm_home: Path, into: str) -> None:
    project.template = project.template.replace("{namespace}.trades}}", f"{{namespace}}.trades{into}}}}}")
    project.make_topic()
    folder = specs(project)
    project.send_good(3000, bad_every=10)
    attempt = killed_while_its_jvm_writes(project)
    project.send_good(30, bad_every=10)
    project.run()
    assert attempt in attempts.alive(), "what lives was taken for dead, and forgotten"
    ends(attempt)
    project.send_good(6)
    pid = jvm()
    sluice(folder, "run")

    assert jvm() == pid
    project.assert_exactly_once()
    assert project.branches() == []
    assert len(project.unreferenced()) <= 3


@pytest.mark.long
def test_totals_of_a_command_that_dies_while_its_jvm_writes(project: Project, warm_home: Path) -> None:
    project.template = KILLED
    project.make_topic(3)
    folder = specs(project)
    project.send_good(3000, bad_every=10)
    attempt = killed_while_its_jvm_writes(project)
    ends(attempt)
    project.send_good(31, bad_every=10)
    sluice(folder, "run")

    good_numbers = [number for number in range(3031) if number % 10]
    totals = {row["parity"]: (row["total"], row["trades"]) for row in project.rows()}
    assert totals == {
        key: (sum(numbers), len(numbers)) for key in range(3) if (numbers := [n for n in good_numbers if n % 3 == key])
    }
    assert project.branches() == []


@pytest.mark.long
def test_one_that_died_or_stopped_is_replaced(project: Project, warm_home: Path) -> None:
    project.make_topic()
    folder = specs(project)
    project.send_good(3)
    sluice(folder, "run")
    first_pid = jvm()
    os.kill(first_pid, signal.SIGKILL)
    project.send_good(3)
    assert "3 rows" in sluice(folder, "run")
    second_pid = jvm()
    assert second_pid != first_pid

    stops = (
        "import sys; from pathlib import Path\n"
        "from framework.core.context.context import Context; from framework.host.plans import make\n"
        "context = Context(make(Path(sys.argv[1]))); context.expect(3); context.spark.stop()"
    )
    subprocess.run([sys.executable, "-c", stops, str(folder)], check=True, capture_output=True, cwd=ROOT)
    until(lambda: warm_jvm.living_jvm() is None, "a JVM without a Spark stays", 30)
    project.send_good(3)
    assert "3 rows" in sluice(folder, "run")
    project.assert_exactly_once()


@pytest.mark.long
def test_garbage_in_the_place_of_its_address_loses_no_message_and_leaves_no_jvm(project: Project, warm_home: Path) -> None:
    project.make_topic()
    folder = specs(project)
    address = warm_home / "warm" / "address"
    for garbage in (b"", os.urandom(300), b"1 the-secret a-stranger"):
        project.send_good(3)
        assert "3 rows" in sluice(folder, "run")
        running = jvm()
        address.write_bytes(garbage)
        project.send_good(3)
        assert "3 rows" in sluice(folder, "run")
        until(partial(_has_ended, running), "a JVM that nobody can find stays", 30)
    project.assert_exactly_once()


@pytest.mark.long
def test_one_that_was_started_for_few_rows_is_not_kept_for_many(
    project: Project, warm_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JVM for many rows also serves few; for an unknown number, either does."""
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")
    folder = specs(project)
    main = folder / "main.yaml"
    main.write_text(main.read_text().replace(" -XX:TieredStopAtLevel=1", ""))
    starts = (
        "import sys; from pathlib import Path\n"
        "from framework.core.context.context import Context; from framework.host.plans import make\n"
        "context = Context(make(Path(sys.argv[1])))\n"
        "for rows in sys.argv[2:]: context.expect(int(rows)); context.spark\n"
        "context.spark; context.stop()"
    )

    def used_for(*rows: int) -> int:
        subprocess.run([sys.executable, "-c", starts, str(folder), *map(str, rows)], check=True, capture_output=True, cwd=ROOT)
        return int(jvm())

    def options(pid: int) -> list[str]:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")

    small_jvm = used_for(session.FEW_ROWS)
    assert "-XX:TieredStopAtLevel=1" in options(small_jvm)
    assert used_for() == used_for(session.MANY_ROWS) == small_jvm
    large_jvm = used_for(3, session.MANY_ROWS + 1)
    assert large_jvm != small_jvm
    assert "-XX:TieredStopAtLevel=1" not in options(large_jvm)
    assert used_for(3) == used_for() == large_jvm


@pytest.mark.long
def test_it_ends_when_nobody_comes(project: Project, warm_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two simultaneous commands leases the warm JVM, the other does without; a build server never leases it."""
    folder = specs(project)
    starts = (
        "import sys; from pathlib import Path\n"
        "from framework.core.context.context import Context; from framework.host.plans import make\n"
        "from framework.core.spark import warm, warm_jvm; warm_jvm.IDLE = 2\n"
        "context = Context(make(Path(sys.argv[1]))); context.spark; print(warm.is_leased()); context.stop()"
    )
    command = [sys.executable, "-c", starts, str(folder)]

    def begin() -> subprocess.Popen[str]:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)

    processes = [begin(), begin()]
    assert sorted(process.communicate(timeout=PATIENCE)[0] for process in processes) == ["False\n", "True\n"]
    until(lambda: warm_jvm.living_jvm() is None, "it waits for ever", 30)

    monkeypatch.setenv("CI", "true")
    assert begin().communicate(timeout=PATIENCE)[0] == "False\n"
    assert warm_jvm.living_jvm() is None


def test_commands_and_dagster_want_the_same_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = warm._key({})
    for name in (
        "SLUICE_SPECS",
        "SLUICE_ENV",
        "SLUICE_COLD",
        "DAGSTER_HOME",
        "COLUMNS",
        "TERM_PROGRAM",
        "ZELLIJ_PANE_ID",
        "LC_TERMINAL",
        "HOMEBREW_PREFIX",
        "USER_ZDOTDIR",
    ):
        monkeypatch.setenv(name, "another")
    assert warm._key({}) == key
    monkeypatch.setenv("AWS_PROFILE", "another")
    assert warm._key({}) != key
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    before = warm._key({})
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    assert warm._key({}) != before


def test_a_process_of_spark_submit_has_its_own_jvm(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_COLD")
    monkeypatch.delenv("CI", raising=False)
    assert warm.is_wanted(project.plan)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert not warm.is_wanted(project.plan)


def test_the_spark_that_starts_is_that_of_pyspark(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    session.environment(project.plan)
    assert Path(os.environ["SPARK_HOME"], "bin", "spark-submit").exists()


def test_a_turn_ends_with_the_process_that_has_it(tmp_path: Path) -> None:
    """A JVM that still works for it is ended by the follower itself (`test_fencing.py`)."""
    turn = tmp_path / "turn"
    with turn_of(turn, 0) as is_first, turn_of(turn, 0.2) as is_second:
        assert (is_first, is_second) == (True, False)
    with suppress(ZeroDivisionError), turn_of(turn, 0):
        raise ZeroDivisionError
    with turn_of(turn, 0) as is_third:
        assert is_third


def test_a_jvm_that_ends_at_once_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a JVM that ends at once are deleted; the lock of a JVM in another container stays."""
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(warm_jvm, "began", lambda _: None)  # as if `ps` answered after its end
    with warm_jvm.turn():
        works, over = (warm_jvm.folder() / f"lease-{name}" for name in ("works", "over"))
        over.touch()
        with subprocess.Popen([sys.executable, "-c", LOCKS, str(works)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
            assert owner.stdout and owner.stdout.readline()
            assert not warm_jvm.launch(["true"], {}, "key", ())
            owner.kill()
        assert warm_jvm.living_jvm() is None
        assert [file.name for file in warm_jvm.folder().glob("lease-*")] == ["lease-works"]
    warm_jvm.kill_started()


def test_a_jvm_gets_no_secret_of_a_spec(tmp_path: Path, sluice_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM's environment has no secret but the machine's login, which Java reads itself."""
    monkeypatch.chdir(tmp_path)
    secrets = {"SLUICE_SECRET_A": "1", "AWS_KAFKA_PASSWORD": "2", "AWS_SECRET_ACCESS_KEY": "3"}
    for name, value in (secrets | {"SLUICE_SECRETS": "AWS_KAFKA_PASSWORD, AWS_SECRET_ACCESS_KEY"}).items():
        monkeypatch.setenv(name, value)
    key = warm._key({})
    monkeypatch.setenv("AWS_KAFKA_PASSWORD", "another")
    assert warm._key({}) == key
    monkeypatch.setattr(warm_jvm, "launch", lambda *arguments: without.update(arguments[-1]))  # a JVM takes seconds
    without: set[str] = set()
    assert warm._leased(plan_for(tmp_path, "127.0.0.1:1"), 1) is None
    assert without & secrets.keys() == {"SLUICE_SECRET_A", "AWS_KAFKA_PASSWORD"}


@pytest.mark.long
def test_a_hundred_commands_leave_one_jvm(project: Project, warm_home: Path) -> None:
    project.more = """
tests:
  - name: one
    given: [{id: 1, price: 950.0}, {message: {raw: not json}}]
    expect: [{id: 1, size: LARGE}]
    expect_bad: [{error: undecodable}]
"""
    command = [sys.executable, "-m", "tests.support.warm_runs", str(specs(project)), "100"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    (first_pid, before), (second_pid, after) = (map(int, line.split()) for line in result.stdout.splitlines())
    assert first_pid == second_pid
    assert after < before * 1.05, after / before


def test_nothing_of_a_command_reaches_the_next(project: Project, warm_home: Path) -> None:
    """Each command finds the JVM as the first one found it."""
    command = [sys.executable, "-m", "tests.support.leftovers", str(specs(project))]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout == "nothing is left\n"


@pytest.mark.long
def test_a_run_of_dagster_attaches(project: Project, warm_home: Path, tmp_path: Path, starts: Callable[[], int]) -> None:
    project.make_topic()
    folder = specs(project)
    project.send_good(3)
    sluice(folder, "run")
    first_pid = jvm()
    project.send_good(3)
    (tmp_path / "defs.py").write_text(
        f"from sluice.dagster import build_sluice_definitions\ndefs = build_sluice_definitions({str(folder)!r})\n"
    )
    (tmp_path / "dagster").mkdir()
    command = [
        str(Path(sys.executable).with_name("dagster")),
        "asset",
        "materialize",
        "--select",
        "*",
        "-f",
        str(tmp_path / "defs.py"),
    ]
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path / "dagster"), "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=PATIENCE)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "batch 2, 3 read" in result.stderr
    assert jvm() == first_pid
    project.send_good(3)
    assert "batch 3, 3 rows" in sluice(folder, "run")
    assert (jvm(), starts()) == (first_pid, 1)
    project.assert_exactly_once()
