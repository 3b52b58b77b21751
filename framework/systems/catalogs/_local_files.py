"""Tables' files in a folder of this machine. Metadata can name any file of the machine, so that what it names is not enough.

Guarantee: a file is deleted only if its own path, links followed, lies in a folder of its table, and that in the catalog's warehouse.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from framework.systems.catalogs import ANY_TIME, PROBE, Stored, TableFiles


@dataclass(frozen=True)
class LocalFiles(TableFiles):
    """A location is `file:/a`, `file:///a` or `/a`."""

    def path(self, location: str) -> str:
        path = location.removeprefix("file:")
        return path if location == path else "/" + path.lstrip("/")

    def read(self, location: str) -> bytes:
        return Path(self.path(location)).read_bytes()

    def write(self, location: str, content: bytes) -> None:
        path = Path(self.path(location))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def folders(self, *locations: str) -> tuple[str, ...]:
        root = Path(self.path(self.root)).resolve()
        folders = (Path(self.path(location)).resolve() for location in locations)
        return tuple(str(folder) for folder in folders if root in folder.parents)

    def split_deletable(self, locations: Iterable[str], folders: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Files that may be deleted are named by the resolved path of their folder."""
        roots = set(map(Path, folders))
        inside, outside = set(), set()
        for file in {Path(self.path(location)) for location in locations}:
            resolved_path = file.parent.resolve() / file.name
            if roots.intersection(resolved_path.parents) and roots.intersection(resolved_path.resolve().parents):
                inside.add(resolved_path)
            else:
                outside.add(file)
        return tuple(map(str, sorted(inside))), tuple(map(str, sorted(outside)))

    def existing(self, locations: Iterable[str]) -> set[str]:
        return {location for location in locations if Path(self.path(location)).is_file()}

    def size(self, files: Iterable[str]) -> int:
        return sum(Path(file).stat().st_size for file in files)

    def delete(self, files: Iterable[str], folder: str) -> None:
        table_folder = Path(self.path(folder)).resolve()  # as the files are
        paths = [Path(file) for file in files]
        for path in paths:
            path.unlink(missing_ok=True)
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum of it
        parent_folders = {parent for path in paths for parent in path.parents if table_folder in parent.parents}
        for parent in sorted(
            {table_folder, *parent_folders} if paths else (), key=lambda parent: len(parent.parts), reverse=True
        ):
            with suppress(OSError):  # not empty, or not there
                parent.rmdir()

    def older(self, location: str, time_limit: datetime = ANY_TIME, start: str = "") -> Iterator[str]:
        for path in Path(self.path(location)).rglob(f"{start}*"):
            with suppress(FileNotFoundError):  # it is being deleted
                if (
                    path.is_file()
                    and not path.is_symlink()
                    and path.stat().st_mtime < time_limit.timestamp()
                    and not _is_checksum(path)
                ):
                    yield str(path)

    def probe(self, folder: str) -> bool:
        place = Path(self.path(folder))
        place = next(path for path in (place, *place.parents) if path.exists())  # a run creates the others
        with tempfile.NamedTemporaryFile(dir=place, prefix=PROBE) as file:
            file.write(b"sluice doctor")
            file.flush()
            Path(file.name).read_bytes()
            list(place.iterdir())
        return True

    def around(self, location: str) -> str:
        return self.path(self.root)

    def stored(self, folders: Iterable[str]) -> Stored:
        sizes = []
        for path in (Path(file) for folder in folders for file in self.older(folder)):
            with suppress(FileNotFoundError):  # it is being deleted
                sizes.append(path.stat().st_size)
        return Stored(files=len(sizes), bytes=sum(sizes))


def _is_checksum(path: Path) -> bool:
    """Whether a file is Hadoop's checksum of an existing file, with which it is deleted."""
    return path.suffix == ".crc" and path.name.startswith(".") and path.with_name(path.name[1:-4]).exists()


def local_files(folder: str) -> LocalFiles:
    """The files in a folder, which is named as in a spec."""
    return LocalFiles("file://" + str(Path(folder.removeprefix("file://")).absolute()))


def is_elsewhere(location: str) -> bool:
    """Whether the location in a spec is not on this machine."""
    return "://" in location and not location.startswith("file://")
