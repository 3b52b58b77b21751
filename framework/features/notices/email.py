"""A mail with the file, by the server of the document `mail`."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from typing import Annotated, ClassVar

from framework.base import amounts, iso_times
from framework.base.errors import Problem, SluiceError
from framework.base.patience import MAIL
from framework.documents.draft import Draft
from framework.documents.kinds.mail import Address
from framework.features.notices import NoticeUse
from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration, Scalar
from framework.plan import SecretStore
from framework.plan.notice import Mail, Notice, NoticeContent, NotSentYet, PartlySent, WrittenFile
from framework.systems.secrets import reveal_together

_ATTACHED = 10 << 20  # bytes; servers refuse much larger mails
_WEEK = 7 * 24 * 3600  # longer links are not possible

Subject = Annotated[
    str,
    Scalar(noun="a subject", code="bad-subject", example="Weekly sales {window_start:%d %b}", pattern=r"^[^\r\n]+$(?!\n)",
           rule="one line; `{window_start:%d %b}` is when the window begins"),
]  # fmt: skip


@dataclass(frozen=True)
class Email(OptionGroup):
    """The mail."""

    to: tuple[Address, ...] = option("Who gets it.", at_least=1, example="[sales@example.com]", aka=["recipients", "address"])
    subject: Subject | None = option(
        "Its subject; default: the export's name and window, or the alert in short.",
        default=None, example='"Weekly sales {window_start:%d %b}"', aka=["title"],
    )  # fmt: skip
    link_valid_for: Duration | None = option(
        "How long the link to a file in an object store works; default: a week.", default=None, at_most="7d", example="7d", aka=["expires"]
    )  # fmt: skip


@dataclass(frozen=True)
class Options(OptionGroup):
    """Mail it. A file of more than 10 MB is not attached; the mail says where it is, with a link if that is an object store."""

    known_by: ClassVar[str | None] = "email"

    email: Email = option("The mail.", example='{to: [sales@example.com], subject: "Weekly sales"}')


def plan_notice(written: Options, use: NoticeUse, draft: Draft) -> Notice | None:
    email, where = written.email, written.place()
    mails = [document.value for document in draft.documents if document.kind == "mail"]
    if not mails and not any(kind == "mail" for kind, _ in draft.written.names):
        hint = "add a document `mail: main` with `host` and `from`"
        draft.problems.append(Problem(where, "no-mail", "there is no `mail` in the specs, by which it could be sent", hint))
    if not use.template(email.subject or "", email.place("subject")) or not mails:
        return None
    if email.link_valid_for and not use.linked:
        reason = "the mail has the file itself, which is in no object store" if use.of == "export" else "there is no file"
        message = f"`link_valid_for` has no effect: {reason}"
        draft.problems.append(
            Problem(email.key_place("link_valid_for"), "unused-key", message, "remove it, or write `to: s3://…`")
        )
    options = (mails[0], email.to, email.subject or "", email.link_valid_for or _WEEK)
    return Notice(type="email", says=f"a mail to {', '.join(email.to)}", options=options, send=send)


def send(notice: Notice, about: NoticeContent, secrets: SecretStore) -> str:
    mail, recipients, subject, valid_for = notice.options
    message = _message(mail, recipients, about.filled(subject) or about.title, about, valid_for)
    try:
        with _logged_in(mail, secrets) as server:
            refused = server.send_message(message)
    except (smtplib.SMTPException, OSError, UnicodeError) as error:
        raise _not_sent(mail, error) from None
    if refused:
        raise _no_recipients(mail, refused, PartlySent)
    return f"mailed to {', '.join(recipients)}"


def connect(mail: Mail, secrets: SecretStore) -> None:
    """Connects to the mail server and logs in, without sending anything."""
    try:
        with _logged_in(mail, secrets) as server:
            server.noop()
    except (smtplib.SMTPException, OSError, UnicodeError) as error:
        raise _not_sent(mail, error) from None


@contextmanager
def _logged_in(mail: Mail, secrets: SecretStore) -> Iterator[smtplib.SMTP]:
    server = _connected(mail)
    try:
        if mail.username:
            server.login(*reveal_together((mail.username, mail.password or ""), secrets))
        yield server
    finally:
        with suppress(smtplib.SMTPException, OSError):  # a mail that was taken stays so, however the connection ends
            server.quit()
        server.close()


def _message(mail: Mail, recipients: tuple[str, ...], subject: str, about: NoticeContent, valid_for: int) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = mail.from_, ", ".join(recipients), subject
    message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=mail.from_.rpartition("@")[2])
    place = [_place(about.file, valid_for)] if about.file else []
    message.set_content("\n".join([*about.lines, *place, ""]), cte="quoted-printable")
    if about.file and (attached := _attached(about.file)):
        kind, _, charset = about.file.content_type.partition("; charset=")
        main, _, subtype = kind.partition("/")
        params = {"charset": charset} if charset else {}
        message.add_attachment(attached.read_bytes(), maintype=main, subtype=subtype, filename=attached.name, params=params)
    return message


def _attached(file: WrittenFile) -> Path | None:
    return file.content if file.bytes <= _ATTACHED else None


def _place(file: WrittenFile, valid_for: int) -> str:
    if file.link:
        address, until = file.link(valid_for)
        return f"The file is {file.location}. Until {iso_times.text(until)} whoever has this link can read it:\n{address}"
    if _attached(file):
        return "The file is attached."
    return f"The file is not attached, since it has {amounts.size(file.bytes)}: it is at {file.location}."


def _connected(mail: Mail) -> smtplib.SMTP:
    trusted = ssl.create_default_context()
    if mail.tls == "tls":
        return smtplib.SMTP_SSL(mail.host, mail.port, timeout=MAIL, context=trusted)
    server = smtplib.SMTP(mail.host, mail.port, timeout=MAIL)
    if mail.tls == "starttls":
        server.starttls(context=trusted)
    return server


def _no_recipients(mail: Mail, refused: Iterable[str], error: type[SluiceError] = SluiceError) -> SluiceError:
    return error("mail-not-sent", f"the server {mail.server} does not take mail for {', '.join(refused)}", "correct `to`")


def _not_sent(mail: Mail, error: Exception) -> SluiceError:
    if isinstance(error, smtplib.SMTPAuthenticationError):
        hint = "correct `username` and `password` of the document `mail`, or their secrets"
        return SluiceError("mail-refused", f"the mail server {mail.server} rejected the login", hint)
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return _no_recipients(mail, error.recipients)
    if isinstance(error, ssl.SSLCertVerificationError):
        message = f"the certificate of the mail server {mail.server} is not trusted: {error.verify_message}"
        return SluiceError("mail-not-sent", message, "let SSL_CERT_FILE name the certificate that signed it, or correct `host`")
    if isinstance(error, UnicodeError):
        message = f"mail by {mail.server} can have only ASCII letters in its login, host and addresses"
        return SluiceError("mail-not-sent", message, "use a login and addresses of ASCII letters, and the host's name as `xn--…`")
    says: str | bytes = error.smtp_error if isinstance(error, smtplib.SMTPResponseException) else str(error)
    says = says.decode(errors="replace") if isinstance(says, bytes) else says
    hint = "correct `host`, `port` and `tls` of the document `mail`"
    final = isinstance(error, smtplib.SMTPResponseException) and error.smtp_code >= 500
    message = f"the mail server {mail.server} did not take it: {says or type(error).__name__}"
    return (SluiceError if final else NotSentYet)("mail-not-sent", message, hint)
