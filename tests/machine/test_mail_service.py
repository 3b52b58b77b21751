"""The service `mail`: real mails come in by SMTP, and a browser's requests see them; also the file of an export, by its link."""

from __future__ import annotations

import re
import smtplib
import socket
from collections.abc import Iterator
from email.message import EmailMessage
from html import unescape
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from click.testing import CliRunner

from framework.host.cli import main
from framework.machine import services
from framework.machine.services import mail, process
from framework.machine.services.ports import free_port
from tests.support.exports import export
from tests.support.notices import shop, specs

__all__ = ["shop"]  # a fixture

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[int, str]]:
    with mail.running(tmp_path) as running:
        yield running


def get(port: int, path: str, host: str | None = None) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def page(port: int, path: str = "/") -> str:
    answer, body = get(port, path)
    assert answer.status == 200, body
    return body.decode()


def links(html: str, pattern: str) -> list[str]:
    return [unescape(link) for link in re.findall(r'href="([^"]*)"', html) if re.search(pattern, link)]


def deliver(port: int, text: bytes) -> None:
    with smtplib.SMTP("127.0.0.1", port, timeout=20) as client:
        client.sendmail("a@example.com", ["b@example.com"], re.sub(rb"\r?\n", b"\r\n", text))


def written(subject: str = "Hello", text: str = "Good morning.") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.com", "b@example.com", subject
    message.set_content(text)
    return message


def test_a_mail_is_listed_and_shown_and_survives_a_restart(tmp_path: Path) -> None:
    with mail.running(tmp_path) as (port, address):
        assert address == f"http://127.0.0.1:{port + 1}/"
        assert "No mail has come yet." in page(port + 1)
        deliver(port, bytes(written("Umsätze", "Guten Morgen.\nhttps://example.com/a?b=1&c=2.")))
    with mail.running(tmp_path) as (port, _):
        (link,) = links(page(port + 1), "^/mail/")
        mail_page = page(port + 1, link)
        assert "Umsätze" in page(port + 1) and "Guten Morgen." in mail_page
        assert links(mail_page, "^https:") == ["https://example.com/a?b=1&c=2"]
    (file,) = (tmp_path / "services/mail/data").iterdir()
    assert file.stat().st_mode & 0o77 == 0


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def test_nothing_of_a_mail_is_part_of_the_page(server: tuple[int, str]) -> None:
    port, page_port = server[0], server[0] + 1
    message = written(HOSTILE, f'{HOSTILE} http://127.0.0.1/"><script>')
    message.add_alternative(f"<b>{HOSTILE}</b>", subtype="html")
    message.add_attachment(b"<script>", maintype="text", subtype="html", filename=f"../{HOSTILE}.html")
    deliver(port, bytes(message))
    only_html = written(HOSTILE)
    only_html.set_content(f"<b>{HOSTILE}</b>", subtype="html")
    deliver(port, bytes(only_html))
    pages = [page(page_port), *(page(page_port, link) for link in links(page(page_port), "^/mail/"))]
    assert len(pages) == 3
    for html in pages:
        assert "<script" not in html and "<img" not in html and "<b>" not in html and "&lt;script&gt;" in html
    (file,) = links(pages[2], "^/mail/.*/0/") or links(pages[1], "^/mail/.*/0/")
    answer, body = get(page_port, file)
    assert (answer.status, body) == (200, b"<script>")
    assert answer.headers["Content-Disposition"].startswith("attachment;")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


BROKEN = [
    b"",
    b"no header at all",
    b"Subject: =?utf-8?b?====?=\r\nTo: <<<>>>,,;\r\nFrom: \xff\xfe\r\n\r\n\xff\xfe",
    b"Content-Type: text/plain; charset=no-such\r\n\r\nwords",
    b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Disposition: attachment\r\n\r\nabc",
    b"Content-Type: message/rfc822\r\n\r\n",
    b"Content-Transfer-Encoding: base64\r\n\r\n!!!",
]


def test_a_broken_mail_hides_no_other(server: tuple[int, str]) -> None:
    port, page_port = server[0], server[0] + 1
    for text in BROKEN:
        deliver(port, text)
    deliver(port, bytes(written("the last one")))
    assert "the last one" in page(page_port)
    for link in (mails := links(page(page_port), "^/mail/")):
        mail_page = page(page_port, link)
        assert "all mails" in mail_page
        for file in links(mail_page, "^/mail/.*/0/"):
            assert get(page_port, file)[0].status == 200
    assert len(mails) == len(BROKEN) + 1


@pytest.mark.parametrize(
    "path", ["/mail/..%2f..%2fpid", "/mail/../pid", "/mail/20260101T000000000000Z-00000000", "/pid", "/mail/x/0/y"]
)
def test_only_mails_are_shown(server: tuple[int, str], path: str) -> None:
    assert get(server[0] + 1, path)[0].status == 404


def test_a_site_whose_name_leads_here_sees_nothing(server: tuple[int, str]) -> None:
    deliver(server[0], bytes(written("secret")))
    answer, body = get(server[0] + 1, "/", "evil.example.com:80")
    assert answer.status == 403 and b"secret" not in body


def test_the_command_names_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("SLUICE_MAIL_PORT", str(port := free_port(2)))
    try:
        done = CliRunner().invoke(main, ["services", "up", "mail"])
        assert re.fullmatch(rf"mail: started, 127.0.0.1:{port}, process \d+, page http://127.0.0.1:{port + 1}/\n", done.output)
        assert f"page http://127.0.0.1:{port + 1}/" in CliRunner().invoke(main, ["services", "status", "mail"]).output
    finally:
        services.down(["mail"])
    assert process.running(services.folder("mail")) is None
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_the_link_to_the_file_of_an_export_opens_it(shop: Path, server: tuple[int, str]) -> None:
    port, page_port = server[0], server[0] + 1
    specs(port, 'notify: [{email: {to: [sales@example.com], subject: "Weekly {window_start:%d %b}"}}]')
    done = export("weekly", "--window", "2026-W46")
    assert done.exit_code == 0, done.output
    (mail_link,) = links(page(page_port), "^/mail/")
    mail_page = page(page_port, mail_link)
    assert "sales@example.com" in mail_page and "Weekly 09 Nov" in mail_page and "The file is attached." in mail_page
    (file_link,) = links(mail_page, "^/mail/.*/0/")
    assert file_link.endswith("/weekly_2026-11-09.csv")
    assert get(page_port, file_link)[1] == Path("exports/weekly_2026-11-09.csv").read_bytes()
