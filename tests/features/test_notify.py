"""Notices about written files, also of the toy `tests/toys/notices/slip.py`, which nothing else names; real servers take mails."""

from __future__ import annotations

import hashlib
import hmac
import json
import ssl
import threading
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from framework.features.notices import email as mailing
from framework.host.components import COMPONENTS
from framework.language.shapes import record_shape
from tests import toys
from tests.support.certificate import certified
from tests.support.exports import export, put, utc
from tests.support.mail_server import Mailbox, authenticated, mail_server
from tests.support.notices import shop, specs

pytestmark = pytest.mark.slow
__all__ = ["shop"]  # a fixture


def every() -> list[str]:
    with toys.installed():
        return list(COMPONENTS.notices.names())


@pytest.mark.parametrize("name", every())
def test_each_is_declared(name: str) -> None:
    with toys.installed():
        file = COMPONENTS.notices.load(name)
        assert file.__doc__
        assert file.Options.known_by == name
        assert record_shape(file.Options).slots[name].required


def new_rows() -> None:
    """Changes the content of the week's file, about which no notice has been sent."""
    put(("o-2", "web", "1.50", utc("2026-11-11T12:00")))


TWO = 'notify: [{email: {to: [sales@example.com, Ann.B@example.com], subject: "Umsatz {window_start:%d %b} für alle"}}]'


def test_a_mail_has_the_file(shop: Path) -> None:
    with mail_server() as (box, port):
        specs(port, TWO)
        done = export("weekly", "--window", "2026-W46")
        assert done.exit_code == 0, done.output
        assert "  mailed to sales@example.com, Ann.B@example.com" in done.output
        assert "not sent again for the same content: a mail to sales@" in export("weekly", "--window", "2026-W46").output
        new_rows()
        assert export("weekly", "--window", "2026-W46").exit_code == 0
    mail, second_mail = box.mails
    assert (mail["From"], mail["To"]) == ("sluice@example.com", "sales@example.com, Ann.B@example.com")
    assert mail["Subject"] == "Umsatz 09 Nov für alle"
    body = mail.get_body()
    assert body is not None
    text = body.get_content()
    assert "weekly of 2026-W46: 1 row" in text
    assert "from snapshot" in text
    (file,) = mail.iter_attachments()
    assert file.get_filename() == "weekly_2026-11-09.csv"
    assert file.get_payload(decode=True) == b"\xef\xbb\xbforder_id,amount\no-1,10.50\n"
    assert "replaces the file of" in cast(EmailMessage, second_mail.get_body()).get_content()


@pytest.mark.parametrize(
    ("form", "content_type"),
    [("csv", 'text/csv; charset="utf-8"'), ("parquet", "application/vnd.apache.parquet"), ("jsonl", "application/x-ndjson")],
)
def test_a_mailed_file_has_the_content_type_of_its_format(shop: Path, form: str, content_type: str) -> None:
    with mail_server() as (box, port):
        specs(port, TWO)
        text = Path("specs/all.yaml").read_text()
        Path("specs/all.yaml").write_text(text.replace("format: csv", f"format: {form}", 1).replace("%d}.csv", f"%d}}.{form}", 1))
        done = export("weekly", "--window", "2026-W46")
        assert done.exit_code == 0, done.output
    (file,) = box.mails[0].iter_attachments()
    assert file["Content-Type"] == content_type
    assert file.get_filename() == f"weekly_2026-11-09.{form}"
    assert file.get_payload(decode=True) == Path(f"exports/weekly_2026-11-09.{form}").read_bytes()


def test_each_notice_is_sent_whatever_becomes_of_the_others(shop: Path) -> None:
    with toys.installed():
        specs(1, "notify: [{email: {to: [sales@example.com]}}, {slip: slips.txt}]")
        failed = export("weekly", "--window", "2026-W46")
    assert "  a line in slips.txt" in failed.output
    assert "mail-not-sent" in failed.stderr
    assert Path("slips.txt").read_text() == "weekly 2026-W46\n"


def test_a_large_file_is_not_attached(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailing, "_ATTACHED", 3)  # a file of 10 MB takes seconds
    with mail_server() as (box, port):
        specs(port, TWO)
        assert export("weekly", "--window", "2026-W46").exit_code == 0
    assert not list(box.mails[0].iter_attachments())
    assert "not attached, since it has" in cast(EmailMessage, box.mails[0].get_body()).get_content()


