"""A project whose topic has its schemas in a real registry."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fastavro
import requests
from confluent_kafka import Producer

from framework.host.plans import make
from framework.plan import Plan
from tests.support.project import BASE, Project

SPECS = """
topic: trades
kafka_name: {topic}
value: {format}
{topic_more}
---
pipeline: trades
from: {{topic: trades}}
into: {{table: {namespace}.trades{into_more}}}
{more}
"""


class Registered(Project):
    """A project with messages by the schemas of a registry."""

    def __init__(self, folder: Path, lake: Path, bootstrap: str, spark: Any, registry: str) -> None:
        super().__init__(folder, lake, bootstrap, spark)
        self.registry = registry
        self.template = SPECS
        self.format = "avro"
        self.into_more = ""
        self._parsed: dict[int, Any] = {}

    @property
    def subject(self) -> str:
        return f"{self.topic}-value"

    @property
    def plan(self) -> Plan:
        specs = self.template.format(
            topic=self.topic, namespace=self.namespace, more=self.more, topic_more=self.topic_more, format=self.format,
            into_more=self.into_more,
        )  # fmt: skip
        folder = self.lake / "specs" / uuid.uuid4().hex
        folder.mkdir(parents=True)
        base = BASE.format(bootstrap=self.bootstrap).replace("---\ncatalog", f'registry: "{self.registry}"\n---\ncatalog', 1)
        (folder / "main.yaml").write_text(f"{base}---\n{specs}")
        return make(folder)

    def send_keys(self, messages: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for key, value in messages:
            producer.produce(self.topic, value, key=key, partition=0)
        assert producer.flush(30) == 0

    def register(self, schema: Any, subject: str | None = None, kind: str = "AVRO", references: Iterable[Any] = ()) -> int:
        text = schema if isinstance(schema, str) and kind != "AVRO" else json.dumps(schema)
        body = {"schema": text, "schemaType": kind, "references": list(references)}
        answer = requests.post(f"{self.registry}/subjects/{subject or self.subject}/versions", json=body, timeout=20)
        answer.raise_for_status()
        id_ = int(answer.json()["id"])
        if kind == "AVRO" and not references:
            self._parsed[id_] = fastavro.parse_schema(schema)
        return id_

    def avro(self, id_: int, *values: Any) -> list[bytes]:
        """Messages as a producer of that schema writes them."""
        return [framed(id_, encoded(self._parsed[id_], value)) for value in values]


def framed(id_: int, body: bytes) -> bytes:
    return b"\0" + id_.to_bytes(4, "big") + body


def encoded(schema: Any, value: Any) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, schema, value)
    return buffer.getvalue()


def record(*fields: tuple[Any, ...], name: str = "Trade") -> dict[str, Any]:
    """An Avro record of fields: a name, a type and other properties."""
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field[0], "type": field[1], **(field[2] if len(field) > 2 else {})} for field in fields],
    }
