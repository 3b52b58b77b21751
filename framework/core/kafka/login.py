"""The settings of a cluster's login: for librdkafka, for Kafka's Java clients, and for Kafka Connect, which has Java's with references to
secrets.

*Guarantee* A login whose parts are in several secrets is that of one moment. Certificates are read again for each connection.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from framework.core.kafka import certificates
from framework.plan import Cluster, SecretRef, SecretStore
from framework.plan.topic import Security
from framework.systems.secrets import reveal_together

Part = str | SecretRef  # of a login, as specs have it
_MODULES = {"PLAIN": "plain.PlainLoginModule", "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule"}
_SCRAM = "scram.ScramLoginModule"
_SECURITY = "org.apache.kafka.common.security."


def client_settings(cluster: Cluster, secrets: SecretStore) -> dict[str, Any]:
    """librdkafka's settings for talking to a cluster."""
    return {"bootstrap.servers": cluster.bootstrap, **_native(cluster.security, _revealed(cluster, secrets))}


def settings_with(cluster: Cluster, secrets: SecretStore, username: str, password: str) -> dict[str, Any]:
    """The settings of `client_settings`, with another name and password."""
    revealed = _revealed(cluster, secrets, besides=("username", "password"))
    return {
        "bootstrap.servers": cluster.bootstrap,
        **_native(cluster.security, {**revealed, "username": username, "password": password}),
    }


def java_settings(cluster: Cluster, secrets: SecretStore) -> dict[str, str]:
    """The settings of Kafka's Java clients for a cluster's login."""
    return dict(_java(cluster.security, _revealed(cluster, secrets)))


def referring(cluster: Cluster, reference: Callable[[str, Part], str]) -> dict[str, str]:
    """The settings of Java clients, in which each part is what `reference` makes of its name and of what specs have."""
    return dict(_java(cluster.security, {name: reference(name, part) for name, part in parts(cluster.security).items()}))


def parts(security: Security) -> dict[str, Part]:
    """The parts of a login by their names: texts, paths and secrets."""
    tls = security.tls
    values = {"username": security.username, "password": security.password}
    values |= {"ca": tls.ca, "certificate": tls.certificate, "key": tls.key, "key_password": tls.key_password} if tls else {}
    return {name: value for name, value in values.items() if value is not None}


def _revealed(cluster: Cluster, secrets: SecretStore, besides: tuple[str, ...] = ()) -> dict[str, str]:
    """The values of all parts. Certificates and keys are as both clients take them."""
    by_name = {name: part for name, part in parts(cluster.security).items() if name not in besides}
    revealed = dict(zip(by_name, reveal_together(by_name.values(), secrets), strict=True))
    if "ca" in revealed:
        revealed["ca"] = certificates.of_file(cluster.name, Path(revealed["ca"]))
    return certificates.prepared(cluster.name, revealed) if cluster.security.tls else revealed


def _native(security: Security, values: Mapping[str, str]) -> dict[str, str]:
    names = {"ca": "ssl.ca.pem", "certificate": "ssl.certificate.pem", "key": "ssl.key.pem"}
    settings = {"security.protocol": security.protocol}
    settings |= {"sasl.mechanism": security.mechanism} if security.mechanism else {}
    if security.oauth:
        names |= {"username": "sasl.oauthbearer.client.id", "password": "sasl.oauthbearer.client.secret"}
        settings |= {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": security.oauth.token_endpoint}
        # librdkafka puts it into a form as it is.
        settings |= {"sasl.oauthbearer.scope": quote(security.oauth.scope, safe="/:.")} if security.oauth.scope else {}
        extensions = ",".join(f"{name}={value}" for name, value in security.oauth.extensions)
        settings |= {"sasl.oauthbearer.extensions": extensions} if extensions else {}
    else:
        names |= {"username": "sasl.username", "password": "sasl.password"}
    return settings | {setting: values[name] for name, setting in names.items() if name in values}


def _java(security: Security, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if security.protocol == "PLAINTEXT":
        return
    yield "security.protocol", security.protocol
    if security.mechanism:
        yield "sasl.mechanism", security.mechanism
        module = _MODULES.get(security.mechanism, _SCRAM)
        yield "sasl.jaas.config", f"{_SECURITY}{module} required {_jaas(security, values)};"
    if security.oauth:
        yield "sasl.login.callback.handler.class", f"{_SECURITY}oauthbearer.OAuthBearerLoginCallbackHandler"
        yield "sasl.oauthbearer.token.endpoint.url", security.oauth.token_endpoint
    if "ca" in values:
        yield "ssl.truststore.type", "PEM"
        yield "ssl.truststore.certificates", values["ca"]
    if "certificate" in values:
        yield "ssl.keystore.type", "PEM"
        yield "ssl.keystore.certificate.chain", values["certificate"]
        yield "ssl.keystore.key", values["key"]
        if "key_password" in values:
            yield "ssl.key.password", values["key_password"]


def _jaas(security: Security, values: Mapping[str, str]) -> str:
    """The options of a login module, as text."""
    if security.oauth is None:
        options = {"username": values["username"], "password": values["password"]}
    else:
        options = {"clientId": values["username"], "clientSecret": values["password"]}
        options |= {"scope": security.oauth.scope} if security.oauth.scope else {}
        options |= {f"extension_{name}": value for name, value in security.oauth.extensions}
    return " ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in options.items())
