"""Numbers with their nouns, and sizes, for people."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def span(seconds: float) -> str:
    """A span of time in the unit in which it is at least 2."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.0f} s"


def size(count: int) -> str:
    for unit, bytes_ in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= bytes_:
            return f"{count / bytes_:,.1f} {unit}"
    return f"{count} bytes"
