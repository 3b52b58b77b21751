"""A POST with what was written, as JSON, to an address of yours, signed if there is a secret for that."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from framework.base.errors import SluiceError, Where
from framework.base.patience import WEBHOOK
from framework.documents.draft import Draft
from framework.language.options import OptionGroup, option
from framework.plan import SecretStore
from framework.plan.notice import Notice, NoticeContent, NotSentYet
from framework.plan.secret import SecretRef
from framework.systems.secrets import reveal

_HINT = "correct `url`, or its secret; the file is written, and `sluice export` sends it again"


@dataclass(frozen=True)
class Webhook(OptionGroup):
    """The address."""

    url: str | SecretRef = option(
        "The address; a secret if it holds one.", example='"${secret:hook}"', aka=["to", "address", "uri"]
    )
    signed_by: SecretRef | None = option(
        "A secret that the receiver knows, too. The header `X-Sluice-Signature` is then `sha256=` and the HMAC, in hex, of the header"
        " `X-Sluice-Timestamp`, a `.`, and the body.",
        default=None, example='"${secret:hook_key}"', aka=["secret", "key", "signature"],
    )  # fmt: skip


@dataclass(frozen=True)
class Options(OptionGroup):
    """Post what was written, as JSON."""

    known_by: ClassVar[str | None] = "webhook"

    webhook: Webhook = option("The address.", example='{url: "${secret:hook}"}')


def plan_notice(written: Options, _where: Where, _template: Callable[[str, Where], bool], _linked: bool, _draft: Draft) -> Notice:
    webhook = written.webhook
    return Notice(type="webhook", says="a POST to a webhook", options=(webhook.url, webhook.signed_by), send=send)


def send(notice: Notice, about: NoticeContent, secrets: SecretStore) -> str:
    """Posts the notice. No message contains the address, which may be a secret."""
    import requests

    url, key = notice.options
    body = json.dumps(dict(about.document)).encode()
    headers = {"Content-Type": "application/json", **(_signature(reveal(key, secrets), body) if key else {})}
    try:
        answer = requests.post(reveal(url, secrets), data=body, headers=headers, timeout=WEBHOOK, allow_redirects=False)
    except ValueError as error:  # also those that `requests` has for addresses
        raise SluiceError("webhook-failed", f"the webhook is not a valid address ({type(error).__name__})", _HINT) from None
    except requests.RequestException as error:
        raise NotSentYet("webhook-failed", f"the webhook does not answer ({type(error).__name__})", _HINT) from None
    if answer.status_code >= 300:
        can_retry = answer.status_code == 429 or answer.status_code >= 500
        raise (NotSentYet if can_retry else SluiceError)("webhook-failed", f"the webhook answers {answer.status_code}", _HINT)
    return "posted to the webhook"


def _signature(key: str, body: bytes) -> dict[str, str]:
    timestamp = str(int(time.time()))
    digest = hmac.new(key.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"X-Sluice-Timestamp": timestamp, "X-Sluice-Signature": f"sha256={digest}"}
