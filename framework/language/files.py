"""Find the spec files of a folder, and read their text."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from framework.base.errors import Problem, Where

MAX_BYTES = 1 << 20
MAX_FOLDERS = 64  # inside each other
_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00\x00\xfe\xff": "UTF-32"}
# Characters that YAML forbids, that only YAML treats as line breaks, or that are invisible.
_BAD = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)
_BLANK = re.compile(r"^[ -]*(\u00a0)|(?<=:)(\u00a0)", re.MULTILINE)


def path_text(path: Path) -> str:
    return path.as_posix().encode("utf-8", "backslashreplace").decode()


def find(folder: Path, problems: list[Problem], roots: tuple[str, ...], skip: str = "") -> list[Path]:
    """All `*.yaml` files below the folder, sorted, without hidden ones and without its folder `skip`. Links are followed if they lead
    into one of the folders `roots`."""
    paths: list[Path] = []
    visited_folders: set[str] = set()

    def refuse(error: OSError) -> None:
        problems.append(_unreadable(Path(error.filename or folder), error))

    for root, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        real_path = os.path.realpath(root)
        if not _is_in(real_path, roots):
            problems.append(_outside(Path(root)))
        if real_path in visited_folders or not _is_in(real_path, roots):
            folders.clear()
            continue
        visited_folders.add(real_path)
        if len(Path(root).parts) - len(folder.parts) >= MAX_FOLDERS and folders:
            where = Where(path_text(Path(root)), 1, 1)
            problems.append(Problem(where, "too-deep", f"folders are nested over {MAX_FOLDERS} levels deep here", "move them up"))
            folders.clear()
        folders[:] = sorted(name for name in folders if name[0] != "." and not (name == skip and Path(root) == folder))
        for name in sorted(names):
            path = Path(root, name)
            if name[0] == "." or not name.lower().endswith((".yaml", ".yml")):
                continue
            if path.is_symlink() and path.exists() and not _is_in(os.path.realpath(path), roots):
                problems.append(_outside(path))
            elif name.endswith(".yaml"):
                paths.append(path)
            else:
                problems.append(Problem(
                    Where(path_text(path), 1, 1), "wrong-extension", "specs are read from files that end in .yaml",
                    f"rename it to {path_text(path.with_suffix('.yaml'))}",
                ))  # fmt: skip
    return sorted(paths)


def _is_in(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip(os.sep)}{os.sep}") for folder in folders)


def _outside(path: Path) -> Problem:
    hint = "copy the target into the project: links to the outside are not read"
    return Problem(
        Where(path_text(path), 1, 1), "path-leaves-project", "this is a link to a file or folder outside the project", hint
    )


def read(path: Path, problems: list[Problem]) -> str | None:
    """The text of a file, or None and a problem."""
    file = path_text(path)
    start = Where(file, 1, 1)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # opening a FIFO would wait for ever
            problems.append(Problem(start, "not-a-file", "this is not a regular file", "remove it or rename it"))
            return None
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        problems.append(_unreadable(path, error))
        return None
    if len(data) > MAX_BYTES:
        problems.append(Problem(start, "file-too-large", "this file is larger than 1 MiB", "split it into several files"))
        return None
    return decode(data, file, problems)


def decode(data: bytes, file: str, problems: list[Problem]) -> str | None:
    """The text of UTF-8 bytes, with or without a byte order mark."""
    mark = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)
    if mark:
        problems.append(Problem(Where(file, 1, 1), "not-utf8", f"this file is written in {mark}", "save it as UTF-8"))
        return None
    try:
        text = data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        prefix = data[: error.start].decode("utf-8")
        problems.append(Problem(
            _place(file, prefix, len(prefix)), "not-utf8", f"the byte {data[error.start]:#04x} here is not UTF-8",
            "save the file as UTF-8",
        ))  # fmt: skip
        return None
    return _clean(text, file, problems)


def _clean(text: str, file: str, problems: list[Problem]) -> str | None:
    bad_match = _BAD.search(text)
    blank_match = _BLANK.search(text) if "\u00a0" in text else None
    if bad_match:
        problems.append(Problem(
            _place(file, text, bad_match.start()), "bad-character", f"there is an invisible character here (U+{ord(bad_match[0]):04X})",
            'remove it; inside "double quotes" it can be written as ' + _escape(bad_match[0]),
        ))  # fmt: skip
        return None
    if blank_match:
        problems.append(Problem(
            _place(file, text, blank_match.start(1) if blank_match[1] else blank_match.start(2)), "bad-character",
            "the space here is a no-break space (U+00A0)",
            "replace it with an ordinary space; copied text often has such spaces",
        ))  # fmt: skip
        return None
    return _without_tabs(text, file, problems)


def _escape(character: str) -> str:
    return f"`\\x{ord(character):02x}`" if ord(character) < 256 else f"`\\u{ord(character):04x}`"


def _without_tabs(text: str, file: str, problems: list[Problem]) -> str | None:
    if "\t" not in text:
        return text
    lines = [number for number, line in enumerate(text.split("\n"), 1) if "\t" in line]
    suffix = f"; there are tabs on {len(lines)} lines" if len(lines) > 1 else ""
    problems.append(Problem(
        _place(file, text, text.index("\t")), "tab", f"there is a tab here{suffix}",
        'use spaces; inside "double quotes" a tab is written as `\\t`',
    ))  # fmt: skip
    indents = any(re.fullmatch(r" *(- *)?", line.partition("\t")[0]) for line in text.split("\n") if "\t" in line)
    return None if indents else text.replace("\t", " ")


def _place(file: str, text: str, index: int) -> Where:
    return Where(file, text.count("\n", 0, index) + 1, index - (text.rfind("\n", 0, index) + 1) + 1)


def _unreadable(path: Path, error: OSError) -> Problem:
    reason = (error.strerror or "it cannot be read").lower()
    return Problem(
        Where(path_text(path), 1, 1),
        "unreadable-file",
        f"this cannot be read: {reason}",
        "check that it exists and that you may read it",
    )
