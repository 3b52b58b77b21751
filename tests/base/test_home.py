"""Sluice's folder on this machine: the first command that needs it creates it, for its owner alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from framework.base.errors import KafkaAway, RefusedError, SetupError, UnreachableError
from framework.base.home import dagster_home, home, private
from framework.core.rules import journal
from framework.core.spark import defects
from framework.messages.registry import cache
from framework.plan.schema import Schema, Subject, Version

MAKERS: dict[str, Callable[[], object]] = {
    "Dagster": dagster_home,
    "what a registry said": lambda: cache.write("http://r", Subject("s", (Version(1, Schema("AVRO", '"long"'), 1),))),
    "a pause": lambda: journal.pause("orders"),
    "an error that nobody foresaw": lambda: defects.as_defect("orders", ValueError("x")),
    "a folder": lambda: private("a", "b"),
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_HOME", raising=False)
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_folder_is_created_for_its_owner_alone(make: Callable[[], object]) -> None:
    make()
    assert home().stat().st_mode & 0o777 == 0o700
    assert len(list(home().iterdir())) == 1


def test_an_existing_folder_keeps_its_mode() -> None:
    home().mkdir(mode=0o750)
    private("a")
    assert home().stat().st_mode & 0o777 == 0o750


def test_a_pause_that_cannot_be_written_is_no_pause() -> None:
    home().mkdir()
    (home() / "pipelines").write_text("a file where the folder should be")
    with pytest.raises(SetupError, match=r"note-not-written: .*orders\.json cannot be written: File exists"):
        journal.pause("orders")
    journal.record_success("orders")
    journal.record_failure("orders", SetupError("some-code", "what a run says does not hang on it", ""))


def test_a_failure_keeps_its_kind_and_one_of_an_older_version_is_forgotten() -> None:
    journal.record_failure("orders", KafkaAway("kafka-unreachable", "it does not answer", ""))
    failed = journal.read("orders").failed
    assert failed and failed.is_a(UnreachableError) and not failed.is_a(RefusedError)

    path = home() / "pipelines" / "orders.json"
    fields = json.loads(path.read_text())
    fields["failed"]["kind"] = "OfALaterVersion"
    path.write_text(json.dumps(fields))
    later = journal.read("orders").failed
    assert later and later.code == "kafka-unreachable" and not later.is_a(UnreachableError)

    del fields["failed"]["kind"], fields["failed"]["acceptable"]
    path.write_text(json.dumps(fields))
    assert journal.read("orders").failed is None, "the next run finds out"
