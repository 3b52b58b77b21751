"""The program of the service `mail`: takes mails on one port, and shows them as pages on another.

Nothing of a mail reaches a page unescaped: texts are escaped, HTML is shown as its source, and a file is only ever downloaded.
"""

from __future__ import annotations

import email.policy
import os
import re
import sys
import uuid
from datetime import datetime, timezone
from email import message_from_bytes
from email.message import EmailMessage
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiosmtpd.controller import Controller

_LISTED = 500  # the newest mails, on the page of all
_PATH = re.compile(r"/mail/(?P<id>[0-9TZ]+-[0-9a-f]{8})(?:/(?P<number>\d{1,3})/[^/]*)?")
_LINK = re.compile(r"https?://[^\s<>\"']+")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",  # a signed link stays between its reader and the store
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_STYLE = "body{font:1em sans-serif;margin:2em}td,th{text-align:left;padding:.2em 1em .2em 0}pre{white-space:pre-wrap}"


class Mailbox:
    """The mails, one file each, named by the time at which they came."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        name = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S%fZ}-{uuid.uuid4().hex[:8]}"
        draft = self.folder / f"{name}.draft"
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(envelope.content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.folder / f"{name}.eml")
        return "250 OK"

    def ids(self) -> list[str]:
        """The ids of the newest mails, the newest first."""
        return sorted((path.stem for path in self.folder.glob("*.eml")), reverse=True)[:_LISTED]

    def mail(self, id_: str) -> EmailMessage:
        """The mail with this id. Raises FileNotFoundError."""
        return message_from_bytes((self.folder / f"{id_}.eml").read_bytes(), policy=email.policy.default)


def list_page(box: Mailbox) -> str:
    rows = []
    for id_ in box.ids():
        mail = box.mail(id_)
        cells = [_received(id_), _header(mail, "From"), _header(mail, "To")]
        link = f'<a href="/mail/{id_}">{escape(_header(mail, "Subject") or "(no subject)")}</a>'
        rows.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}<td>{link}</td></tr>")
    head = "<tr><th>received</th><th>from</th><th>to</th><th>subject</th></tr>"
    return _page("Mails", f"<table>{head}{''.join(rows)}</table>" if rows else "<p>No mail has come yet.</p>")


def mail_page(id_: str, mail: EmailMessage) -> str:
    headers = "".join(
        f"<tr><th>{name}</th><td>{escape(_header(mail, name))}</td></tr>" for name in ("From", "To", "Date", "Subject")
    )
    files = "".join(
        f'<li><a href="/mail/{id_}/{number}/{quote(name, safe="")}">{escape(name)}</a>, {len(content):,} bytes</li>'
        for number, (name, content) in enumerate(attached_files(mail))
    )
    body = f"<table>{headers}</table><pre>{_linked(text_of(mail))}</pre>{f'<ul>{files}</ul>' if files else ''}"
    return _page(_header(mail, "Subject") or "(no subject)", f'{body}<p><a href="/">all mails</a></p>')


def attached_files(mail: EmailMessage) -> list[tuple[str, bytes]]:
    """The name and the content of each attached file."""
    parts = [part for part in mail.walk() if part.get_content_disposition() == "attachment"]
    return [(part.get_filename() or "file", _content(part)) for part in parts]


def _content(part: Any) -> bytes:
    return bytes(part.get_payload(decode=True) or b"")


def text_of(mail: EmailMessage) -> str:
    """The text of a mail, or the source of its HTML; its whole source where it is broken in a way that Python cannot read."""
    try:
        part = mail.get_body(("plain", "html"))
        return str(part.get_content()) if part else ""
    except Exception:  # a charset that does not exist, a header without an end: the parser raises errors of all kinds
        return str(mail.get_payload())


def _linked(text: str) -> str:
    """The text, escaped, with its addresses of the web as links."""
    pieces, end = [], 0
    for link in _LINK.finditer(text):
        address = link[0].rstrip(".,;:!?)")
        pieces.append(f'{escape(text[end : link.start()])}<a href="{escape(address)}" rel="noreferrer">{escape(address)}</a>')
        end = link.start() + len(address)
    return "".join([*pieces, escape(text[end:])])


def _header(mail: EmailMessage, name: str) -> str:
    try:
        return str(mail[name] or "")
    except Exception:  # as in `text_of`
        return "(cannot be read)"


def _received(id_: str) -> str:
    return f"{datetime.strptime(id_.partition('-')[0], '%Y%m%dT%H%M%S%fZ'):%Y-%m-%dT%H:%M:%SZ}"


def _page(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    return f"<!doctype html><html><head>{head}</head><body><h1>{escape(title)}</h1>{body}</body></html>"


class Pages(BaseHTTPRequestHandler):
    box: Mailbox

    def do_GET(self) -> None:
        # Another site whose name leads here could read the mails otherwise.
        if (self.headers.get("Host") or "").rpartition(":")[0] not in ("127.0.0.1", "localhost"):
            return self._answer(403, b"ask by 127.0.0.1", "text/plain")
        path = self.path.partition("?")[0]
        if path == "/":
            return self._answer(200, list_page(self.box).encode("utf-8", "replace"))
        match = _PATH.fullmatch(path)
        try:
            if match is None:
                raise FileNotFoundError
            mail = self.box.mail(match["id"])
            if match["number"] is None:
                return self._answer(200, mail_page(match["id"], mail).encode("utf-8", "replace"))
            name, content = attached_files(mail)[int(match["number"])]
        except (FileNotFoundError, IndexError):
            return self._answer(404, _page("Not found", '<p><a href="/">all mails</a></p>').encode())
        disposition = f"attachment; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
        return self._answer(200, content, "application/octet-stream", disposition)

    def _answer(self, status: int, body: bytes, kind: str = "text/html; charset=utf-8", disposition: str = "") -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), **_HEADERS}
        for name, value in {**headers, **({"Content-Disposition": disposition} if disposition else {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the log free of a line for each request."""


def main() -> None:
    mail_port, page_port, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    Pages.box = Mailbox(folder)
    Controller(Pages.box, hostname="127.0.0.1", port=mail_port, ready_timeout=30).start()
    ThreadingHTTPServer(("127.0.0.1", page_port), Pages).serve_forever()


if __name__ == "__main__":
    main()
