"""The readers' login to `sluice serve`: the server takes the current key, the next one and the former ones that are retained."""

from __future__ import annotations

import secrets as random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from framework.base.errors import Where
from framework.documents.draft import Draft
from framework.features.key_types import KeyType, KeyWork, Opened, free_name
from framework.language.options import OptionGroup, option
from framework.systems.keyring import StoredKey

_BYTES = 32  # random ones of a secret


@dataclass(frozen=True)
class Options(OptionGroup):
    """The readers' login."""

    client: str = option(
        "The beginning of the readers' client ids: `reader-2` has the second key.", default="reader", example="readers"
    )


class ServeLogin(KeyType):
    does = "replaces the client of `sluice serve`, as `SECRET_key` and `SECRET_secret`"

    def opens(self, secret: str, options: Any, where: Where, draft: Draft) -> Opened | None:
        return Opened(secrets=(f"{secret}_key", f"{secret}_secret"))

    def make(self, work: KeyWork, number: int, stored: Sequence[StoredKey]) -> Mapping[str, str]:
        name, secret = work.keys.secrets
        taken_names = {key.values[name] for key in stored}
        return {name: free_name(work.keys.options.client, number, taken_names), secret: random.token_urlsafe(_BYTES)}


TYPE = ServeLogin()
