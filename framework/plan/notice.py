"""Notices about written files and alerts, and the server that sends mails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from framework.base.errors import SluiceError
from framework.plan.secret import SecretRef
from framework.plan.topic import SecretStore


@dataclass(frozen=True, kw_only=True)
class Mail:
    """A mail server."""

    host: str
    port: int
    from_: str
    tls: Literal["none", "starttls", "tls"]
    username: str | SecretRef | None
    password: str | SecretRef | None

    @property
    def server(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One item of `notify`. `options` are as the file of its type planned them."""

    type: str  # the name of its file among the notices
    says: str
    options: Any
    # Sends the notice, and returns what was sent, in words. Its arguments are the notice, its `NoticeContent`, and the
    # store of secrets.
    send: Callable[[Notice, NoticeContent, SecretStore], str] = field(compare=False, repr=False)


class NotSentYet(SluiceError):
    """Sending the notice again may work."""


class PartlySent(SluiceError):
    """Some of the receivers were told. Sending it again would tell them again."""


@dataclass(frozen=True, kw_only=True)
class WrittenFile:
    """A file that a notice is about. `content` is its path on this machine. `link(seconds)` returns an address of the file in an object
    store that is valid for so many seconds, and the time at which it ends."""

    location: str
    content: Path | None
    content_type: str
    link: Callable[[int], tuple[str, datetime]] | None
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Incident:
    """A table for which an alert holds, or no longer does. `key` is the same from its beginning to its end."""

    key: str
    summary: str
    is_over: bool


@dataclass(frozen=True, kw_only=True)
class NoticeContent:
    """The content of a notice. `window` are the beginning and the end of an export's window, if there is one."""

    title: str
    lines: tuple[str, ...]
    document: Mapping[str, Any]
    file: WrittenFile | None = None
    window: Mapping[str, Any] = field(default_factory=dict)
    incidents: tuple[Incident, ...] = ()

    def filled(self, template: str) -> str:
        """The text of a template such as `Sales {window_start:%d %b}`."""
        return template.format(**self.window)
