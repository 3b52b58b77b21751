"""Secrets in AWS Secrets Manager.

A value is kept in memory for `refresh`, and looked up earlier after anything failed: the value may have been why. As long as AWS does not
answer, the kept value is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from framework.base.errors import Problem, SecretsAway, SetupError
from framework.language import aws_login
from framework.language.options import OptionGroup, option
from framework.language.scalars import Duration, Url
from framework.plan.storage import Storage
from framework.systems import aws_policy, buckets
from framework.systems.keyring import Ring, StoredKey
from framework.systems.secrets import KeyStore, _kept
from framework.systems.secrets._aws_ring import CURRENT, RIGHTS, AwsRing
from framework.systems.secrets._kept import Kept


@dataclass(frozen=True)
class Options(OptionGroup):
    """AWS Secrets Manager, with the machine's AWS login."""

    prefix: str = option(
        "What the names there begin with: `${secret:kafka_key}` is the secret `PREFIXkafka_key`; default: nothing.",
        default="",
        example="sluice/prod/",
    )
    region: str | None = option("The region; default: that of the login.", default=None, example="eu-central-1")
    profile: str | None = aws_login.profile()
    role: str | None = aws_login.role()
    external_id: str | None = aws_login.external_id()
    endpoint: Url | None = option(
        "The address; default: that of AWS.", default=None, example="https://vpce-1a2b.secretsmanager.eu-central-1.vpce.amazonaws.com",
        aka=["url", "uri"],
    )  # fmt: skip
    refresh: Duration = _kept.refresh()

    def servers(self) -> Iterable[str | None]:
        return (self.endpoint,)

    def problems(self) -> Iterable[Problem]:
        yield from aws_login.id_without_role(self, self.role, self.external_id)
        yield from _kept.sent_openly(self, "endpoint")


