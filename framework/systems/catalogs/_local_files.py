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

from framework.systems.catalogs import ANY_TIME, PROBE, Files


@dataclass(frozen=True)
class LocalFiles(Files):
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
        folders = (Path(self.path(each)).resolve() for each in locations)
        return tuple(str(folder) for folder in folders if root in folder.parents)

    def split_deletable(self, locations: Iterable[str], folders: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Those that may be deleted are called by their folder's own path."""
        roots = set(map(Path, folders))
        inside, outside = set(), set()
        for file in {Path(self.path(each)) for each in locations}:
            own = file.parent.resolve() / file.name
            if roots.intersection(own.parents) and roots.intersection(own.resolve().parents):
                inside.add(own)
            else:
                outside.add(file)
        return tuple(map(str, sorted(inside))), tuple(map(str, sorted(outside)))

    def existing(self, locations: Iterable[str]) -> set[str]:
        return {each for each in locations if Path(self.path(each)).is_file()}

    def size(self, files: Iterable[str]) -> int:
        return sum(Path(file).stat().st_size for file in files)

    def delete(self, files: Iterable[str], folder: str) -> None:
        whole = Path(self.path(folder)).resolve()  # as the files are
        paths = [Path(file) for file in files]
        for path in paths:
            path.unlink(missing_ok=True)
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum of it
        above = {each for path in paths for each in path.parents if whole in each.parents}
        for each in sorted({whole, *above} if paths else (), key=lambda each: len(each.parts), reverse=True):
            with suppress(OSError):  # not empty, or not there
                each.rmdir()

    def older(self, location: str, than: datetime = ANY_TIME, start: str = "") -> Iterator[str]:
        for path in Path(self.path(location)).rglob(f"{start}*"):
            with suppress(FileNotFoundError):  # it is being deleted
                if (
                    path.is_file()
                    and not path.is_symlink()
                    and path.stat().st_mtime < than.timestamp()
                    and not _is_checksum(path)
                ):
                    yield str(path)

    def probe(self, folder: str) -> None:
        place = Path(self.path(folder))
        place = next(each for each in (place, *place.parents) if each.exists())  # a run creates the others
        with tempfile.NamedTemporaryFile(dir=place, prefix=PROBE) as file:
            file.write(b"sluice doctor")
            file.flush()
            Path(file.name).read_bytes()
            list(place.iterdir())

    def around(self, location: str) -> str:
        return self.path(self.root)

    def left(self, folders: Iterable[str]) -> int:
        return sum(1 for folder in folders for path in Path(folder).rglob("*") if path.is_file() and not _is_checksum(path))


def _is_checksum(path: Path) -> bool:
    """Whether it is Hadoop's checksum of a file that is there, and goes with it."""
    return path.suffix == ".crc" and path.name.startswith(".") and path.with_name(path.name[1:-4]).exists()


def local_files(folder: str) -> LocalFiles:
    """Of a folder as a spec names it."""
    return LocalFiles("file://" + str(Path(folder.removeprefix("file://")).absolute()))


def is_elsewhere(location: str) -> bool:
    """Whether what a spec names is not on this machine."""
    return "://" in location and not location.startswith("file://")
