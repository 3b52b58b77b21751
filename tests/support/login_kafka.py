"""A Kafka whose users log in by tokens of OIDC, and one whose users log in by certificates."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.support.locked_kafka import LockedKafka, with_logins
from tests.support.oidc_server import Provider

_MODULE = "org.apache.kafka.common.security.oauthbearer"
_TOKENS = f"""
sasl.enabled.mechanisms=OAUTHBEARER
listener.name.sasl_plaintext.connections.max.reauth.ms=3600000
listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config={_MODULE}.OAuthBearerLoginModule required;
listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class={_MODULE}.OAuthBearerValidatorCallbackHandler
listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer.jwks.endpoint.url={{url}}/keys
listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer.expected.issuer={{url}}
listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer.clock.skew.seconds=0
allow.everyone.if.no.acl.found=true
"""
_CERTIFICATES = """
listener.name.ssl.ssl.client.auth=required
listener.name.ssl.ssl.keystore.type=PEM
listener.name.ssl.ssl.keystore.certificate.chain={certificate}
listener.name.ssl.ssl.keystore.key={key}
listener.name.ssl.ssl.truststore.type=PEM
listener.name.ssl.ssl.truststore.certificates={authority}
allow.everyone.if.no.acl.found=true
"""


@contextmanager
def token_kafka(home: Path, provider: Provider) -> Iterator[LockedKafka]:
    """A broker that takes the provider's tokens while they are valid: who stays connected has to show a new one."""
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.url}/keys"
    with with_logins(home, _TOKENS.format(url=provider.url), java_options=(allowed,)) as addresses:
        yield LockedKafka(*addresses)


@dataclass(frozen=True)
class Pair:
    """A certificate with its key, in PEM."""

    certificate: str
    key: rsa.RSAPrivateKey

    def key_text(self, password: str | None = None, old: bool = False) -> str:
        """The key as PKCS#8, or as older programs of OpenSSL write it."""
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        form = PrivateFormat.TraditionalOpenSSL if old else PrivateFormat.PKCS8
        return self.key.private_bytes(Encoding.PEM, form, encryption).decode()


class Authority:
    """A signer of certificates, as a company has one."""

    def __init__(self, name: str = "authority") -> None:
        self._name = _named(name)
        self._key = rsa.generate_private_key(65537, 2048)
        self.certificate = self._signed(self._name, self._key, 1, x509.BasicConstraints(ca=True, path_length=None))

    def pair(self, name: str, days: int = 1) -> Pair:
        """A certificate for a name, which ends in so many days, or has ended so many days ago."""
        key = rsa.generate_private_key(65537, 2048)
        return Pair(self._signed(_named(name), key, days, x509.SubjectAlternativeName([x509.DNSName("localhost"), _HERE])), key)

    def _signed(self, name: x509.Name, key: rsa.RSAPrivateKey, days: int, extension: x509.ExtensionType) -> str:
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(end - datetime.timedelta(days=9))
        signed = builder.not_valid_after(end).add_extension(extension, critical=False).sign(self._key, SHA256())
        return signed.public_bytes(Encoding.PEM).decode()


_HERE = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def in_line(pem: str) -> str:
    """PEM as a value of one line."""
    return pem.replace("\n", "\\n")


@contextmanager
def certificate_kafka(home: Path, authority: Authority) -> Iterator[LockedKafka]:
    """A broker that takes certificates of this authority."""
    broker_pair = authority.pair("127.0.0.1")
    settings = _CERTIFICATES.format(
        certificate=in_line(broker_pair.certificate),
        key=in_line(broker_pair.key_text()),
        authority=in_line(authority.certificate),
    )
    with with_logins(home, settings, protocol="SSL") as addresses:
        yield LockedKafka(*addresses)
