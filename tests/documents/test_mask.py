"""`mask`: the value that each method makes, and no plain value in any file."""

from __future__ import annotations

import hmac
import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from framework.base.errors import BatchError, SetupError
from framework.host.cli import main
from framework.operations.trials import preview_text
from framework.operations.trials.preview import preview
from framework.operations.undo import replay
from framework.plan import MaskKey, SecretRef
from framework.sql.masks import description
from tests.support.dagster_commands import dagster
from tests.support.file_texts import everything
from tests.support.project import BASE, Project
from tests.support.repository import ROOT
from tests.support.runs import published

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SPEC = """
topic: orders
kafka_name: {{topic}}
value: json
key: {{{{format: string, as: customer_id}}}}
columns:
  id: {{{{type: bigint, required: true}}}}
  email: string
  phone: string
  name: string
  born: date
  ip: string
  age: int
  income: decimal(12,2)
  card: bigint
  ssn: string
  note: string
  customer: "struct<email: string, city: string, tags: array<string>>"
  lines: array<struct<sku string, note string>>
  at: timestamp
---
pipeline: trades
from: {{{{topic: orders}}}}
{steps}
into: {{{{table: {{namespace}}.trades}}}}
"""
MASK = """
steps:
  - derive: {{share: 100 / (age - 7)}}
  - filter: cast(phone as bigint) is not null or true
  - mask:
      key: "${{secret:pii}}"
      columns:
        customer_id: hmac
        email: hmac
        phone: {{partial: {{keep_last: 4}}}}
        name: redact
        born: {{generalize: year}}
        ip: {{generalize: {{ip_prefix: 24}}}}
        age: {{generalize: {{range: 10}}}}
        income: {{generalize: {{range: 1000}}}}
        card: encrypt
        ssn: drop
        note: "null"
        customer.email: hmac
        customer.tags: redact
        lines.note: encrypt
        at: {{generalize: hour}}
"""
HASHED = """
topic: orders
kafka_name: {topic}
value: json
columns: {{a: TYPE}}
---
pipeline: trades
from: {{topic: orders}}
steps:
  - mask: {{key: "${{secret:pii}}", columns: {{a: hmac}}}}
into: {{table: {namespace}.trades}}
"""
PLAIN = MASK[: MASK.index("  - mask:")]
ROW = {
    "id": 1, "email": "ann.canary01@example.com", "phone": "canary02 1234", "name": "canary03", "born": "1985-07-03",
    "ip": "203.0.113.77", "age": 34, "income": 45678.9, "card": 4111222233334444, "ssn": "canary05", "note": "canary06",
    "customer": {"email": "ann.canary01@example.com", "city": "Berlin", "tags": ["canary07", "canary08"]},
    "lines": [{"sku": "A", "note": "canary09"}, {"sku": "B", "note": None}], "at": "2026-01-05T10:17:00Z",
}  # fmt: skip
SECRET = "a-secret-of-the-canaries-0123456789"


