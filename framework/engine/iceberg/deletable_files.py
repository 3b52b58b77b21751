"""The files that may be deleted. Metadata can name any file of this machine, so its word is not enough.

Guarantee: a file is deleted only if its own path, links followed, lies in a folder of its table, and that in the catalog's warehouse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from framework.engine.iceberg import metadata
from framework.engine.spark.session import warehouse
from framework.model import Catalog

_SECOND = re.compile(r"(.+)__[0-9a-f]{8}")  # the folder of a rebuild's second table, behind that of the first


def folders(catalog: Catalog, *locations: str) -> tuple[Path, ...]:
    """The folders of a table in which files may be deleted."""
    return _inside(warehouse(catalog), *locations)


def of_attempts(warehouse: str, location: str, data: str | None) -> tuple[Path, ...]:
    """The folders in which attempts write. A rebuild's second table has its data in the folder of the first."""
    own = metadata.path(location)
    first = _SECOND.fullmatch(own.name)
    second = data is not None and first is not None and metadata.path(data) == own.with_name(first[1]) / "data"
    return _inside(warehouse, location, *([data] if second and data else []))


def _inside(warehouse: str, *locations: str) -> tuple[Path, ...]:
    root = metadata.path(warehouse).resolve()
    paths = (metadata.path(each).resolve() for each in locations)
    return tuple(folder for folder in paths if root in folder.parents)


def names_nothing_else(within: Iterable[Path], manifest_list: str, main: str) -> bool:
    """Whether all files that a snapshot names, and main does not, lie in these folders."""
    try:
        lists = {each["manifest_path"] for each in _records(manifest_list)} - {each["manifest_path"] for each in _records(main)}
        files = [entry["data_file"]["file_path"] for manifest in lists for entry in _records(manifest)]
    except (OSError, ValueError, KeyError):
        return False
    return not split_deletable(map(metadata.path, (manifest_list, *lists, *files)), within)[1]


def _records(location: str) -> list[Any]:
    return metadata.records(metadata.path(location))


def split_deletable(files: Iterable[Path], within: Iterable[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files that may be deleted, each by its folder's own path, and those that stay."""
    roots = set(within)
    inside, outside = set(), set()
    for file in set(files):
        own = file.parent.resolve() / file.name
        if roots.intersection(own.parents) and roots.intersection(own.resolve().parents):
            inside.add(own)
        else:
            outside.add(file)
    return tuple(sorted(inside)), tuple(sorted(outside))
