"""The key pair of a Snowflake user, in its two slots by turns. Sluice has no login to Snowflake: it prints the SQL for each step."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from framework.base.errors import SluiceError, Where
from framework.documents.draft import Draft
from framework.features.key_types import KeyType, KeyWork, Opened
from framework.language.options import OptionGroup, option
from framework.language.scalars import Scalar
from framework.plan.keys import Keys
from framework.sql.standard import literal
from framework.systems.keyring import StoredKey

_BITS = 2048
User = Annotated[
    str,
    Scalar(noun="the name of a Snowflake user", code="bad-user", example="SLUICE_LOADER", pattern=r"^[A-Za-z_][A-Za-z0-9_$]{0,254}$(?!\n)",
           rule="letters, digits, `_` and `$`, without quotes"),
]  # fmt: skip


@dataclass(frozen=True)
class Options(OptionGroup):
    """The user."""

    user: User = option("The user.", example="SLUICE_LOADER", aka=["name"])
    slot: Literal[1, 2] = option(
        "The slot of the key that the secret has at first: 1 is RSA_PUBLIC_KEY, 2 is RSA_PUBLIC_KEY_2.", default=1, example="2"
    )


class SnowflakeUser(KeyType):
    does = "replaces the key pair of a Snowflake user: the secret is the private key, as Kafka's connector takes it"
    needs_person = True

    def opens(self, secret: str, options: Any, where: Where, draft: Draft) -> Opened | None:
        return Opened(secrets=(secret,))

    def slots(self, keys: Keys) -> int:
        return 2

    def make(self, work: KeyWork, number: int, stored: Sequence[StoredKey]) -> Mapping[str, str]:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        private_key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
        der = private_key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return {work.keys.secrets[0]: base64.b64encode(der).decode()}

    def put(self, work: KeyWork, number: int, values: Mapping[str, str], stored: Sequence[StoredKey]) -> Sequence[str]:
        user, slot = work.keys.options.user, _slot(work, number)
        public_key = base64.b64encode(_public_key(values)).decode()
        return (
            f"ALTER USER {user} SET {slot} = {literal(public_key)};",
            f"DESCRIBE USER {user};",
            f'SELECT "value" = {literal(self.known_as(values))} AS key_is_there FROM TABLE(RESULT_SCAN(LAST_QUERY_ID())) '
            f"WHERE \"property\" = '{slot}_FP';",
        )

    def check(self, work: KeyWork, values: Mapping[str, str]) -> None:
        try:
            _public_key(values)
        except (ValueError, TypeError):
            hint = "write the base64 text of an unencrypted PKCS8 key in one line, without `-----BEGIN PRIVATE KEY-----`"
            raise SluiceError("bad-key", f"the secret `{work.keys.secrets[0]}` is no private key", hint) from None

    def remove(self, work: KeyWork, number: int, values: Mapping[str, str], stored: Sequence[StoredKey]) -> Sequence[str]:
        return (f"ALTER USER {work.keys.options.user} UNSET {_slot(work, number)};",)

    def known_as(self, values: Mapping[str, str]) -> str:
        """The fingerprint, as Snowflake shows it."""
        try:
            public_key = _public_key(values)
        except (ValueError, TypeError):
            return "a key that cannot be read"
        return f"SHA256:{base64.b64encode(hashlib.sha256(public_key).digest()).decode()}"


def _slot(work: KeyWork, number: int) -> str:
    """The property of the user that has a key: the first one is where the document says, the others by turns."""
    return "RSA_PUBLIC_KEY" if (number + work.keys.options.slot) % 2 == 0 else "RSA_PUBLIC_KEY_2"


def _public_key(values: Mapping[str, str]) -> bytes:
    from cryptography.hazmat.primitives import serialization

    (private_key,) = values.values()
    key = serialization.load_der_private_key(base64.b64decode(private_key), None)
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


TYPE = SnowflakeUser()
