"""`sluice stream` as a process: what it tells, whom it answers, how it ends, and what it leaves where it is killed."""

from __future__ import annotations

import os
import random
import select
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from framework.core.iceberg import table_state
from tests.support.alerting import alert, mail_by
from tests.support.mail_server import Mailbox, mail_server
from tests.support.project import Project
from tests.support.stream_specs import MORE
from tests.support.streaming import ROOT, SLUICE, Streaming, streaming
from tests.support.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]


def test_it_loads_answers_and_ends(project: Project, tmp_path: Path) -> None:
    project.more = "run: {every: 1s}"
    project.make_topic()
    project.send_good(20, bad_every=10)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        place = str(tmp_path / "notify")
        systemd.bind(place)
        words: list[bytes] = []
        reader = threading.Thread(target=lambda: words.extend(iter(partial(systemd.recv, 100), b"STOPPING=1")), daemon=True)
        with streaming(project, NOTIFY_SOCKET=place) as stream:
            until(lambda: bool(select.select([systemd], [], [], 0)[0]), "systemd is told nothing", 120)
            stream.wait_for(18)  # the stream loads although nobody reads what systemd is told
            reader.start()
            assert stream.ask("/healthz")[0] == 200
            status, ready = stream.ask("/readyz")
            assert (status, ready["away"], ready["problems"]) == (200, [], "")
            assert ready["pipelines"]["trades"]["state"] in ("waits", "runs")
            assert stream.ask("/")[0] == 404
            until(lambda: len(words) >= 4, f"systemd is told {words}", 30)
            assert words[0] == b"READY=1" and set(words[1:]) == {b"WATCHDOG=1"}
            (batch,) = [event for event in stream.events if event["event"] == "BatchDone"][:1]
            assert (batch["pipeline"], batch["batch"], batch["rows"], batch["bad"]) == ("trades", 1, 18, 2)
            assert batch["attempt"] and batch["snapshot"]
            project.send_good(10)
            stream.wait_for(28)
            metrics = stream.metrics()
            assert 'sluice_written_rows_total{pipeline="trades",table=' in metrics and "sluice_stream_ready 1.0" in metrics
            (heap,) = [line for line in metrics.splitlines() if line.startswith("sluice_stream_heap_bytes ")]
            assert float(heap.split()[1]) > 1 << 20
            assert stream.end() < 10
            reader.join(10)
            assert not reader.is_alive(), "the last word is that it stops"
    assert stream.errors == []
    project.assert_exactly_once()


@contextmanager
def paused(project: Project, home: Path, when: str) -> Iterator[tuple[Streaming, Mailbox]]:
    """A stream of a table with an alert, whose pipeline has just been paused, and who is told."""
    with mail_server() as (box, port):
        project.more = f"run: {{every: 1s}}\nfresh_within: 1m\n{mail_by(port)}{alert(when)}"
        project.make_topic()
        project.send_good(5)
        with streaming(project, SLUICE_HOME=str(home)) as stream:
            stream.wait_for(5)
            told_by_others(home, stream, "pause")
            yield stream, box
            stream.end()


def test_it_judges_alerts(project: Project, other_home: Path) -> None:
    with paused(project, other_home, "{paused_for: 1s}") as (stream, box):
        until(lambda: bool(box.mails), "no mail tells of the pause", 60)
        told_by_others(other_home, stream, "resume")
        until(lambda: len(box.mails) > 1, "no mail tells of its end", 60)
    lines = [event["message"] for event in stream.told("Alerted")]
    table = f"{project.namespace}.trades"
    assert lines == [f"stopped: {table}: mailed to ops@example.com", f"stopped is over: {table}: mailed to ops@example.com"]
    assert [mail["Subject"] for mail in box.mails] == [f"stopped: {table}", f"stopped is over: {table}"]


@pytest.mark.long
def test_a_mail_tells_within_a_minute_that_a_table_is_late(project: Project, other_home: Path) -> None:
    with paused(project, other_home, "late") as (_, box):
        began = time.monotonic()
        project.send_good(5)
        until(lambda: bool(box.mails), "no mail tells that the table is late", 150)
        seconds = time.monotonic() - began
    print(f"the mail came {seconds:.0f} s after the pipeline stopped")
    assert seconds <= 60 + 60, "`fresh_within` and a minute"