def test_a_mail_server_with_a_login(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    login = 'tls: none\nusername: sluice\npassword: "${secret:mail}"'
    with mail_server(authenticator=authenticated, auth_required=True, auth_require_tls=False) as (box, port):
        specs(port, TWO, login)
        monkeypatch.setenv("SLUICE_SECRET_MAIL", "s3cret-of-mail")
        assert export("weekly", "--window", "2026-W46").exit_code == 0
        monkeypatch.setenv("SLUICE_SECRET_MAIL", "wr0ng-of-mail")
        new_rows()
        failed = export("weekly", "--window", "2026-W46")
    assert len(box.mails) == 1
    assert failed.exit_code == 1
    assert "mail-refused: exports/weekly_2026-11-09.csv is written" in failed.stderr
    assert "wr0ng" not in failed.output


def test_letters_that_a_login_cannot_have_are_named(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    login = 'tls: none\nusername: sluice\npassword: "${secret:mail}"'
    monkeypatch.setenv("SLUICE_SECRET_MAIL", "gehä1m")
    with mail_server(authenticator=authenticated, auth_require_tls=False) as (_, port):
        specs(port, TWO, login)
        failed = export("weekly", "--window", "2026-W46")
    assert "mail-not-sent: exports/weekly_2026-11-09.csv is written" in failed.stderr
    assert "can have only ASCII letters in its login" in failed.stderr and "e4" not in failed.stderr


def test_a_mail_that_was_taken_counts_however_the_connection_ends(shop: Path) -> None:
    class CutOff(Mailbox):
        async def handle_QUIT(self, server: Any, *_: Any) -> str:
            server.transport.abort()
            return "221 Bye"

    with mail_server(CutOff()) as (box, port):
        specs(port, TWO)
        done = export("weekly", "--window", "2026-W46")
        assert done.exit_code == 0, done.output
        assert "not sent again" in export("weekly", "--window", "2026-W46").output
    assert len(box.mails) == 1


@pytest.mark.parametrize("tls", ["none", "starttls", "tls"])
def test_a_server_that_does_not_take_it(shop: Path, tls: str) -> None:
    """The file is written in each case, and all other notices are sent."""
    with mail_server() as (box, port):
        specs(port if tls != "none" else 1, TWO, f"tls: {tls}")
        failed = export("weekly", "--window", "2026-W46")
    assert failed.exit_code == 1
    assert "mail-not-sent: exports/weekly_2026-11-09.csv is written, and not all were told of it" in failed.stderr
    assert Path("exports/weekly_2026-11-09.csv").exists()
    assert box.mails == []


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_an_encrypted_mail_arrives_if_the_certificate_is_trusted(shop: Path, monkeypatch: pytest.MonkeyPatch, tls: str) -> None:
    certificate, key = certified(shop)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    settings = {"tls_context": context, "require_starttls": True} if tls == "starttls" else {"ssl_context": context}
    with mail_server(**settings) as (box, port):
        specs(port, TWO, f"tls: {tls}")
        stranger = export("weekly", "--window", "2026-W46")
        assert "is not trusted: self-signed certificate" in stranger.stderr
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert export("weekly", "--window", "2026-W46").exit_code == 0
    assert len(box.mails) == 1


def test_who_is_unknown_to_the_server_is_named(shop: Path) -> None:
    with mail_server() as (box, port):
        specs(port, "notify: [{email: {to: [sales@example.com, nobody@example.com]}}, {email: {to: [nobody@example.com]}}]")
        failed = export("weekly", "--window", "2026-W46")
    assert "does not take mail for nobody@example.com" in failed.stderr
    assert len(box.mails) == 1
    assert box.mails[0]["Subject"] == "weekly 2026-W46"


def test_a_webhook_is_called_and_its_address_is_hidden(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The webhook's address is a secret, and appears nowhere."""
    got: list[Any] = []
    signed: list[bool] = []
    answers = [200, 500, 200, 302]

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            text = self.headers["X-Sluice-Timestamp"].encode() + b"." + body
            expected = hmac.new(b"s3cret-of-the-receiver", text, hashlib.sha256).hexdigest()
            signed.append(self.headers["X-Sluice-Signature"] == f"sha256={expected}")
            got.append(json.loads(body))
            self.send_response(answers[len(got) - 1])
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        monkeypatch.setenv("SLUICE_SECRET_HOOK", f"http://127.0.0.1:{server.server_port}/s3cret-path")
        monkeypatch.setenv("SLUICE_SECRET_HOOK_KEY", "s3cret-of-the-receiver")
        specs(0, 'notify: [{webhook: {url: "${secret:hook}", signed_by: "${secret:hook_key}"}}]')
        done = export("weekly", "--window", "2026-W46")
        assert "posted to a webhook" in done.output
        new_rows()
        outputs = [export("weekly", "--window", "2026-W46")]
        assert "posted to a webhook" in outputs[0].output  # at the second try
        new_rows()
        outputs.append(export("weekly", "--window", "2026-W46"))
        assert outputs[1].exit_code == 1
        assert "the webhook answers 302" in outputs[1].stderr
        assert signed == [True] * 4
    finally:
        server.shutdown()
    monkeypatch.setenv("SLUICE_SECRET_HOOK", "no address/s3cret-path")
    outputs.append(export("weekly", "--window", "2026-W46"))
    monkeypatch.setenv("SLUICE_SECRET_HOOK", "http://127.0.0.1:1/s3cret-path")
    outputs.append(export("weekly", "--window", "2026-W46"))
    assert "the webhook is not a valid address" in outputs[2].stderr
    assert "the webhook does not answer" in outputs[3].stderr
    assert not any("s3cret" in result.output for result in (done, *outputs))
    assert got[0]["rows"] == 1
    assert (got[0]["export"], got[0]["window"], got[0]["file"]) == ("weekly", "2026-W46", "exports/weekly_2026-11-09.csv")
