"""`--half`: two processes of `make test-fast` read and run the quick tests, each of them the files of one half.

The halves are balanced by the seconds that each file took the last time, and before that by its size.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_PER_SECOND = 50_000  # characters of a file whose seconds nobody knows


class Halves:
    """Leaves out files of a run: those in which no test is chosen, and those of the other half."""

    def __init__(self, config: pytest.Config) -> None:
        self.half: int | None = config.option.half
        self.left_out = _left_out(config.option.markexpr)
        self.seconds: dict[str, float] = defaultdict(float)
        if self.half and not self.left_out:
            raise pytest.UsageError("--half needs `-m`, of the form `not this and not that`")

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """A file is not imported if its `pytestmark` has a mark that the whole run leaves out, as `make test-fast` leaves out most."""
        if not self.left_out or not collection_path.match("test_*.py"):
            return None
        if _marks(collection_path) & self.left_out:
            return True
        return True if self.half and collection_path not in self._files[self.half - 1] else None

    @cached_property
    def _files(self) -> tuple[set[Path], set[Path]]:
        recorded_seconds = _recorded(1) | _recorded(2)
        files = [file for file in ROOT.glob("tests/**/test_*.py") if not _marks(file) & self.left_out]
        weights = {file: recorded_seconds.get(_name(file), file.stat().st_size / _PER_SECOND) for file in files}
        halves: tuple[set[Path], set[Path]] = (set(), set())
        sums = [0.0, 0.0]
        for file in sorted(files, key=lambda file: (-weights[file], file)):
            smaller = sums.index(min(sums))
            halves[smaller].add(file)
            sums[smaller] += weights[file]
        return halves

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        start_time = time.perf_counter()
        report = yield
        if isinstance(collector, pytest.Module):
            self.seconds[_name(collector.path)] += time.perf_counter() - start_time
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        start_time = time.perf_counter()
        result = yield
        self.seconds[_name(item.path)] += time.perf_counter() - start_time
        return result

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if self.half and exitstatus == 0:
            _record(self.half).write_text(json.dumps({name: round(duration, 3) for name, duration in self.seconds.items()}))


def _record(half: int) -> Path:
    return ROOT / ".sluice" / f"test-fast-{half}.json"


def _recorded(half: int) -> dict[str, float]:
    try:
        seconds: dict[str, float] = json.loads(_record(half).read_text())
    except (OSError, ValueError):
        return {}
    return seconds


def _name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def _left_out(expression: str) -> frozenset[str]:
    """The marks that a run leaves out, where its expression says nothing else."""
    return frozenset(re.findall(r"not (\w+)", expression)) if re.fullmatch(r"not \w+( and not \w+)*", expression) else frozenset()


@cache
def _marks(file: Path) -> frozenset[str]:
    mark_match = re.search(r"^pytestmark = (\[.*?\]|.*?$)", file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return frozenset(re.findall(r"pytest\.mark\.(\w+)", mark_match[1])) if mark_match else frozenset()
