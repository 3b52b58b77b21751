"""Ctrl-C: a command ends at once, in the middle of its work, and prints one line."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

import click

STATUS = 130
"""The exit status that shells give to Ctrl-C."""


@contextmanager
def ends_on_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end the command. Commands that end in another way, such as after a commit, install their own handler."""
    interrupted = False

    def ask(number: int, frame: object) -> None:
        nonlocal interrupted
        interrupted = True
        logging.disable(logging.CRITICAL)  # py4j logs a traceback for each interrupted call
        raise KeyboardInterrupt

    in_front = threading.current_thread() is threading.main_thread()
    former_handler = signal.signal(signal.SIGINT, ask) if in_front else None
    try:
        yield
    except (SystemExit, click.exceptions.Exit):
        raise
    except BaseException as error:
        if not (interrupted or isinstance(error, KeyboardInterrupt)):  # click raises its Abort for a `no` and for Ctrl-C
            raise
        click.echo("stopped by Ctrl-C", err=True)
        sys.exit(STATUS)
    finally:
        if former_handler is not None:
            signal.signal(signal.SIGINT, former_handler)


class _SetBySignal(threading.Event):
    """An event that the handler of a signal may set. With one of Python's own, the handler would wait for ever if the signal came while
    `wait` holds the event's lock; a `SimpleQueue` may be filled at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False
        self._wakings: SimpleQueue[None] = SimpleQueue()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._wakings.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            with suppress(Empty):
                self._wakings.get(timeout=timeout)
                self._wakings.put(None)  # for whoever else waits
        return self._is_set


@contextmanager
def until_interrupted() -> Iterator[threading.Event]:
    """Ctrl-C or SIGTERM stops the run after the current commit; a second Ctrl-C stops it at once."""
    stop = _SetBySignal()

    def ask(number: int, _frame: object) -> None:
        if stop.is_set():
            logging.disable(logging.CRITICAL)  # py4j logs a traceback for each interrupted call
            raise KeyboardInterrupt
        stop.set()

    former_handlers = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in former_handlers.items():
            signal.signal(number, handler)
