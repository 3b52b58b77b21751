"""A program that answers as Java does."""

from __future__ import annotations

from pathlib import Path


def fake_java(home: Path, says: str, status: int = 0) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\nexit {status}\n")
    program.chmod(0o755)
    return home
