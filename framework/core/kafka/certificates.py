"""Certificates and private keys of a login to Kafka: PEM, as people have it, becomes what both clients take.

Java takes a key by PKCS#8 alone, without a password or with one by an algorithm that it knows; librdkafka takes what OpenSSL does. A value
of one line, as a file of secrets has it, has `\\n` where lines end.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from framework.base.errors import SetupError


def of_file(cluster: str, path: Path) -> str:
    """The certificates in a file of the project."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        says = error.strerror if isinstance(error, OSError) else "it is no text"
        message = f"`ca` of the cluster `{cluster}` is the file {path}, which cannot be read: {says}"
        raise SetupError("bad-certificate", message, "write the path of a file with certificates in PEM") from None


def prepared(cluster: str, values: Mapping[str, str]) -> dict[str, str]:
    """The parts of a login, with its certificates checked and its key without a password."""
    values = {name: _lines(text) if name in ("ca", "certificate", "key") else text for name, text in values.items()}
    certificates = {name: _certificates(cluster, name, values[name]) for name in ("ca", "certificate") if name in values}
    if "certificate" not in certificates:
        return values
    (certificate, *_) = certificates["certificate"]
    if certificate.not_valid_after_utc < datetime.now(timezone.utc):
        message = f"the certificate of the cluster `{cluster}` ended on {certificate.not_valid_after_utc:%Y-%m-%d}"
        raise SetupError("bad-certificate", message, "put a new one, with its key, where the secrets are")
    key = _key(cluster, values)
    if certificate.public_key() != key.public_key():
        message = f"`certificate` and `key` of the cluster `{cluster}` do not belong together"
        raise SetupError(
            "bad-certificate", message, "write both of one pair; the login's own certificate comes first in its file"
        )
    return {**{name: text for name, text in values.items() if name != "key_password"}, "key": _text(key)}


def _lines(text: str) -> str:
    return text.replace("\\n", "\n").strip() + "\n"


def _certificates(cluster: str, option: str, text: str) -> Any:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        message = f"`{option}` of the cluster `{cluster}` is no certificate in PEM"
        hint = "it begins with `-----BEGIN CERTIFICATE-----`; in a file of secrets it is one line, with `\\n` where lines end"
        raise SetupError("bad-certificate", message, hint) from None


def _key(cluster: str, values: Mapping[str, str]) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    password = values.get("key_password")
    try:
        return load_pem_private_key(values["key"].encode(), password.encode() if password else None)
    except TypeError:
        says, hint = (
            ("has no password", "remove `key_password`") if password else ("has a password", "add `key_password`, or its value,")
        )
        raise SetupError("bad-certificate", f"`key` of the cluster `{cluster}` {says}", f"{hint} under `security`") from None
    except (ValueError, UnsupportedAlgorithm):
        message = f"`key` of the cluster `{cluster}` is no private key in PEM, or `key_password` is not its password"
        hint = "it begins with `-----BEGIN`; in a file of secrets it is one line, with `\\n` where lines end"
        raise SetupError("bad-certificate", message, hint) from None


def _text(key: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    text: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return text.decode()
