"""A POST with what was written, as JSON, to an address of yours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from framework.errors import SluiceError, Where
from framework.model import SecretStore
from framework.model.notice import About, Notice
from framework.model.secret import SecretRef
from framework.patience import WEBHOOK
from framework.plan.draft import Draft
from framework.secrets import reveal
from framework.spec.options import Bound, option

_HINT = "correct `url`, or its secret; the file is written, and `sluice export` sends it again"


@dataclass(frozen=True)
class Webhook(Bound):
    """The address."""

    url: str | SecretRef = option(
        "The address; a secret if it holds one.", example='"${secret:hook}"', aka=["to", "address", "uri"]
    )


@dataclass(frozen=True)
class Options(Bound):
    """Post what was written, as JSON."""

    known_by: ClassVar[str | None] = "webhook"

    webhook: Webhook = option("The address.", example='{url: "${secret:hook}"}')


def resolve(written: Options, _where: Where, _template: Callable[[str, Where], bool], _draft: Draft) -> Notice:
    return Notice(type="webhook", says="a POST to a webhook", options=written.webhook.url)


def send(notice: Notice, about: About, secrets: SecretStore) -> str:
    """The address is in no message: it may be a secret."""
    import requests

    url = reveal(notice.options, secrets)
    try:
        answer = requests.post(url, json=dict(about.document), timeout=WEBHOOK, allow_redirects=False)
    except (requests.RequestException, ValueError) as error:
        what = "is no address" if isinstance(error, ValueError) else "does not answer"
        raise SluiceError("webhook-failed", f"the webhook {what} ({type(error).__name__})", _HINT) from None
    if answer.status_code >= 300:
        raise SluiceError("webhook-failed", f"the webhook answers {answer.status_code}", _HINT)
    return "posted to the webhook"
