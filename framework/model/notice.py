"""Notices about written files, and the server that sends mails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from framework.model.secret import SecretRef

NOTICES = "framework.notices"  # one file each


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
    """One item of `notify`. `options` are as the file of `framework.notices` planned them."""

    type: str  # a file of `framework.notices`
    says: str
    options: Any


@dataclass(frozen=True, kw_only=True)
class About:
    """What a notice tells. `window` are the beginning and the end of the window, where there is one."""

    title: str
    lines: tuple[str, ...]
    document: Mapping[str, Any]
    file: str
    bytes: int
    window: Mapping[str, Any]

    def filled(self, template: str) -> str:
        """A template such as `Sales {window_start:%d %b}`."""
        return template.format(**self.window)
