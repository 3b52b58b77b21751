"""`sluice demo`: real servers, the specs of this folder, Dagster, Iceberg."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.errors import SluiceError
from framework.base.home import dagster_home, home
from framework.base.hosts import port_here
from framework.base.patience import STUCK
from framework.host.cli import _addresses, _specs
from framework.machine.processes import end_group

if TYPE_CHECKING:
    from rich.console import Console

    from framework.machine.services import ServiceState
    from framework.operations.observe.progress import PipelineProgress
    from framework.operations.send.generate import GeneratedMessage, Writers
    from framework.plan import Plan, Topic

SECTION, ORDER = "try and tidy", 10

_MESSAGES = 12_000  # for each topic
_BAD = {
    "stock_trades": (
        b"not json",
        b'{"side": "BUY", "price": "a lot"}',
        b'{"side": "SELL", "quantity": 12.5, "price": 99.5}',
        b'{"side": "BUY", "quantity": 100}',
        b'{"side": "SELL", "price": 1.5, "at": "yesterday"}',
        b'{"side": "BUY", "price": 2.5} {"side": "SELL", "price": 3.5}',
        None,
    )
}


@click.command()
def command() -> None:
    """Run the whole demo: Kafka, the specs of this folder, Dagster, Iceberg.

    Sends messages that the specs `generate` to a real Kafka and loads them into Iceberg tables, in a folder that `sluice init` made or in
    a clone of Sluice.

    Starts Kafka on this machine, and the registry and the mail server if the specs name these, and stops what it started again unless
    KEEP=1. Another demo adds new messages and continues where this one ended.

    Example: sluice demo
    """
    from rich.console import Console

    from framework.host.cli import _landed, _onward

    if not Path("specs").is_dir():
        raise SluiceError("no-specs", "there are no specs here", "`sluice init` makes some; then run the demo again")
    _specs.set_up()
    console = Console(width=None if sys.stdout.isatty() else 130)
    began = time.monotonic()
    with _interruptible(), _services(console) as running:
        from framework.operations.observe.progress import read_progress
        from framework.systems import secrets

        kafka = running[0]
        os.environ["SLUICE_VAR_KAFKA"] = str(kafka.address)
        plan = _specs.plan(Path("specs"), "local")
        if not any(topic.generator for topic in plan.topics):
            raise SluiceError(
                "no-specs",
                "no topic of these specs says how to `generate` messages",
                "add `generate` to a topic, as `sluice init` does",
            )
        secrets.make_up((key.secret.name for pipeline in plan.pipelines for key in pipeline.mask_keys), plan.secrets)
        sent = _send(console, plan, str(kafka.address))
        before = {progress.pipeline: progress for progress in read_progress(plan)}
        sent_before, mails_before = _onward.messages_sent(plan, kafka), _onward.received()
        with _doing(console, "Dagster materializes every table"):
            _materialize()
        after = read_progress(plan)
        _landed.show(console, plan, before, after)
        _onward.show_topics(console, plan, _onward.messages_sent(plan, kafka) - sent_before)
        _onward.show_mails(console, [file for file in _onward.received() if file not in mails_before], _page(running))
        _stream(console, plan, str(kafka.address))
        _print_end(console, plan, sent, time.monotonic() - began, running)
        _require_all(after)


@contextmanager
def _services(console: Console) -> Iterator[tuple[ServiceState, ...]]:
    """The running services that the specs need, Kafka first; the ones that did not run before are stopped again."""
    from framework.host.cli import _needed
    from framework.machine import services

    _needed.name_ports()
    names = _needed.services_of(Path("specs"), "local")
    says = f"Services start ({', '.join(names)})" if names[1:] else "Kafka starts"
    with _doing(console, says), _addresses.used(_addresses.named(Path("specs"), "local")):
        states = services.up(names, console.print)
    started = [state.name for state in states if state.changed]
    try:
        yield states
    finally:
        if started and not _keep():
            former_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C would leave them running
            services.down(started)
            signal.signal(signal.SIGINT, former_handler)


@contextmanager
def _interruptible() -> Iterator[None]:
    """End the demo on SIGTERM and on a closed terminal as on Ctrl-C."""

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    former_handlers = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in former_handlers.items():
            signal.signal(number, handler)


@contextmanager
def _doing(console: Console, title: str) -> Iterator[None]:
    """Print the current part of the demo, and how long it took."""
    began = time.monotonic()
    with console.status(f"{title} …"):
        yield
    console.print(f"{title}: {time.monotonic() - began:.1f} s", markup=False, highlight=False)


def _send(console: Console, plan: Plan, address: str) -> int:
    from framework.core.schemas.write_schemas import current_schemas, register_new
    from framework.operations.send import generate

    total = 0
    # Only into the demo's own Kafka, and with schemas in a registry of this machine: a spec may name others.
    for topic in (topic for topic in plan.topics if topic.generator and topic.cluster.bootstrap == address):
        if topic.registered and port_here(topic.cluster.registry or "") is None:
            continue
        with _doing(console, f"{_MESSAGES:,} messages for {topic.name}"):
            schemas = register_new(topic, plan.secrets, current_schemas(topic, plan.secrets))
            writers = {schema.of: schema.writer for schema in schemas}
            generate.ensure_topic(topic, plan.secrets)
            total += generate.send(topic, plan.secrets, _messages(topic, writers)).messages
    return total


def _messages(topic: Topic, writers: Writers) -> Iterable[GeneratedMessage]:
    """Messages of the last minutes, and some that cannot be decoded."""
    from framework.operations.send import generate

    assert topic.generator is not None
    rate = max(topic.generator.rate, _MESSAGES / 120)
    topic = replace(topic, generator=replace(topic.generator, rate=rate))
    start = datetime.now(timezone.utc) - timedelta(seconds=_MESSAGES / rate)
    generated = itertools.islice(generate.messages(topic, None, start, writers), _MESSAGES)
    return itertools.chain((generate.GeneratedMessage(b"bad", value) for value in _BAD.get(topic.name, ())), generated)


def _materialize() -> None:
    """Materialize every asset, by Dagster's own command in its own process; its output goes into a log file."""
    from framework.host.ui import DEFINITIONS

    # By its path: own steps hide the package of the same name.
    command = [sys.executable, "-m", "dagster", "asset", "materialize", "--select", "*", "-f", str(DEFINITIONS)]
    environment = {**os.environ, "DAGSTER_HOME": str(dagster_home()), "SLUICE_ENV": "local"}
    with open(_log(), "wb") as log:
        # In a session of its own: Ctrl-C reaches only the demo, which then ends the child and its JVM together.
        child = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        status = child.wait(STUCK)
    except subprocess.TimeoutExpired:
        raise _failed(f"Dagster did not end within {STUCK:.0f} seconds") from None
    finally:
        end_group(child)
    if status != 0:
        raise _failed(f"Dagster ended with exit status {status}")


