"""A cache of the registry's schemas under `.sluice/registry`. A plan works while the registry is down, and no version is fetched twice.

*Guarantee* A file is complete or absent; a file that cannot be read counts as absent.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from framework.base.home import home, private, read as read_file
from framework.plan.schema import Schema, Subject, Version


def read(url: str, name: str) -> Subject | None:
    try:
        entry = json.loads(read_file(_file(url, name)))
        return Subject(
            name,
            tuple(
                Version(entry_version["id"], _schema(entry_version), entry_version["number"])
                for entry_version in entry["versions"]
            ),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def write(url: str, subject: Subject) -> None:
    """Writes a subject to the cache. A disk that is full or read-only is not an error: the registry has answered."""
    versions = [{"id": version.id, "number": version.number, **_document(version.schema)} for version in subject.versions]
    file = _file(url, subject.name)
    draft = file.with_name(f"{file.name}.{uuid4().hex}")
    with suppress(OSError):
        private("registry", file.parent.name)
        draft.write_text(json.dumps({"subject": subject.name, "versions": versions}), encoding="utf-8")
        draft.replace(file)


def _file(url: str, name: str) -> Path:
    return home() / "registry" / _short(url) / f"{_short(name)}.json"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _document(schema: Schema) -> dict[str, Any]:
    behind = [[name, reference.kind, reference.text] for name, reference in schema.behind]
    return {"kind": schema.kind, "text": schema.text, "behind": behind}


def _schema(entry: Any) -> Schema:
    return Schema(entry["kind"], entry["text"], tuple((name, Schema(kind, text)) for name, kind, text in entry["behind"]))
