"""A POST to an address of yours: as JSON, signed if there is a secret for that, or as Slack or PagerDuty expect it."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from framework.base.errors import Problem, SluiceError
from framework.base.patience import WEBHOOK
from framework.documents.draft import Draft
from framework.features.notices import NoticeUse
from framework.language.options import OptionGroup, option
from framework.plan import SecretStore
from framework.plan.notice import Notice, NoticeContent, NotSentYet
from framework.plan.secret import SecretRef
from framework.systems.secrets import reveal

_HINT = "correct `url`, or its secret; it is sent again then: a file by `sluice export`, an alert when it is judged next"
_TO = "a POST to "
_FORMATS = {"json": (), "slack": ("slack",), "pagerduty": ("pagerduty",)}
_PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"


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
    format: Literal["json", "slack", "pagerduty"] = option(
        "What is sent: `json`, all of it; `slack`, a message to an incoming webhook of Slack, or of what understands the same; `pagerduty`,"
        f" an event for each table, for an alert. PagerDuty's address is {_PAGERDUTY}.",
        default="json", example="slack", aka=["type", "style"],
    )  # fmt: skip
    routing_key: SecretRef | None = option(
        "PagerDuty's key of the service that is told.", default=None, example='"${secret:pagerduty_key}"', aka=["integration_key"]
    )

    def problems(self) -> Iterable[Problem]:
        if self.gaps & {"format", "routing_key", "signed_by"}:
            return
        if self.signed_by is not None and self.format != "json":
            message = f"`signed_by` has no effect with `format: {self.format}`"
            yield Problem(self.key_place("signed_by"), "unused-key", message, "remove it, or write `format: json`")
        if self.routing_key is not None and self.format != "pagerduty":
            message = "`routing_key` has no effect without `format: pagerduty`"
            yield Problem(self.key_place("routing_key"), "unused-key", message, "remove it, or write `format: pagerduty`")
        if self.routing_key is None and self.format == "pagerduty":
            message = "`format: pagerduty` has no `routing_key`"
            yield Problem(self.place("format"), "missing-key", message, 'add `routing_key: "${secret:pagerduty_key}"`')


@dataclass(frozen=True)
class Options(OptionGroup):
    """Post it to an address."""

    known_by: ClassVar[str | None] = "webhook"

    webhook: Webhook = option("The address.", example='{url: "${secret:hook}"}')


def plan_notice(written: Options, use: NoticeUse, draft: Draft) -> Notice:
    webhook = written.webhook
    if webhook.format == "pagerduty" and use.of != "alert":
        message = "`format: pagerduty` is for alerts: a file that was written is no incident"
        draft.problems.append(Problem(webhook.place("format"), "unused-key", message, "write `format: json` or `slack`"))
    to = {"json": "a webhook", "slack": "Slack", "pagerduty": "PagerDuty"}[webhook.format]
    # By its options a notice is known that was sent: those of JSON are as they were before there were formats.
    options = (webhook.url, webhook.signed_by or webhook.routing_key, *_FORMATS[webhook.format])
    return Notice(type="webhook", says=f"{_TO}{to}", options=options, send=send)


def send(notice: Notice, about: NoticeContent, secrets: SecretStore) -> str:
    url, secret, *other_format = notice.options
    format_ = other_format[0] if other_format else "json"
    address, key = reveal(url, secrets), reveal(secret, secrets) if secret else ""
    for document in _documents(format_, about, key):
        body = json.dumps(document).encode()
        _post(address, body, _signature(key, body) if key and not other_format else {})
    return f"posted to {notice.says.removeprefix(_TO)}"


def _documents(format_: str, about: NoticeContent, key: str) -> Iterator[Mapping[str, Any]]:
    """The documents to post. PagerDuty takes an event twice as one."""
    match format_:
        case "slack":
            yield {"text": "\n".join((f"*{about.title}*", *about.lines, *([about.file.location] if about.file else [])))}
        case "pagerduty":
            for incident in about.incidents:
                payload = {
                    "summary": incident.summary,
                    "source": "sluice",
                    "severity": "error",
                    "custom_details": dict(about.document),
                }
                event = {"event_action": "resolve"} if incident.is_over else {"event_action": "trigger", "payload": payload}
                yield {"routing_key": key, "dedup_key": incident.key, **event}
        case _:
            yield dict(about.document)


def _post(address: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Posts one document. No message contains the address, which may be a secret."""
    import requests

    content = {"Content-Type": "application/json", **headers}
    try:
        answer = requests.post(address, data=body, headers=content, timeout=WEBHOOK, allow_redirects=False)
    except ValueError as error:  # also those that `requests` has for addresses
        raise SluiceError("webhook-failed", f"the webhook is not a valid address ({type(error).__name__})", _HINT) from None
    except requests.RequestException as error:
        raise NotSentYet("webhook-failed", f"the webhook does not answer ({type(error).__name__})", _HINT) from None
    if answer.status_code >= 300:
        can_retry = answer.status_code == 429 or answer.status_code >= 500
        raise (NotSentYet if can_retry else SluiceError)("webhook-failed", f"the webhook answers {answer.status_code}", _HINT)


def _signature(key: str, body: bytes) -> dict[str, str]:
    timestamp = str(int(time.time()))
    digest = hmac.new(key.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"X-Sluice-Timestamp": timestamp, "X-Sluice-Signature": f"sha256={digest}"}