def _stream(console: Console, plan: Plan, address: str) -> None:
    """Show a pipeline that runs on new data, as `sluice stream` runs it."""
    from framework.host.cli import _streamed

    if pipeline := _streamed.streamed(plan, address):
        with _doing(console, f"`sluice stream {pipeline.name}` for ten seconds, behind its start"):
            seconds = _streamed.delays(plan, pipeline, home() / "stream.log")
        console.print(_streamed.words(pipeline, seconds), markup=False, highlight=False, soft_wrap=True)


def _failed(message: str) -> SluiceError:
    from framework.machine.services.process import failed

    return failed(message, Path(_relative(_log())), "demo-failed", lines=25)


def _print_end(console: Console, plan: Plan, sent: int, seconds: float, running: tuple[ServiceState, ...]) -> None:
    from framework.features.export import records

    exports = {document.name: records.by_window(document.value.journal_name) for document in plan.documents_of("export")}
    sluice = ".venv/bin/sluice" if Path(".venv/bin/sluice").exists() else "sluice"
    pipeline = plan.pipeline("flagged_stock_trades") or plan.pipelines[0]
    commands = [
        (f"{sluice} plan", "what ran: columns, types, tables"),
        (f"{sluice} bad-rows {pipeline.name}", "the bad rows, and why"),
        (f'{sluice} query "select * from {pipeline.table.identifier} limit 10"', "a table, queried with SQL"),
        *(
            (f"cat {[*written.values()][-1].file}", f"the file of the export {name}")
            for name, written in exports.items()
            if written
        ),
        (f"{sluice} ui", "tables, runs and plots in a browser"),
        (f"less {_relative(_log())}", "Dagster's log"),
    ]
    if page := _page(running):
        commands.append((f"{sluice} services up mail", f"the mails, at {page}"))
    stopped = ", ".join(state.name for state in running if state.changed)
    if stopped and not _keep():
        demo = "make demo" if Path("Makefile").exists() else f"{sluice} demo"
        last_line = (
            f"Stopped: {stopped}; their data stays. Another `{demo}` continues from here, `KEEP=1 {demo}` leaves them running."
        )
    else:
        topic = next(topic.name for topic in plan.topics if topic.generator)
        commands.append((f"{sluice} generate {topic} --for 1m", f"more messages; `{sluice} run` loads them"))
        last_line = f"Kafka still runs at {running[0].address}: `{sluice} services down` stops all services."
    width = max(len(command) for command, _ in commands)
    lines = [f"{sent:,} messages sent and landed in {seconds:.0f} s. Next:"]
    lines += [f"  {command:<{width}}  {purpose}" for command, purpose in commands]
    console.print("\n".join([*lines, last_line]), markup=False, highlight=False, soft_wrap=True)


def _page(running: Iterable[ServiceState]) -> str:
    """The page of the mail server, where it runs."""
    return next((state.page for state in running if state.page), "")


def _require_all(states: Iterable[PipelineProgress]) -> None:
    for state in states:
        if state.trouble is not None:
            raise state.trouble
        if state.lag:
            raise SluiceError("demo-failed", f"{state.lag:,} messages did not land in {state.table}", f"read {_relative(_log())}")


def _log() -> Path:
    return home() / "demo.log"


def _relative(path: Path) -> str:
    return os.path.relpath(path)


def _keep() -> bool:
    return os.environ.get("KEEP") == "1"
