"""Files that are written as a whole or not at all, and never over others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from framework.errors import SluiceError

IGNORED = ".sluice/"


def put(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes new files below a folder, which need not exist. If one cannot be written, none is left."""
    refuse(folder, texts)
    made: list[Path] = []
    try:
        for name, text in texts.items():
            path = folder / name
            for parent in reversed([each for each in path.parents if not each.exists()]):
                parent.mkdir()
                made.append(parent)
            with path.open("x", encoding="utf-8") as file:
                made.append(path)
                file.write(text)
    except BaseException as error:
        for each in reversed(made):
            each.rmdir() if each.is_dir() else each.unlink()
        if isinstance(error, FileExistsError) and path.exists():
            raise _there(path) from None
        if isinstance(error, OSError):
            said = (error.strerror or "it cannot be written").lower()
            raise SluiceError(
                "not-written", f"{path} cannot be written: {said}", "nothing was written; see to the folder"
            ) from None
        raise


def refuse(folder: Path, names: Mapping[str, str]) -> None:
    """Raises where one of the files is there already."""
    for name in names:
        if (folder / name).exists() or (folder / name).is_symlink():
            raise _there(folder / name)


def gitignore(folder: Path) -> dict[str, str]:
    """What keeps Sluice's state out of git; nothing where that is said already."""
    path = folder / ".gitignore"
    try:
        said = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        said = []
    return {} if {line.strip().strip("/") for line in said} & {".sluice"} else {path.name: f"{IGNORED}\n"}


def _there(path: Path) -> SluiceError:
    hint = "nothing was written; move the file away, or name another folder"
    if path.name == ".gitignore":
        hint = f"nothing was written; add the line `{IGNORED}` to it, then init again"
    return SluiceError("file-exists", f"{path} is there already, and is never written over", hint)