def told_by_others(home: Path, stream: Streaming, command: str) -> None:
    """Gives a command in another process of the same machine."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SLUICE_HOME": str(home)}
    specs = str(stream.process.args[-1])  # type: ignore[index]
    subprocess.run([*SLUICE, command, "trades", "--specs", specs], env=environment, check=True, capture_output=True)


def test_changed_files_are_taken_over(project: Project) -> None:
    project.more = "run: {every: 1s}"
    project.make_topic()
    project.send_good(5)
    with streaming(project) as stream:
        specs = Path(stream.process.args[-1], "main.yaml")  # type: ignore[index, arg-type]
        stream.wait_for(5)
        good = specs.read_text()
        specs.write_text(good.replace("price > 900", "prise > 900"))
        until(lambda: any(event["event"] == "NotTaken" for event in stream.events), "the problem is not told", 30)
        assert "unknown-column" in stream.events[-1]["message"]
        status, ready = stream.ask("/readyz")
        assert status == 503 and "prise" in ready["problems"]
        project.send_good(5)
        stream.wait_for(10)  # what runs goes on
        specs.write_text(good.replace("label: LARGE", "label: HUGE"))
        until(lambda: any(event["event"] == "Changed" for event in stream.events), "the change is not told", 30)
        assert stream.ask("/readyz")[0] == 200
        project.send([b'{"id": 1000, "price": 950}'])
        stream.wait_for(11)
        stream.end()
    assert [row["size"] for row in project.rows() if row["id"] == 1000] == ["HUGE"]


def test_what_a_person_took_back_is_read_again_at_once(project: Project) -> None:
    project.more = "run: {every: 1s}"
    project.make_topic()
    project.send_good(10)
    with streaming(project) as stream:
        stream.wait_for(10)
        project.send_good(10)
        stream.wait_for(20)
        specs = str(Path(project.pipeline.where.file).parent)
        command = [*SLUICE, "rollback", "trades", "--to", "batch:1", "--yes", "--specs", specs]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        stream.wait_for(30)  # and no message has come
        assert stream.end() < 10
    assert sorted(row["id"] for row in project.rows()) == list(range(20))


def test_it_ends_while_spark_starts(project: Project) -> None:
    project.more = "run: {every: 1s}"
    project.make_topic()
    project.send_good(10)
    with streaming(project) as stream:
        until(stream.lives, "the stream does not live", 60)
        assert stream.end() < 10
    project.run()
    project.assert_exactly_once()


def test_a_second_stream_stands_by_and_takes_over(project: Project) -> None:
    project.more = "run: {every: 1s}"
    project.make_topic()
    project.send_good(50)
    with streaming(project) as first:
        first.wait_for(50)
        with streaming(project) as second:
            until(lambda: second.told("StandsBy"), "the second one does not stand by", 60)
            assert "trades" in second.told("StandsBy")[0]["message"]
            assert second.ask("/readyz")[1]["pipelines"]["trades"]["state"] == "stands by"
            project.send_good(50)
            first.wait_for(100)
            first.kill()
            project.send_good(50)
            until(lambda: second.told("TookOver"), "the second one does not take over", 30)
            second.wait_for(50)
            assert second.rows() == 50
            second.end()
    project.assert_exactly_once()


def test_streams_of_two_machines_and_a_kill_lose_and_double_nothing(project: Project, other_home: Path) -> None:
    project.more = "run: {every: 1s}"
    project.make_topic()
    with streaming(project) as first, streaming(project, SLUICE_HOME=str(other_home)) as second:
        for count in range(50, 450, 50):
            project.send_good(50)
            until(lambda count=count: first.rows() + second.rows() >= count, "the rows do not land", 120)  # type: ignore[misc]
        project.send_good(100)
        first.kill()
        with streaming(project) as third:
            project.send_good(100)
            until(lambda: len(project.rows()) == 600, "the rows do not land", 120)
            second.end()
            until(lambda: bool(third.events) or third.lives(), "the third stream does not live", 60)
            third.end()
    project.assert_exactly_once()


TOTALS_AND_ONCE = """---
pipeline: totals
from: {{topic: trades}}
run: {{every: 1s}}
steps: [aggregate: {{by: [price], measures: {{messages: count(*)}}}}]
into: {{table: {namespace}.totals, write: accumulate}}
---
pipeline: once
from: {{topic: trades}}
run: {{every: 1s}}
steps: [dedup: {{keys: [id]}}]
into: {{table: {namespace}.once}}
"""


def numbers(project: Project, table: str, column: str) -> list[int]:
    found = table_state.table(project.pipeline.table.catalog, f"{project.namespace}.{table}")
    return [] if found is None else sorted(found.scan(selected_fields=(column,)).to_arrow()[column].to_pylist())


@pytest.mark.long
def test_kills_at_any_moment_lose_and_double_nothing(project: Project, other_home: Path) -> None:
    """Streams of two machines write tables of each kind in turns; some are killed while Spark starts."""
    project.more = (MORE + TOTALS_AND_ONCE).format(namespace=project.namespace)
    project.make_topic()
    chance, count = random.Random(7), 0
    for number in range(8):
        with streaming(project, **({"SLUICE_HOME": str(other_home)} if number % 2 else {})) as stream:
            until(stream.lives, "the stream does not live", 60)
            end = time.monotonic() + chance.uniform(2, 14)
            while (now := time.monotonic()) < end:
                project.send_good(20)
                count += 20
                until(lambda now=now: time.monotonic() > now + 0.5, "")  # type: ignore[misc]
            stream.kill()
    with streaming(project) as last:
        tables = ("trades", "newest", "once", "copy")
        until(lambda: all(len(numbers(project, table, "id")) == count for table in tables), "the rows do not land", 180)
        until(lambda: sum(numbers(project, "totals", "messages")) == count, "the totals are not there", 60)
        last.end()
    assert all(numbers(project, table, "id") == list(range(count)) for table in tables)


def test_a_port_that_is_taken_is_an_error(project: Project) -> None:
    project.make_topic()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        specs = str(Path(project.pipeline.where.file).parent)
        command = [*SLUICE, "stream", "--port", str(other.getsockname()[1]), "--specs", specs]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 1
    assert "port-busy" in answer.stderr and "--port" in answer.stderr
    assert "Traceback" not in answer.stderr
