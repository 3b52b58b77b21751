"""A progress bar for long work, on a terminal only."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from framework.host.cli._terminal import console

_QUICK = 1.0  # seconds; shorter work shows no bar
_INTERVAL = 0.2


class Bar:
    """A progress bar on standard error, so that a pipe gets only the output."""

    def __init__(self, name: str, noun: str, total: int | None, ready: Callable[[], bool]) -> None:
        terminal = console(sys.stderr)
        silent = terminal.is_dumb_terminal or not sys.stderr.isatty()
        columns = (TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)), BarColumn(20), _Count(noun))
        self._progress = Progress(
            *columns, console=terminal, transient=True, disable=silent, redirect_stdout=False, redirect_stderr=False
        )
        self._task = self._progress.add_task(name, total=total, rate=None, phase="")
        self._lock = threading.RLock()
        self._over = threading.Event()
        if not silent:
            with _no_interrupt():
                threading.Thread(target=self._show, args=(ready,), daemon=True).start()

    def update(self, done: int, total: int | None = None, rate: float | None = None) -> None:
        """Set the progress. `rate` replaces the one computed from the bar's own time."""
        self._progress.update(self._task, completed=done, total=total, rate=rate)

    def phase(self, text: str) -> None:
        """Say what is done now, while counts stand still."""
        self._progress.update(self._task, phase=text)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the bar while a line is printed."""
        with self._lock:
            was_visible = self._progress.live.is_started
            self._progress.stop()
            yield
            if was_visible:
                self._progress.start()

    def _show(self, ready: Callable[[], bool]) -> None:
        wait = _QUICK
        while not self._over.wait(wait):
            wait = _INTERVAL
            with self._lock:
                if ready() and not self._over.is_set():
                    self._progress.start()
                    return

    def end(self) -> None:
        with self._lock:
            self._over.set()
            self._progress.stop()


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """A scope in which new threads get no Ctrl-C, so that the main thread gets it."""
    former_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former_mask)


@contextmanager
def bar(name: str, noun: str, total: int | None, ready: Callable[[], bool] = lambda: True) -> Iterator[Bar]:
    """A bar that appears once `ready()` is true: before that, others may write to the terminal."""
    progress_bar = Bar(name, noun, total, ready)
    try:
        yield progress_bar
    finally:
        progress_bar.end()


class _Count(ProgressColumn):
    """The count, the rate and the remaining time; before the first item, the elapsed time; and what is done now."""

    def __init__(self, noun: str) -> None:
        super().__init__(Column(no_wrap=True))
        self.noun = noun

    def render(self, task: Task) -> Text:
        done, total, elapsed = int(task.completed), task.total, task.elapsed or 0.0
        parts = [f"{done:,} {self.noun}" if total is None else f"{done:,} of {int(total):,} {self.noun}"]
        rate = task.fields["rate"] or done / max(elapsed, 0.001)
        parts += [f"{rate:,.0f}/s"] if done else []
        parts += [f"{_span(max(0.0, total - done) / rate)} left"] if done and total is not None else [_span(elapsed)]
        return Text(", ".join(filter(None, [*parts, task.fields["phase"]])))


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,}:{rest:02} min" if minutes else f"{rest} s"
