"""A real mail server, which keeps the mails that it is sent."""

from __future__ import annotations

import email.policy
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from framework.machine.services.ports import free_port


class Mailbox:
    """A mail server's handler, which keeps mails and takes none for `nobody@example.com`."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:
        if address.startswith("nobody@"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        self.mails.append(message_from_bytes(envelope.content, policy=email.policy.default))
        return "250 OK"


def authenticated(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
    ok = isinstance(data, LoginPassword) and (data.login, data.password) == (b"sluice", b"s3cret-of-mail")
    return AuthResult(success=ok, handled=False)


@contextmanager
def mail_server(box: Mailbox | None = None, port: int | None = None, **settings: Any) -> Iterator[tuple[Mailbox, int]]:
    box = box or Mailbox()
    port = port or free_port()
    server = Controller(box, hostname="127.0.0.1", port=port, **settings)
    server.start()
    try:
        yield box, port
    finally:
        server.stop()
