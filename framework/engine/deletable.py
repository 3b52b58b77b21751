"""Which files may be deleted. Metadata can name any file of this machine, so that what it names is not enough.

Guarantee: a file is deleted only if its own path, links followed, lies in a folder of its table, and that in the catalog's warehouse.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from framework.engine import known, metadata
from framework.engine.session import warehouse
from framework.plan.model import Catalog


def folders(catalog: Catalog, *locations: str) -> tuple[Path, ...]:
    """Those of a table's folders in which files may be deleted."""
    root = Path(known.local(warehouse(catalog))).resolve()
    found = (Path(known.local(each)).resolve() for each in locations)
    return tuple(folder for folder in found if root in folder.parents)


def names_nothing_else(root: str, manifest_list: str, snapshot: int) -> bool:
    """Whether all files that came with a snapshot lie in the warehouse: Iceberg deletes what an expired snapshot names."""
    try:
        listed = metadata.records(metadata.path(manifest_list))
        manifests = [each["manifest_path"] for each in listed if each["added_snapshot_id"] == snapshot]
        entries = (entry for manifest in manifests for entry in metadata.records(metadata.path(manifest)))
        files = [entry["data_file"]["file_path"] for entry in entries]
    except (OSError, ValueError, KeyError):
        return False
    named = [Path(known.local(each)) for each in (manifest_list, *manifests, *files)]
    return not parted(named, [Path(known.local(root)).resolve()])[1]


def parted(files: Iterable[Path], within: Iterable[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files that may be deleted, and those that stay."""
    roots = set(within)
    inside = {file: bool(roots.intersection(file.resolve().parents)) for file in sorted(set(files))}
    return tuple(file for file, ours in inside.items() if ours), tuple(file for file, ours in inside.items() if not ours)
