"""Commands that cannot go on: one named error where there is no Java, one line after Ctrl-C, and no Java left behind."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from framework.host.cli import main
from tests.support.fake_java import fake_java
from tests.support.shop import COPY, NOWHERE, made_by_hand, specs
from tests.support.spec_parts import LAKE
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
SLUICE = (sys.executable, "-c", "from framework.host.cli import main; main(prog_name='sluice')")
BASE = f"""
cluster: main
bootstrap: "{NOWHERE}"
---
{LAKE}---
"""
TESTS = """
tests:
  - name: a trade lands
    given: [{n: 1}]
    expect: [{n: 1}]
"""
# Starts as Spark's launcher asks, then waits for ever, like a Java that PySpark has lost.
HANGING = """#!/bin/sh
case "$*" in
  *org.apache.spark.launcher.Main*) printf '\\0\\n%s\\0wait\\0' "$0";;
  *-version) echo 'openjdk version "17.0.1"' >&2;;
  *) echo $$ > "$STARTED.draft"; mv "$STARTED.draft" "$STARTED"; exec sleep 1000;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".sluice").mkdir()
    (tmp_path / ".sluice" / "jars").symlink_to(ROOT / ".sluice" / "jars")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.yaml").write_text(f"{BASE}{specs('n: bigint')}{TESTS}{COPY}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_HOME", raising=False)
    return tmp_path


@pytest.mark.parametrize("words", [("test",), ("run", "copy"), ("preview", "copy")], ids=" ".join)
def test_a_missing_java_is_one_named_error(words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_by_hand(None)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done
    assert "java-missing: JAVA_HOME is /nowhere, but there is no bin/java in it\n  hint: " in done.stderr
    assert len(done.stderr.splitlines()) == 2


def interrupted(
    folder: Path, words: tuple[str, ...], reached: Callable[[subprocess.Popen[str]], bool], **environment: str
) -> tuple[int, str]:
    """Runs a command, and sends Ctrl-C as a terminal does once `reached` is true; returns its exit status and its stderr."""
    with (folder / "err").open("w+") as errors:
        child = subprocess.Popen(
            [*SLUICE, *words], stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        )  # fmt: skip
        until(lambda: reached(child) or child.poll() is not None, "neither reached nor ended")
        assert child.poll() is None, (folder / "err").read_text()
        os.killpg(child.pid, signal.SIGINT)
        status = child.wait(30)
        until(lambda: not _in_group(child.pid), "processes are left")
        return status, (folder / "err").read_text()


def _in_group(group: int) -> list[str]:
    output = subprocess.run(["ps", "-A", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    fields = [line.split(None, 2) for line in output.splitlines()]
    return [args for pgid, state, *args in fields if pgid == str(group) and not state.startswith("Z")]  # type: ignore[misc]


@pytest.mark.slow
def test_spark_that_does_not_start_is_named(folder: Path) -> None:
    java = fake_java(folder / "jdk", 'openjdk version "17.0.1"')
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": str(java)}
    done = subprocess.run([*SLUICE, "test"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "\nspark-not-started: Spark did not start: its Java ended" in done.stderr and "\n  hint: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [("test",), ("run", "copy"), ("preview", "copy")], ids=" ".join)
def test_ctrl_c_while_spark_starts_is_one_line_and_leaves_no_java(words: tuple[str, ...], folder: Path) -> None:
    made_by_hand(None)
    fake_java(folder / "jdk", "").joinpath("bin", "java").write_text(HANGING)
    started = folder / "started"
    status, errors = interrupted(folder, words, lambda _: started.exists(), JAVA_HOME=str(folder / "jdk"), STARTED=str(started))
    assert (status, errors) == (130, "stopped by Ctrl-C\n")


@pytest.mark.slow
def test_ctrl_c_while_spark_starts_behind_a_progress_bar(folder: Path) -> None:
    """The bar has a thread of its own, which would get the signal."""
    made_by_hand(None)
    fake_java(folder / "jdk", "").joinpath("bin", "java").write_text(HANGING)
    started = folder / "started"
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "JAVA_HOME": str(folder / "jdk"),
        "STARTED": str(started),
        "TERM": "xterm",
    }
    child = subprocess.Popen(
        [*SLUICE, "run", "copy"], stdout=subprocess.PIPE, stderr=theirs, start_new_session=True, env=environment
    )
    os.close(theirs)
    until(lambda: started.exists() or child.poll() is not None, "neither reached nor ended")
    os.killpg(child.pid, signal.SIGINT)
    try:
        assert child.wait(30) == 130
        assert b"stopped by Ctrl-C" in os.read(ours, 10_000)
    finally:
        child.kill()
        os.close(ours)
    until(lambda: not _in_group(child.pid), "processes are left")


@pytest.mark.spark
@pytest.mark.long
def test_ctrl_c_while_tests_run_is_one_line_and_leaves_no_java(folder: Path) -> None:
    test_lines = "".join(f"  - {{name: no {number}, given: [{{n: 1}}], expect: [{{n: 1}}]}}\n" for number in range(40))
    (folder / "specs" / "b.yaml").write_text(
        f"pipeline: again\nfrom: {{topic: trades}}\ninto: {{table: shop.again}}\ntests:\n{test_lines}"
    )
    status, errors = interrupted(
        folder, ("test",), lambda child: "1 test ok" in (child.stdout.readline() if child.stdout else "")
    )
    assert (status, errors) == (130, "stopped by Ctrl-C\n")  # and no remarks of Java's
