"""The option `security` of a cluster: who logs in to Kafka, how, and by which certificates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from framework import plan
from framework.base.errors import Problem
from framework.base.spelling import joined
from framework.language.options import OptionGroup, option
from framework.language.scalars import Location, Url
from framework.plan.secret import SecretRef

_PASSWORD = ("username", "password")
_TOKEN = ("token_endpoint", "client_id", "client_secret")
_MECHANISMS = {
    "PLAIN": _PASSWORD, "SCRAM-SHA-256": _PASSWORD, "SCRAM-SHA-512": _PASSWORD, "OAUTHBEARER": (*_TOKEN, "scope", "extensions"),
}  # fmt: skip
_TLS = ("ca", "certificate", "key", "key_password")
_LOGIN_OPTIONS = ("mechanism", *_PASSWORD, *_MECHANISMS["OAUTHBEARER"], *_TLS)
# Options that a login needs have an example here.
_EXAMPLES = {
    "mechanism": "PLAIN",
    "token_endpoint": "https://login.example.com/oauth2/token",
    "client_id": '"${secret:kafka_key}"',
    "client_secret": '"${secret:kafka_secret}"',
    "certificate": '"${secret:kafka.certificate}"',
    "key": '"${secret:kafka.key}"',
    **{key: f'"${{secret:kafka_{key}}}"' for key in _PASSWORD},
}


@dataclass(frozen=True)
class Security(OptionGroup):
    """The login, and whether the connection is encrypted."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = option(
        "`SASL_…` logs in, `…SSL` is encrypted.", example="SASL_SSL"
    )
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = option(
        "How the login is sent; `SASL_…` needs it.", default=None, example="PLAIN", later=("GSSAPI", "AWS_MSK_IAM")
    )
    username: str | SecretRef | None = option(
        "The login's name; PLAIN and SCRAM need it.", default=None, example='"${secret:kafka_key}"', aka=["user"]
    )
    password: SecretRef | None = option(
        "The secret with the password; PLAIN and SCRAM need it.", default=None, example='"${secret:kafka_secret}"'
    )
    token_endpoint: Url | None = option(
        "Where OAUTHBEARER gets tokens, by OIDC's client credentials.", default=None,
        example="https://login.example.com/oauth2/token", aka=["token_url", "token_uri", "token_endpoint_url"],
    )  # fmt: skip
    client_id: str | SecretRef | None = option(
        "The client that OAUTHBEARER gets tokens for.", default=None, example='"${secret:kafka_key}"'
    )
    client_secret: SecretRef | None = option("The secret of this client.", default=None, example='"${secret:kafka_secret}"')
    scope: str | None = option("The scope of the tokens.", default=None, example="kafka")
    extensions: dict[str, str] | None = option(
        "What OAUTHBEARER sends beside a token.", default=None, example="{logicalCluster: lkc-1a2b, identityPoolId: pool-3c4d}"
    )
    ca: Location | None = option(
        "A file of the project with the certificates that vouch for the brokers, in PEM; default: those of the machine.", default=None,
        example="certificates/kafka.pem", aka=["cafile", "truststore", "ca_file"],
    )  # fmt: skip
    certificate: SecretRef | None = option(
        "The secret with the login's own certificate, and those between it and one that brokers know, in PEM.", default=None,
        example='"${secret:kafka.certificate}"', aka=["cert", "keystore", "certfile"],
    )  # fmt: skip
    key: SecretRef | None = option(
        "The secret with the certificate's private key, in PEM.", default=None, example='"${secret:kafka.key}"', aka=["keyfile"]
    )
    key_password: SecretRef | None = option(
        "The secret with the password of the private key, if it has one.", default=None, example='"${secret:kafka.key_password}"'
    )

    def servers(self) -> Iterable[str | None]:
        return (self.token_endpoint,)

    def problems(self) -> Iterable[Problem]:
        needed, possible = self._options()
        for key, by in needed.items():
            if getattr(self, key) is None and key not in self.gaps:
                message = f"`security` has no `{key}`, which {by} needs"
                yield Problem(self.place(), "missing-key", message, f"add `{key}: {_EXAMPLES[key]}`")
        for key in _LOGIN_OPTIONS:
            if getattr(self, key) is not None and key not in possible:
                by_mechanism = self.protocol.startswith("SASL") and key not in _TLS
                how = f"`mechanism: {self.mechanism}`" if by_mechanism else f"`protocol: {self.protocol}`"
                yield Problem(self.key_place(key), "unused-key", f"`{key}` has no effect with {how}", self._without(key))
        for name, text in (self.extensions or {}).items():
            if not re.fullmatch("(?!auth$)[A-Za-z]+", name) or not re.fullmatch("[ -+\\--~]+", text):
                message = f"the extension `{name}: {text}` cannot be sent"
                hint = "remove it: a name has letters alone, and is not `auth`; a value has printable characters of ASCII but the comma"
                yield Problem(self.key_place("extensions", name), "bad-extension", message, hint)
        if self.scope is not None and not re.fullmatch(r"[!#-\[\]-~]+( [!#-\[\]-~]+)*", self.scope):
            hint = "write scopes with one space between them"
            yield Problem(self.place("scope"), "bad-scope", f"`scope` is `{self.scope}`, which is none", hint)
        if self.ca and "://" in self.ca:
            message = f"`ca` is `{self.ca}`, which is no file of the project"
            yield Problem(self.place("ca"), "bad-location", message, "write a path such as `certificates/kafka.pem`")

    def _without(self, key: str) -> str:
        """The hint for an option that has no effect."""
        if key in _TLS:
            return "remove it, or encrypt with `protocol: SSL` or `protocol: SASL_SSL`"
        if not self.protocol.startswith("SASL"):
            return "remove it, or log in with `protocol: SASL_SSL`"
        options = joined([f"`{name}`" for name in _MECHANISMS[self.mechanism or "PLAIN"]])
        return f"remove it: with `mechanism: {self.mechanism}` a login has {options}"

    def planned(self) -> plan.Security:
        extensions = tuple(sorted((self.extensions or {}).items()))
        by_certificates = any(getattr(self, name) is not None for name in _TLS)
        return plan.Security(
            protocol=self.protocol,
            mechanism=self.mechanism,
            username=self.username if self.client_id is None else self.client_id,
            password=self.password if self.client_secret is None else self.client_secret,
            oauth=plan.OAuth(self.token_endpoint, self.scope, extensions) if self.token_endpoint else None,
            tls=plan.Certificates(**{name: getattr(self, name) for name in _TLS}) if by_certificates else None,
        )

    def _options(self) -> tuple[dict[str, str], frozenset[str]]:
        """The options that this login needs, with what needs them, and all options that it may have."""
        needed: dict[str, str] = {}
        possible: set[str] = set()
        if self.protocol.startswith("SASL"):
            options = _MECHANISMS[self.mechanism or "PLAIN"]
            needed = {"mechanism": self.protocol} | {key: self.mechanism or self.protocol for key in options if key in _EXAMPLES}
            possible = {"mechanism", *options}
        if self.protocol.endswith("SSL"):
            possible |= set(_TLS)
            needed |= {"certificate": "`key`"} if self.key else {}
            needed |= {"key": "`certificate`"} if self.certificate else {}
            needed |= {"key": "`key_password`"} if self.key_password else {}
        return needed, frozenset(possible)