@pytest.fixture
def masked(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("SLUICE_SECRET_PII", SECRET)
    return project_of(project, MASK)


def project_of(project: Project, steps: str) -> Project:
    project.template = SPEC.format(steps=steps)
    project.make_topic(1)
    return project


def send(project: Project, *values: Any) -> None:
    project.produce(
        {"value": json.dumps(value).encode() if isinstance(value, dict) else value, "key": "customer-canary10",
         "headers": [("trace", b"canary11")]}
        for value in values
    )  # fmt: skip


def test_what_becomes_of_each_value(masked: Project) -> None:
    empty = dict.fromkeys(ROW) | {"id": 2, "age": 12}
    other_row = ROW | {
        "id": 3,
        "email": "ann.canary01@example.com",
        "phone": "123",
        "ip": "2001:db8:1:2::7",
        "age": -1,
        "income": -0.5,
    }
    send(masked, ROW, empty, other_row, ROW | {"id": 4, "ip": "localhost", "name": ""})
    masked.run()
    first_row, second_row, third_row, fourth_row = sorted(masked.rows(), key=lambda row: int(row["id"]))
    assert "ssn" not in first_row
    assert re.fullmatch(r"[0-9a-f]{32}", first_row["email"])
    assert first_row["email"] == first_row["customer"]["email"] == third_row["email"]
    assert first_row["email"] != first_row["customer_id"]
    assert (first_row["phone"], third_row["phone"]) == ("***1234", "***")
    assert (first_row["name"], fourth_row["name"]) == ("***", "***")
    assert first_row["born"].isoformat() == "1985-01-01"
    assert (first_row["ip"], third_row["ip"], fourth_row["ip"]) == ("203.0.113.0/24", "2001:db8:1:0:0:0:0:0/48", "***")
    assert (first_row["age"], third_row["age"], float(first_row["income"]), float(third_row["income"])) == (30, -10, 45000, -1000)
    assert first_row["card"].startswith("enc:pii:")
    assert first_row["card"] == third_row["card"]
    assert first_row["note"] is None
    assert first_row["customer"]["tags"] == ["***", "***"]
    assert first_row["customer"]["city"] == "Berlin"
    assert [line["sku"] for line in first_row["lines"]] == ["A", "B"]
    assert [line["note"] is None for line in first_row["lines"]] == [False, True]
    assert first_row["at"].isoformat() == "2026-01-05T10:00:00+00:00"
    hidden = [name for name in ROW if name not in ("id", "ssn", "age")]
    assert [name for name in hidden if second_row[name] is not None] == [
        "lines"
    ]  # PyIceberg reads a list that is null as an empty one
    assert masked.sql("select lines is null from {table} where id = 2") == [(True,)]


@pytest.mark.parametrize(("type_", "values"), [
    ("string", ["é", "e\\u0301"]), ("'decimal(10,2)'", ["1.5", "1.50"]), ("double", ["100", "1e2"]),
])  # fmt: skip
def test_equal_values_have_equal_hashes(project: Project, monkeypatch: pytest.MonkeyPatch, type_: str, values: list[str]) -> None:
    monkeypatch.setenv("SLUICE_SECRET_PII", SECRET)
    project.template = HASHED.replace("TYPE", type_)
    project.make_topic(1)
    quoted = '"' if type_ == "string" else ""
    project.send([f'{{"a": {quoted}{value}{quoted}}}'.encode() for value in values], partition=0)
    project.run()
    assert len({row["a"] for row in project.rows()}) == 1
    assert len(project.rows()) == len(values)


def test_a_hash_is_that_of_another_hmac(spark: SparkSession) -> None:
    """For secrets around the length of SHA-256's blocks, and texts of no, one, and more than one of them."""
    jvm: Any = spark._jvm
    for length in (1, 16, 63, 64, 65, 200):
        secret = "".join(chr(33 + number % 90) for number in range(length))
        jvm.sluice.Keys.put("pii", secret)
        key = hmac.digest(secret.encode(), b"sluice hmac", "sha256")
        for text in ("", "a", "é", "ann@example.com", "x" * 55, "x" * 56, "x" * 64, "x" * 1_000):
            expected = hmac.digest(key, text.encode(), "sha256")[:16].hex()
            texts = jvm.sluice.Mask.texts(description("hmac", [MaskKey("k", SecretRef("pii"))]), text)
            assert list(texts) == [expected], (length, text)


BAD = (b'{"id": "canary04", "email": "ann.canary01@example.com"}', b"canary12", {**ROW, "age": 7}, {**ROW, "born": "canary13"},
       {**ROW, "phone": "canary14"}, b'{"id": 1, "customer": {"canary15": 1}, "age": "canary16"}')  # fmt: skip


def test_bad_rows_are_encrypted_and_can_be_replayed(masked: Project) -> None:
    send(masked, *BAD)
    (batch,) = masked.run()
    assert batch.bad == 5
    rows = masked.rows(bad=True)
    assert all(row["value"].startswith(b"\0SLX") and row["key"].startswith(b"\0SLX") for row in rows)
    assert all(row["headers"][0]["value"].startswith(b"\0SLX") for row in rows)
    messages = {row["message"] for row in rows}
    assert "field `id`: wanted bigint" in messages
    assert any("divide by zero in 100 / (age - 7)" in message for message in messages), messages
    assert not [message for message in messages if "canary" in message]
    masked.template = masked.template.replace("100 / (age - 7)", "100 / (age - 8)")
    context = masked.context()
    (batch,) = published(replay.replay(context, context.plan.pipelines[0], replay.condition(""), lambda: False))
    assert (batch.rows, batch.bad) == (1, 4)


@pytest.mark.long
def test_a_new_key_masks_and_the_old_one_still_opens(masked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    send(masked, ROW, {**ROW, "id": 2, "age": 7})
    masked.run()
    monkeypatch.setenv("SLUICE_SECRET_PII2", "another-secret-of-the-canaries-012")
    keys = 'keys: {{now: {{id: k2, secret: "${{secret:pii2}}"}}, old: [{{id: pii, secret: "${{secret:pii}}"}}]}}'
    template = masked.template.replace("(age - 7)", "(age - 8)")
    masked.template = template.replace('key: "${{secret:pii}}"', 'keys: {{now: {{id: k2, secret: "${{secret:pii2}}"}}}}')
    context = masked.context()
    with pytest.raises(BatchError, match=r"^mask-key: a bad row is encrypted by the key `pii`, which the mask does not list"):
        published(replay.replay(context, context.plan.pipelines[0], replay.condition(""), lambda: False))
    masked.template = template.replace('key: "${{secret:pii}}"', keys)
    context = masked.context()
    (batch,) = published(replay.replay(context, context.plan.pipelines[0], replay.condition(""), lambda: False))
    assert batch.rows == 1
    cards = {row["id"]: row["card"] for row in masked.rows()}
    assert cards[1].startswith("enc:pii:")
    assert cards[2].startswith("enc:k2:")
    revealed = revealing(masked, "card", cards[1], cards[2], "enc:k2:AAAA", "nonsense")
    assert revealed.stdout.splitlines() == ["4111222233334444", "4111222233334444", "enc:k2:AAAA", "nonsense"]
    assert revealed.exit_code == 1
    assert "2 of 4 values were not encrypted for `card`" in revealed.stderr
    assert "`email` of trades is not encrypted" in revealing(masked, "email", "x").stderr


def revealing(project: Project, column: str, *values: str) -> Any:
    folder = project.folder / "specs"
    folder.mkdir(exist_ok=True)
    specs = project.template.format(topic=project.topic, namespace=project.namespace, more="", topic_more="")
    (folder / "main.yaml").write_text(BASE.format(bootstrap=project.bootstrap) + "---\n" + specs)
    return CliRunner().invoke(main, ["reveal", "trades", column, *values, "--specs", str(folder)])


def test_a_key_that_can_be_guessed_is_refused(masked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SECRET_PII", "short")
    send(masked, ROW)
    with pytest.raises(SetupError, match="has 5 characters"):
        masked.run()


def test_a_preview_shows_rows_from_the_mask_on(masked: Project) -> None:
    send(masked, ROW, BAD[0])
    context = masked.context()
    pipeline = context.plan.pipelines[0]
    text = preview_text.text(pipeline, preview(context, pipeline, 5))
    assert "canary" not in text
    assert "***1234" in text
    assert "(hidden)" in text


def test_a_table_has_no_statistics_of_masked_columns(masked: Project) -> None:
    send(masked, ROW)
    masked.run()
    (bounds,) = masked.sql(
        "select readable_metrics.email.upper_bound, readable_metrics.card.upper_bound, readable_metrics.id.upper_bound from {table}.files"
    )
    assert bounds == (None, None, 1)


@pytest.mark.parametrize("masks", [True, False])
def test_no_file_has_a_plain_value(project: Project, monkeypatch: pytest.MonkeyPatch, masks: bool) -> None:
    """No file has one of sixteen canaries; without masks, every one is found."""
    monkeypatch.setenv("SLUICE_SECRET_PII", SECRET)
    project_of(project, MASK if masks else PLAIN)
    send(project, ROW, *BAD)
    project.run()
    canaries: dict[str, set[str]] = {}
    home = Path(os.environ["SLUICE_HOME"])
    warehouse = Path(urlparse(project.sql("select file from {table}.metadata_log_entries")[0][0]).path).parents[2]
    assert (warehouse / "trades").is_dir()
    logs = [path for path in (home / "logs", home / "runs", warehouse) if path.exists()]
    for path, text in (entry for folder in logs for entry in everything(folder)):
        for canary in re.findall(r"canary[0-9]{2}", text):
            canaries.setdefault(canary, set()).add(path.name)
        assert SECRET not in text
    assert set(canaries) == (set() if masks else {f"canary{number:02}" for number in range(1, 17)})


@pytest.mark.long
@pytest.mark.parametrize("masks", [True, False])
def test_no_file_of_dagster_and_spark_has_a_plain_value(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, masks: bool
) -> None:
    """Searches a new folder: Dagster's database and logs, Spark's log of events, the catalog and the tables."""
    monkeypatch.setenv("SLUICE_SECRET_PII", SECRET)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    project_of(project, MASK if masks else PLAIN)
    send(project, ROW, *BAD)
    for folder in ("home", "events", "specs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "home" / "jars").symlink_to(ROOT / ".sluice" / "jars")
    specs = project.template.format(topic=project.topic, namespace=project.namespace, more="", topic_more="")
    events = (
        f"conf: {{spark.eventLog.enabled: true, spark.eventLog.compress: false, spark.eventLog.dir: file://{tmp_path}/events, "
    )
    base = BASE.format(bootstrap=project.bootstrap).replace("conf: {", events)
    (tmp_path / "specs" / "main.yaml").write_text(f"{base}---\n{specs}")
    done = dagster(tmp_path, "asset", "materialize", "--select", "*")
    assert done.returncode == 0, done.stderr[-3000:]
    (tmp_path / "home" / "printed").write_text(done.stdout + done.stderr)
    places = {
        folder: "".join(text for _, text in everything(tmp_path / folder))
        for folder in ("home", "dagster", "events", "warehouse")
    }
    assert all(map(len, places.values()))
    assert not [folder for folder, text in places.items() if SECRET in text]
    canaries = {canary for text in places.values() for canary in re.findall(r"canary[0-9]{2}", text)}
    assert canaries == (set() if masks else {f"canary{number:02}" for number in range(1, 17)})
