"""Measures how long the six questions of the sensors take over ten million readings while `sluice stream` adds a thousand each second.

`bench/asking.py` asks them, in which nothing is of Sluice.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

from confluent_kafka import Producer

from bench import load
from bench.quick import ROOT
from framework.core.context.context import Context
from framework.core.query import database
from framework.core.run.events import Failed
from framework.core.run.run import run
from framework.host.plans import make
from framework.systems import catalogs
from framework.systems.catalogs import sql

READINGS, RATE = 10_000_000, 1_000
SECONDS = 60  # of questions
TYPES = (("temperature", "C"), ("humidity", "%"), ("pressure", "hPa"), ("co2", "ppm"), ("light", "lx"))


def specs(bootstrap: str) -> Path:
    """The shipped specs of the sensors."""
    folder = Path("specs", "questions")
    shutil.copytree(ROOT / "specs" / "sensors", folder)
    text = load.BASE.format(bootstrap=bootstrap)
    (folder / "main.yaml").write_text(text)
    return folder


def readings(count: int, begin: datetime, end: datetime) -> Iterator[bytes]:
    """Readings of twenty devices, evenly over the time."""
    chance, step = random.Random(1), (end - begin) / count
    for number in range(count):
        yield reading(chance, begin + number * step)


def reading(chance: random.Random, time: datetime) -> bytes:
    name, unit = chance.choice(TYPES)
    return (
        f'{{"device_id":"device_{chance.randrange(20):02d}","sensor_type":"{name}","value":{chance.random() * 100:.3f},"unit":"{unit}",'
        f'"timestamp":"{time.isoformat(timespec="milliseconds")}","location":{{"building":"building_{chance.randrange(1, 6)}",'
        f'"floor":{chance.randrange(1, 11)},"zone":"{chance.choice("ABCD")}"}}}}'
    ).encode()


def loaded(bootstrap: str) -> Path:
    """The specs of a table that has the readings of a day."""
    folder = specs(bootstrap)
    now = datetime.now(timezone.utc)
    load.produce(bootstrap, "sensor_data", readings(READINGS, now - timedelta(days=1), now), 3)
    plan = make(folder)
    context = Context(plan, warm=False)
    events = list(run(context, plan.pipelines[0]))
    assert not any(isinstance(event, Failed) for event in events)
    context.stop()
    return folder


def seconds_of(bootstrap: str, folder: Path) -> dict[str, list[float]]:
    """The seconds of each question, asked again and again while readings come."""
    client = catalogs.client_of(make(folder).catalogs[0])
    assert isinstance(client, sql.Sql)
    ended = threading.Event()
    sender = threading.Thread(target=_send, args=(bootstrap, ended), daemon=True)
    sender.start()
    about = {
        "catalog": str(client.database), "seconds": SECONDS, "folder": str(folder / "queries"),
        "extensions": database.extension_files(),
    }  # fmt: skip
    program = str(Path(__file__).with_name("asking.py"))
    answer = subprocess.run([sys.executable, program, json.dumps(about)], stdout=subprocess.PIPE, text=True, check=True)
    ended.set()
    sender.join()
    return dict(json.loads(answer.stdout))


def _send(bootstrap: str, ended: threading.Event) -> None:
    chance, producer, began = random.Random(2), Producer({"bootstrap.servers": bootstrap}), time.monotonic()
    for number in itertools.count():
        if number % 10 == 0 and ended.wait(max(0.0, began + number / RATE - time.monotonic())):
            break
        producer.produce("sensor_data", reading(chance, datetime.now(timezone.utc)), partition=number % 3)
        producer.poll(0)
    print(f"{number / (time.monotonic() - began):.0f} readings a second were sent meanwhile", flush=True)
    assert producer.flush(30) == 0
