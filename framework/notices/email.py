"""A mail with the file, by the server of the document `mail`."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from typing import Annotated, ClassVar

from framework import amounts
from framework.errors import Problem, SluiceError, Where
from framework.model import SecretStore
from framework.model.notice import About, Mail, Notice
from framework.patience import MAIL
from framework.plan.draft import Draft
from framework.secrets import reveal
from framework.spec.options import Bound, later, option
from framework.spec.scalars import Scalar

_ATTACHED = 10 << 20  # bytes; servers refuse much larger mails

Address = Annotated[
    str,
    Scalar(noun="a mail address", code="bad-mail-address", example="sales@example.com", pattern=r"^[^@\s,<>]+@[^@\s,<>]+$(?!\n)",
           rule="name@example.com, each address as an item of its own"),
]  # fmt: skip
Subject = Annotated[
    str,
    Scalar(noun="a subject", code="bad-subject", example="Weekly sales {window_start:%d %b}", pattern=r"^[^\r\n]+$(?!\n)",
           rule="one line; `{window_start:%d %b}` is when the window begins"),
]  # fmt: skip


@dataclass(frozen=True)
class Email(Bound):
    """The mail."""

    to: tuple[Address, ...] = option("Who gets it.", at_least=1, example="[sales@example.com]", aka=["recipients", "address"])
    subject: Subject | None = option(
        "Its subject; default: the export's name and window.", default=None, example='"Weekly sales {window_start:%d %b}"', aka=["title"]
    )  # fmt: skip
    link_valid_for: None = later("How long a link to a file in an object store is valid.")


@dataclass(frozen=True)
class Options(Bound):
    """Mail the file. One of more than 10 MB is not attached; the mail says where it is."""

    known_by: ClassVar[str | None] = "email"

    email: Email = option("The mail.", example='{to: [sales@example.com], subject: "Weekly sales"}')


def resolve(written: Options, where: Where, template: Callable[[str, Where], bool], draft: Draft) -> Notice | None:
    email = written.email
    mails = [document.value for document in draft.documents if document.kind == "mail"]
    if not mails and not any(kind == "mail" for kind, _ in draft.written.names):
        hint = "add a document `mail: main` with `host` and `from`"
        draft.problems.append(Problem(where, "no-mail", "there is no `mail` in the specs, by which it could be sent", hint))
    if not template(email.subject or "", email.place("subject")) or not mails:
        return None
    return Notice(type="email", says=f"a mail to {', '.join(email.to)}", options=(mails[0], email.to, email.subject or ""))


def send(notice: Notice, about: About, secrets: SecretStore) -> str:
    mail, to, subject = notice.options
    message = _message(mail, to, about.filled(subject) or about.title, about)
    try:
        with _connected(mail) as server:
            if mail.username:
                server.login(reveal(mail.username, secrets), reveal(mail.password or "", secrets))
            refused = server.send_message(message)
    except (smtplib.SMTPException, OSError) as error:
        raise _not_sent(mail, error) from None
    if refused:
        raise _no_recipients(mail, refused)
    return f"mailed to {', '.join(to)}"


def _message(mail: Mail, to: tuple[str, ...], subject: str, about: About) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = mail.from_, ", ".join(to), subject
    message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=mail.from_.rpartition("@")[2])
    attached = about.bytes <= _ATTACHED
    place = "attached" if attached else f"not attached, since it has {amounts.size(about.bytes)}: it is at {about.file}"
    message.set_content("\n".join([*about.lines, f"The file is {place}.", ""]))
    if attached:
        message.add_attachment(
            Path(about.file).read_bytes(), maintype="application", subtype="octet-stream", filename=Path(about.file).name
        )
    return message


def _connected(mail: Mail) -> smtplib.SMTP:
    trusted = ssl.create_default_context()
    if mail.tls == "tls":
        return smtplib.SMTP_SSL(mail.host, mail.port, timeout=MAIL, context=trusted)
    server = smtplib.SMTP(mail.host, mail.port, timeout=MAIL)
    if mail.tls == "starttls":
        server.starttls(context=trusted)
    return server


def _no_recipients(mail: Mail, refused: Iterable[str]) -> SluiceError:
    return SluiceError("mail-not-sent", f"the server {mail.server} does not take mail for {', '.join(refused)}", "correct `to`")


def _not_sent(mail: Mail, error: Exception) -> SluiceError:
    if isinstance(error, smtplib.SMTPAuthenticationError):
        hint = "correct `username` and `password` of the document `mail`, or their secrets"
        return SluiceError("mail-refused", f"the mail server {mail.server} rejected the login", hint)
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return _no_recipients(mail, error.recipients)
    says: str | bytes = error.smtp_error if isinstance(error, smtplib.SMTPResponseException) else str(error)
    says = says.decode(errors="replace") if isinstance(says, bytes) else says
    hint = "correct `host`, `port` and `tls` of the document `mail`"
    return SluiceError("mail-not-sent", f"the mail server {mail.server} did not take it: {says or type(error).__name__}", hint)
