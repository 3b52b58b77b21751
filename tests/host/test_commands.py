"""The common parts of all commands: help with an example, exit statuses, names that a shell completes, and no colours in a pipe."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from framework.host.cli import _complete, main
from framework.host.plans import load
from tests.support.spec_parts import LAKE

ROOT = Path(__file__).resolve().parents[2]
SLUICE = (sys.executable, "-c", "from framework.host.cli import main; main(prog_name='sluice')")
SPECS = f"""
cluster: main
bootstrap: "127.0.0.1:1"
---
{LAKE}---
topic: trades
value: json
columns: {{id: bigint}}
---
topic: tracks
kafka_name: raw_tracks
value: string
---
pipeline: trades_by_day
from: {{topic: trades}}
into: {{table: shop.trades}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.yaml").write_text(SPECS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completed(*words: str) -> list[str]:
    """The words that bash would offer for the last word, asked as the script of `sluice completion bash` asks."""
    line = " ".join(["sluice", *(word or '""' for word in words)])
    request = {"_SLUICE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **request}
    result = subprocess.run(SLUICE, env=environment, capture_output=True, text=True, check=False)
    assert result.stderr == ""
    return [line.partition(",")[2] for line in result.stdout.splitlines() if line]


@pytest.mark.slow
def test_completion_offers_names_and_never_prints_errors(folder: Path) -> None:
    assert completed("peek", "tr") == ["tracks", "trades"]
    assert completed("topics", "create", "trad") == ["trades"]
    assert completed("run", "tra") == ["trades_by_day"]
    assert completed("run", "trades_by_day", "tra") == []
    assert completed("pee") == ["peek"]
    assert completed("peek", "--from", "e") == ["earliest"]
    (folder / "specs" / "b.yaml").write_text("topic: trams\nvalue: nonsense\n")
    assert completed("peek", "tr") == ["tracks", "trades", "trams"]
    pipeline_text = "pipeline: x\nalso:\n  - topic: trail_of_x\n    value: avro\n\n  - {delta: true}\ninto: {topic: trash}\n"
    (folder / "specs" / "b.yaml").write_text(
        f"{pipeline_text}---\npipeline: y\nalso: [{{topic: 'trace_of_y'}}, {{topic: trace_2}}]\n"
    )
    assert completed("peek", "tr") == ["trace_2", "trace_of_y", "tracks", "trades", "trail_of_x"]
    assert completed("topics", "delete", "trai") == ["trail_of_x"]
    assert completed("send", "tr") == ["tracks", "trades"]
    (folder / "specs" / "b.yaml").write_text("topic: [\n")
    assert completed("peek", "trac") == ["tracks"]
    assert completed("peek", "--specs", "nowhere", "tr") == []
    (folder / "specs" / "environments" / "big").mkdir(parents=True)
    (folder / "specs" / "environments" / "big" / "c.yaml").write_text("# of big\n\ntopic: 'traces'  # one\nvalue: string\n")
    assert completed("peek", "trac") == ["tracks"]
    assert completed("peek", "--env", "big", "trac") == ["traces", "tracks"]


def test_completion_offers_all_names_of_the_shipped_specs() -> None:
    spec_documents = load(ROOT / "specs")
    for kind, complete in (("pipeline", _complete.pipelines), ("topic", _complete.topics)):
        with click.Context(main) as context:
            context.params["specs"] = ROOT / "specs"
            assert complete(context, main.params[0], "") == sorted(
                name for document_kind, name in spec_documents.names if document_kind == kind
            )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_each_shell(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert f"_SLUICE_COMPLETE={shell}_complete" in result.output
    assert "sluice" in result.output
    if shell == "bash" and shutil.which("bash"):
        subprocess.run(["bash", "-n"], input=result.output, text=True, check=True)


@pytest.mark.slow
def test_bash_completes_with_the_script(folder: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    script = CliRunner().invoke(main, ["completion", "bash"]).output
    script_file = folder / "sluice"
    script_file.write_text(f'#!/bin/sh\nexec {shlex.join(SLUICE)} "$@"\n')
    script_file.chmod(0o755)
    commands = f'{script}\nCOMP_WORDS=(./sluice peek trad); COMP_CWORD=2; _sluice_completion ./sluice; echo "${{COMPREPLY[@]}}"'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(["bash", "-c", commands], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["trades"]


def test_an_unexpected_error_is_one_line_and_a_log_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("framework.host.plans.make", broken)  # no spec is known that does this
    result = CliRunner().invoke(main, ["plan"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("unexpected-error: RuntimeError: boom\n  hint: run again; if it comes back, report it with ")
    (log,) = (tmp_path / "home" / "logs").iterdir()
    assert log.name.startswith("plan-") and 'raise RuntimeError("boom")' in log.read_text()


def on_a_terminal(code: str, **environment: str) -> str:
    """The output of a program that writes to a terminal."""
    pid, screen = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment})
        os.execv(sys.executable, [sys.executable, "-c", code])
    output = b""
    try:
        while chunk := os.read(screen, 4096):
            output += chunk
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(screen)
    assert os.waitpid(pid, 0)[1] == 0, output
    return output.decode()


PROGRESS = """
import threading, click
from framework.host.cli import _progress
_progress._QUICK = {quick}
with _progress.bar("trades", "messages", 400) as shown:
    if not _progress._QUICK:
        for each in threading.enumerate():
            if "_show" in each.name:
                each.join()  # the bar is there
    shown.phase("writing")
    for done in range(1, 5):
        with shown.hidden():
            click.echo(f"batch {{done}}")
        shown.update(done * 100, rate=50.0)
print("the end")
"""


@pytest.mark.slow
def test_long_work_shows_a_bar_on_a_terminal() -> None:
    output = on_a_terminal(PROGRESS.format(quick=0))
    assert "trades" in output
    assert re.search(r"0 of 400 messages, \d+ s, writing", output), "what a batch does before its messages are counted"
    assert "200 of 400 messages, 50/s, 4 s left" in output
    assert re.findall(r"batch \d\r\n", output) == [f"batch {number}\r\n" for number in range(1, 5)]
    assert output.endswith("\x1b[2Kthe end\r\n"), "the bar is still there"
    assert output.count("\x1b[?25l") == output.count("\x1b[?25h"), "the cursor is hidden"


@pytest.mark.slow
def test_quick_work_shows_no_bar() -> None:
    output = on_a_terminal(PROGRESS.format(quick="_progress._QUICK"))
    assert output == "batch 1\r\nbatch 2\r\nbatch 3\r\nbatch 4\r\nthe end\r\n"


@pytest.mark.slow
def test_a_pipe_gets_no_bar() -> None:
    code = PROGRESS.format(quick=0)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FORCE_COLOR": "1"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("batch 1\nbatch 2\nbatch 3\nbatch 4\nthe end\n", "")


COLOURS = "from framework.host.cli import main; main(['doctor'], standalone_mode=False, prog_name='sluice')"
COLOURED = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.slow
def test_colours_appear_only_on_terminals_without_no_color() -> None:
    code = f"import contextlib\nwith contextlib.suppress(SystemExit): {COLOURS.partition('; ')[2]}"
    code = f"from framework.host.cli import main\n{code}"
    assert COLOURED.search(on_a_terminal(code))
    assert not COLOURED.search(on_a_terminal(code, NO_COLOR="1"))
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "\x1b" not in piped.stdout


@pytest.mark.slow
@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_keeps_on_says_what_it_does_at_once_and_how_it_ended(
    folder: Path, monkeypatch: pytest.MonkeyPatch, interrupt: signal.Signals
) -> None:
    monkeypatch.setenv("SLUICE_HOME", str(folder / "home"))
    assert CliRunner().invoke(main, ["pause", "trades_by_day"]).exit_code == 0
    process = subprocess.Popen(
        [*SLUICE, "run", "--every", "5s"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stderr is not None and process.stdout is not None
    assert process.stderr.readline() == "loading trades_by_day every 5s; Ctrl-C stops after the batch that is under way\n"
    assert "left out" in process.stdout.readline()
    process.send_signal(interrupt)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "stopped: nothing was loaded\n")


def test_a_signal_may_come_at_any_moment_of_a_wait() -> None:
    """An event of Python's own holds its lock when it begins to wait, and its `set` takes that lock."""
    code = """
import os, signal, threading
from framework.host.cli._interrupted import until_interrupted

wait = threading.Condition.wait

def interrupted(condition, timeout=None):
    signal.raise_signal(signal.SIGTERM)
    return wait(condition, timeout)

with until_interrupted() as stop:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    threading.Condition.wait = interrupted
    assert stop.wait(10) and stop.wait(0) and stop.is_set()
"""
    subprocess.run([sys.executable, "-c", code], timeout=20, check=True, cwd=ROOT)


def test_paused_pipelines_are_left_out_unless_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_HOME", str(folder / "home"))
    run = CliRunner().invoke
    assert run(main, ["pause", "trades_by_day"]).exit_code == 0
    result = run(main, ["run"])
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert re.fullmatch(r"trades_by_day: paused since \S+, left out\n", result.stdout)
    named_result = run(main, ["run", "trades_by_day"])
    assert (named_result.exit_code, named_result.stdout) == (1, "")
    assert "trades_by_day: pipeline-paused: trades_by_day is paused since" in named_result.stderr
