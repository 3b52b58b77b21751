"""The store for the values of ${secret:NAME}.

Without this document, or with `store: env`, `${secret:kafka_key}` is the environment variable `SLUICE_SECRET_KAFKA_KEY`. A variable
with another name is read only if the environment variable `SLUICE_SECRETS` lists it, with commas between the names. So a spec cannot
decide which variables it can read.

With `store: aws_secrets_manager`, it is the secret `kafka_key` behind the `prefix`, with the label AWSCURRENT. A secret that is a JSON
object has values by field: `${secret:kafka.password}` is the field `password` of `kafka`.

With `store: vault`, `${secret:kafka.password}` is the field `password` of the secret `kafka` behind the `prefix`, in an engine KV of
version 2, and `${secret:pii}` the field `value` of `pii`. Each look-up logs in with the token of VAULT_TOKEN, or of `~/.vault-token`,
where `vault login` and Vault Agent write one, or as an AppRole. Tokens of an AppRole are replaced before they end, others are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from framework.documents.draft import Draft
from framework.documents.topic.registered import RegistrySchemas
from framework.language.kind import Kind
from framework.language.options import ComponentName, Document, OptionGroup, RestOfOptions, option
from framework.plan import SecretStore

EXAMPLE = """\
secrets: main
store: file
path: .sluice/secrets
"""


@dataclass(frozen=True)
class Secrets(Document):
    """The store for the values of secrets."""

    options: Annotated[OptionGroup, RestOfOptions("store")]
    store: Annotated[str, ComponentName("secrets", "STORE")] = option("The store.", example="env", aka=["type", "from"])

    def servers(self) -> Iterable[str | None]:
        return self.options.servers()


def plan_secrets(draft: Draft, documents: tuple[Secrets, ...]) -> None:
    for document in documents[:1]:
        rotated, masking = frozenset(_rotated(draft)), frozenset(_rotated(draft, of="mask"))
        draft.secrets = SecretStore(document.store, document.options, rotated, masking)
        draft.schemas = RegistrySchemas(draft.secrets, draft.schemas.also, draft.schemas.logins)


def _rotated(draft: Draft, of: str | None = None) -> Iterator[str]:
    """The secrets of documents `keys`, of one type or of all. They are planned later: stores are in plans of clusters and catalogs by
    then."""
    for document in draft.written.documents:
        if document.kind == "keys" and document.value is not None and of in (None, getattr(document.value, "of", "")):
            yield str(getattr(document.value, "secret", ""))


KIND = Kind(Secrets, plan_secrets, one_only=True)
