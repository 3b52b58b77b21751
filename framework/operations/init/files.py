"""New files, written all or none, never over existing ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from framework.base.errors import SluiceError

IGNORED = ".sluice/"


def put(folder: Path, texts: Mapping[str, str]) -> None:
    """Write new files below a folder, which need not exist. If one cannot be written, none is left."""
    refuse(folder, texts)
    new_paths: list[Path] = []
    try:
        for name, text in texts.items():
            path = folder / name
            for parent in reversed([ancestor for ancestor in path.parents if not ancestor.exists()]):
                parent.mkdir()
                new_paths.append(parent)
            with path.open("x", encoding="utf-8") as file:
                new_paths.append(path)
                file.write(text)
    except BaseException as error:
        for new_path in reversed(new_paths):
            new_path.rmdir() if new_path.is_dir() else new_path.unlink()
        if isinstance(error, FileExistsError) and path.exists():
            raise _exists(path) from None
        if isinstance(error, OSError):
            raise _not_written(path, error, "nothing was written; check the folder's permissions and space") from None
        raise


def refuse(folder: Path, names: Mapping[str, str]) -> None:
    """Raise if one of the files exists already."""
    for name in names:
        if (folder / name).exists() or (folder / name).is_symlink():
            raise _exists(folder / name)


def ignore(folder: Path) -> tuple[str, ...]:
    """Keep Sluice's state out of git by a line at the end of `.gitignore`. Return the name of that file, if it was written."""
    path = folder / ".gitignore"
    try:
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        if ".sluice" in {line.strip().strip("/") for line in text.splitlines()}:
            return ()
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{IGNORED}\n" if not text or text.endswith("\n") else f"\n{IGNORED}\n")
    except OSError as error:
        raise _not_written(path, error, f"all other files are written; add the line `{IGNORED}` to it yourself") from None
    return (f"{path.name} (one line more)" if text else path.name,)


def _not_written(path: Path, error: OSError, hint: str) -> SluiceError:
    reason = (error.strerror or "it cannot be written").lower()
    return SluiceError("not-written", f"{path} cannot be written: {reason}", hint)


def _exists(path: Path) -> SluiceError:
    hint = "nothing was written; move the file away, or name another folder"
    return SluiceError("file-exists", f"{path} exists already, and is never overwritten", hint)
