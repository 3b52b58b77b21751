"""The shipped specs of the sensors as a user runs them, and the questions that lie beside them."""

from __future__ import annotations

import json
import shutil
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Commands
from tests.support.topic_messages import messages_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

SHIPPED = Path(__file__).resolve().parents[2] / "specs"
MESSAGES = 5_000
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def sensors(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Commands, Rows]]:
    """A folder with the shipped specs and a table of readings, and the readings as they were sent."""
    folder = tmp_path_factory.mktemp("sensors")
    (folder / "lake").mkdir()
    main = (SHIPPED / "main.yaml").read_text(encoding="utf-8").replace("memory: 4g", "memory: 1g").replace(".sluice/", "lake/")
    shutil.copytree(SHIPPED / "sensors", folder / "specs")
    (folder / "specs" / "main.yaml").write_text(main, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SLUICE_VAR_KAFKA", kafka)
        commands = Commands()
        commands.ok("generate", "sensor_data", "--count", str(MESSAGES), "--seed", "7")
        commands.ok("run", "sensor_readings")
        readings = [{**row, "at": datetime.fromisoformat(row["timestamp"])} for _, row in messages_of(kafka, "sensor_data")]
        yield commands, sorted(readings, key=lambda row: row["at"])


def _groups(rows: Rows, *names: str) -> dict[tuple[Any, ...], list[float]]:
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row["value"])
    return groups


def _since(rows: Rows, moment: datetime) -> Rows:
    return [row for row in rows if row["at"] > moment]


def _times(rows: Rows) -> Rows:
    """Several readings may have one time: their order is nobody's."""
    return [{"timestamp": row["at"]} for row in rows]


def _latest(rows: Rows, now: datetime) -> Rows:
    return _times(_since(rows, now - timedelta(minutes=5))[:-101:-1])


def _types(rows: Rows, now: datetime) -> Rows:
    groups = _groups(_since(rows, now - timedelta(minutes=1)), "sensor_type")
    return [
        {"sensor_type": name, "readings": len(values), "least": min(values), "most": max(values)}
        for (name,), values in sorted(groups.items())
    ]


def _active(rows: Rows, now: datetime) -> Rows:
    groups = _groups(_since(rows, now - timedelta(seconds=30)), "device_id")
    return [{"device_id": name, "readings": len(values)} for (name,), values in sorted(groups.items())]


def _last(rows: Rows, _now: datetime) -> Rows:
    return _times([row for row in rows if row["device_id"] == "device_07"][-1:])


def _hour(rows: Rows, now: datetime) -> Rows:
    hour = now.replace(minute=0, second=0, microsecond=0) - timedelta(microseconds=1)
    return _times([row for row in _since(rows, hour) if row["device_id"] == "device_07"])


def _buildings(rows: Rows, now: datetime) -> Rows:
    day = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(microseconds=1)
    located = [{**row, "building": row["location"]["building"]} for row in _since(rows, day)]
    groups = _groups(located, "building", "sensor_type")
    return [
        {"building": building, "sensor_type": name, "readings": len(values), "mean": pytest.approx(statistics.mean(values))}
        for (building, name), values in sorted(groups.items())
    ]


QUESTIONS: dict[str, Callable[[Rows, datetime], Rows]] = {
    "latest": _latest,
    "types_of_a_minute": _types,
    "active_devices": _active,
    "last_reading": _last,
    "device_hour": _hour,
    "buildings_and_types": _buildings,
}


@pytest.mark.parametrize("name", sorted(path.stem for path in (SHIPPED / "sensors" / "queries").glob("*.sql")))
def test_a_question_is_answered_as_plain_python_answers_it(sensors: tuple[Commands, Rows], name: str, tmp_path: Path) -> None:
    commands, readings = sensors
    shipped = Path("specs", "queries", f"{name}.sql")
    commands.ok("query", "--file", str(shipped))
    now = readings[-1]["at"] + timedelta(milliseconds=1)
    at_that_time = tmp_path / "query.sql"
    at_that_time.write_text(
        shipped.read_text(encoding="utf-8").replace("now()", f"timestamptz '{now.isoformat()}'"), encoding="utf-8"
    )
    answer = json.loads(commands.ok("query", "--json", "--file", str(at_that_time)))
    for row in answer:
        row |= {"timestamp": datetime.fromisoformat(row["timestamp"])} if "timestamp" in row else {}
    expected = QUESTIONS[name](readings, now)
    assert expected and [{key: row[key] for key in expected[0]} for row in answer] == expected


def test_a_select_comes_from_one_place(sensors: tuple[Commands, Rows], tmp_path: Path) -> None:
    commands, _ = sensors
    binary = tmp_path / "query.sql"
    binary.write_bytes(b"select '\xff'")
    for arguments in ((), ("select 1", "--file", "specs/queries/latest.sql")):
        result = commands.run("query", *arguments)
        assert result.exit_code == 2 and "write one select" in result.output
    assert commands.ok("query", "--csv", "--file", "-", given=b"select 1 as n") == "n\n1\n"
    assert "not text in UTF-8" in commands.refused("query", "--file", str(binary))