class SecretsManager(KeyStore):
    does = "asks AWS Secrets Manager"

    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._kept = Kept(options.refresh)

    def value(self, name: str) -> str:
        """The value of the secret, or of a field of one that is a JSON object: `kafka.password` is its field `password`, unless there
        is a secret of that whole name."""
        return self.values([name])[name]

    def values(self, names: Iterable[str]) -> Mapping[str, str]:
        texts: dict[
            str, str | None
        ] = {}  # of secrets with fields: all of one moment, also while others are told to look up again
        return {name: self._value(name, texts) for name in names}

    def forget(self) -> None:
        self._kept.forget()

    def keys(self, ring: Ring) -> tuple[StoredKey, ...]:
        return AwsRing(self._ask, self.options.prefix, ring).keys()

    def ring(self, name: str, is_rotated: bool) -> tuple[StoredKey, ...]:
        if not is_rotated:  # to look for keys needs a right more than to read a value
            return super().ring(name, is_rotated)
        keys: tuple[StoredKey, ...] = self._kept.fresh(f"{name}@", lambda: self.keys(Ring(name=name, secrets=(name,))))
        return keys

    def add_key(self, ring: Ring, number: int, values: Mapping[str, str], by_hand: bool = False) -> None:
        AwsRing(self._ask, self.options.prefix, ring).add(number, values, by_hand)

    def use_key(self, ring: Ring, number: int) -> None:
        AwsRing(self._ask, self.options.prefix, ring).use(number)

    def remove_key(self, ring: Ring, number: int) -> None:
        AwsRing(self._ask, self.options.prefix, ring).remove(number)

    def _value(self, name: str, texts: dict[str, str | None]) -> str:
        outer, dot, field_name = name.rpartition(".")
        text = self._kept_text(name)
        if text is not None:
            return text
        if dot and outer not in texts:
            texts[outer] = self._kept_text(outer)
        text = texts.get(outer) if dot else None
        if text is None:
            self._kept.drop(name)  # it may be there the next time
            self._kept.drop(outer)
            raise self._missing(name, f"has no secret `{self.options.prefix}{name}`")
        value = _field(text, field_name)
        if value is None:
            raise self._missing(name, f"has `{self.options.prefix}{outer}`, which is no JSON object with a text `{field_name}`")
        return value

    def _kept_text(self, name: str) -> str | None:
        """The text of a secret, as it was looked up last. All fields of one are of one moment."""
        return self._kept.fresh(name, lambda: self._text(name))

    def _text(self, name: str) -> str | None:
        """The text of a secret; None if there is none of this name."""
        answer = self._ask("get_secret_value", name, VersionStage=CURRENT)
        if answer is None:
            return None
        if "SecretString" not in answer:
            hint = "store it with `--secret-string`, not with `--secret-binary`"
            raise SetupError("no-secret", f"the secret `{self.options.prefix}{name}` in Secrets Manager is binary", hint)
        return str(answer["SecretString"])

    def _ask(self, action: str, name: str, **arguments: Any) -> Any:
        """The answer of Secrets Manager about a secret; None if there is none, or no such version of it."""
        full_name, storage = f"{self.options.prefix}{name}", self._login
        try:
            client = buckets.kept_client(storage, None, "secretsmanager", self.options.endpoint)
            return getattr(client, action)(SecretId=full_name, **arguments)
        except buckets.errors() as error:
            trouble = buckets.trouble(error, storage)
            if trouble.says == "ResourceNotFoundException":
                return None
            if trouble.says == "InvalidRequestException":
                hint = f"`aws secretsmanager restore-secret --secret-id {full_name}`"
                raise SetupError(
                    "no-secret", f"the secret `{full_name}` is marked for deletion in Secrets Manager", hint
                ) from None
            if getattr(error, "operation_name", "") == "AssumeRole" and trouble.kind == "refused":
                message = f"AWS does not give the role {self.options.role} to this login: {trouble.says}"
                hint = "let the role trust the login, and write its `external_id` into the document `secrets`"
                raise SetupError("secrets-refused", message, hint) from None
            raise self._failed(full_name, action, trouble) from None

    def _missing(self, name: str, says: str) -> SetupError:
        region = f" --region {self.options.region}" if self.options.region else ""
        text, full_name = f"--secret-string …{region}", f"{self.options.prefix}{name}"
        hint = (
            f"`aws secretsmanager create-secret --name {full_name} {text}`; if it is there without a value: `aws secretsmanager"
        )
        return SetupError("no-secret", f"Secrets Manager {says}", f"{hint} put-secret-value --secret-id {full_name} {text}`")

    def _failed(self, full_name: str, action: str, trouble: buckets.Trouble) -> SetupError | SecretsAway:
        where = f"Secrets Manager at {self.options.endpoint or self.options.region or 'AWS'}"
        if trouble.kind == "refused":
            arn = f"arn:aws:secretsmanager:{self.options.region or '*'}:*:secret:{self.options.prefix}*"
            actions = ["GetSecretValue"] if action == "get_secret_value" else list(RIGHTS)
            rights = aws_policy.hint([aws_policy.allow([f"secretsmanager:{name}" for name in actions], arn)])
            return SetupError("secrets-refused", f"{where} refused `{full_name}`: {trouble.says}", rights)
        if trouble.kind in ("wrong-login", "no-login"):
            hint = "log in to AWS, for instance `aws sso login`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            return SetupError("secrets-refused", f"{where} does not take the machine's login: {trouble.says}", hint)
        if trouble.says == "LimitExceededException":
            message = f"{where} keeps no more labels of `{full_name}`: 20 of all its versions, of which each key has one or two"
            return SetupError(
                "too-many-keys", message, "`sluice keys retire` a former key, or give new keys a secret of their own"
            )
        if trouble.kind == "no-profile":
            return SetupError("secrets-refused", trouble.says, "correct `profile` of the document `secrets`")
        if trouble.kind == "no-region":
            return SetupError(
                "secrets-refused", "the region of Secrets Manager is not known", "add `region` to the document `secrets`"
            )
        says = "does not answer" if trouble.kind == "unreachable" else f"fails: {trouble.says}"
        hint = "it is asked again; correct `endpoint` or `region` of the document `secrets` if they are wrong"
        return SecretsAway("secrets-unreachable", f"{where} {says}", hint, where)

    @property
    def _login(self) -> Storage:
        options = self.options
        return Storage(
            endpoint=None, region=options.region, access_key=None, secret_key=None, profile=options.profile, role=options.role,
            external_id=options.external_id,
        )  # fmt: skip


def _field(text: str, name: str) -> str | None:
    """A field of a JSON object; None if the text is no such object, or the field no text or number."""
    try:
        document = json.loads(text)
    except ValueError:
        return None
    value = document.get(name) if isinstance(document, dict) else None
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


STORE = SecretsManager
