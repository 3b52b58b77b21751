"""Java's classes by their names, each looked up once.

Py4J asks for each part of a name whether it is a class, for which all jars are searched, and does so each time that it is used.
"""

from __future__ import annotations

from typing import Any


class Package:
    """A Java package; a member whose name begins with a capital letter is a class."""

    def __init__(self, jvm: Any, name: str) -> None:
        self._jvm = jvm
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        full = f"{self._name}.{name}"
        member = getattr(self._jvm, full) if name[0].isupper() else Package(self._jvm, full)
        setattr(self, name, member)
        return member
