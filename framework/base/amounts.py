"""Numbers with their nouns, and sizes, for people."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def size(count: int) -> str:
    for unit, bytes_ in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= bytes_:
            return f"{count / bytes_:,.1f} {unit}"
    return f"{count} bytes"
