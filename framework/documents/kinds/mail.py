"""The server that sends mails, such as those of exports.

There is one for all; an environment can replace it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from framework.base.errors import Problem
from framework.base.hosts import is_loopback
from framework.documents.draft import Draft
from framework.language.kind import Kind
from framework.language.options import Document, option
from framework.language.scalars import Scalar
from framework.plan import PlannedDocument
from framework.plan.notice import Mail as Planned
from framework.plan.secret import SecretRef

Address = Annotated[
    str,
    Scalar(noun="a mail address", code="bad-mail-address", example="sales@example.com", pattern=r"^[^@\s,<>]+@[^@\s,<>]+$(?!\n)",
           rule="name@example.com, each address as an item of its own"),
]  # fmt: skip
EXAMPLE = """\
mail: main
host: 127.0.0.1
port: 1025
from: sluice@example.com
tls: none
"""


@dataclass(frozen=True)
class Mail(Document):
    """The server that sends mails."""

    host: str = option("The server's name or address.", example="smtp.example.com", aka=["server", "smtp"])
    from_: Address = option("The sender of all mails.", example="sluice@example.com", aka=["sender"])
    port: int = option("The server's port.", default=587, at_least=1, at_most=65535, example="587")
    tls: Literal["none", "starttls", "tls"] = option(
        "The encryption: `starttls` begins it on the port of plain mail, `tls` has a port of its own, `none` has none.",
        default="starttls", example="starttls", aka=["ssl", "security", "encryption"],
    )  # fmt: skip
    username: str | SecretRef | None = option(
        "The login's name.", default=None, example='"${secret:mail_user}"', aka=["user", "login"]
    )
    password: SecretRef | None = option("The login's password.", default=None, example='"${secret:mail_password}"')

    def servers(self) -> Iterable[str | None]:
        return (f"{self.host}:{self.port}",)

    def problems(self) -> Iterable[Problem]:
        if ("username" in self.gaps) or ("password" in self.gaps):
            return
        if (self.username is None) != (self.password is None):
            missing = "password" if self.password is None else "username"
            hint = f'add `{missing}: "${{secret:…}}"`, or remove the other'
            yield Problem(self.place(), "missing-key", f"a login needs a name and a password, and there is no `{missing}`", hint)
        elif self.username is not None and self.tls == "none" and not is_loopback(self.host):
            hint = "write `tls: starttls`, or `tls: tls` with the port of that"
            yield Problem(
                self.place("tls"), "unencrypted-login", f"the login would be sent to {self.host} without encryption", hint
            )


def plan_mail(draft: Draft, documents: tuple[Mail, ...]) -> None:
    for spec in documents[:1]:
        if spec.gaps:
            continue
        planned = Planned(
            host=spec.host, port=spec.port, from_=spec.from_, tls=spec.tls, username=spec.username, password=spec.password
        )
        says = (f"by {planned.server}, from {planned.from_}",)
        draft.documents.append(PlannedDocument(kind="mail", name=spec.name, where=spec.place(), value=planned, says=says))


KIND = Kind(Mail, plan_mail, one_only=True)
