"""Files of snapshots that expired while somebody may still read them, as they do where commits are many. A file beside the table's metadata
lists them before the snapshots expire, the commit that removes the snapshots names the list in a property of the table, and whichever
process maintains the table an hour later deletes the files.

*Guarantee* A file is deleted no earlier than where commits are few, and only by the same rules. A list of which no commit was made counts
for nothing. No listed file is deleted while the table has one of the list's snapshots, as after an older metadata file was restored.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from framework.core.iceberg import deletable_files
from framework.core.iceberg.metadata import Metadata
from framework.core.rules import protocol

_KEPT_FOR = timedelta(hours=1)
_TOGETHER = timedelta(minutes=10)  # lists of so much time are worked off at once: each time, the folder is listed
_NAME = re.compile(r"\d{10}-[0-9a-f]{8}")  # of a list: the second from which on its files may be deleted


@dataclass(frozen=True)
class FileList:
    """A list of files that only some snapshots had."""

    path: str
    snapshots: Sequence[int]
    files: Sequence[str]


def is_due(table: Metadata, current_time: datetime) -> bool:
    """Whether files of the table are to be deleted now: those of all lists, or those of a list that is ten minutes over its time."""
    times = [time_of(name) for name in names(table.properties)]
    return bool(times) and (max(times) < current_time or min(times) < current_time - _TOGETHER)


def write(table: Metadata, snapshots: Iterable[int], files: Iterable[str], current_time: datetime) -> str:
    """Lists files that only these snapshots have, and returns the name of the list."""
    name = f"{int((current_time + _KEPT_FOR).timestamp()):010d}-{uuid.uuid4().hex[:8]}"
    content = {"snapshots": list(snapshots), "files": list(files)}
    table.files.write(_path(table, name), json.dumps(content).encode())
    return name


def with_list(properties: Mapping[str, str], name: str) -> dict[str, str]:
    """The property of a table of which this list is to be worked off, too."""
    return {protocol.DELETE_LATER: " ".join([*names(properties), name])}


def drop(table: Metadata, name: str) -> None:
    """Deletes a list of which no commit was made."""
    with suppress(OSError):
        deletable_files.delete(table.files, [_path(table, name)], table.files.folders(_folder(table)))


def all_files(table: Metadata) -> set[str]:
    """The paths of all files that are listed, and of their lists."""
    lists = [read(table, name) for name in names(table.properties)]
    return {path for listed in lists for path in (table.files.path(listed.path), *map(table.files.path, listed.files))}


def read(table: Metadata, name: str) -> FileList:
    """A list, which is empty if it is damaged, or was worked off. Raises OSError if the store does not answer."""
    path = _path(table, name)
    try:
        content = json.loads(table.files.read(path))
        return FileList(path, tuple(map(int, content["snapshots"])), tuple(map(str, content["files"])))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return FileList(path, (), ())


def names(properties: Mapping[str, str]) -> list[str]:
    """The names of the lists that a table's properties say."""
    return _NAME.findall(properties.get(protocol.DELETE_LATER) or "")


def time_of(name: str) -> datetime:
    return datetime.fromtimestamp(int(name.partition("-")[0]), timezone.utc)


def _path(table: Metadata, name: str) -> str:
    return f"{_folder(table)}/delete-later-{name}.json"


def _folder(table: Metadata) -> str:
    return f"{str(table.document['location']).rstrip('/')}/metadata"
