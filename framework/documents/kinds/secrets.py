"""The store for the values of ${secret:NAME}.

Without this document, or with `store: env`, `${secret:kafka_key}` is the environment variable `SLUICE_SECRET_KAFKA_KEY`. A variable
with another name is read only if the environment variable `SLUICE_SECRETS` lists it, with commas between the names. So a spec cannot
decide which variables it can read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from framework.base.errors import Problem
from framework.documents.draft import Draft
from framework.documents.topic.registered import RegistrySchemas
from framework.language.kind import Kind
from framework.language.options import Document, later, option
from framework.language.scalars import Location
from framework.plan import SecretStore

EXAMPLE = """\
secrets: main
store: file
path: .sluice/secrets
"""


@dataclass(frozen=True)
class Secrets(Document):
    """The store for the values of secrets."""

    store: Literal["env", "file"] = option(
        "The store: `env`, the environment variables `SLUICE_SECRET_NAME`; `file`, the file `path`.",
        example="env",
        later=("aws_secrets_manager",),
        aka=["type", "from"],
    )
    path: Location | None = option(
        "The file, with lines `NAME=value`; only its owner may read it (mode 0600).",
        default=None,
        example=".sluice/secrets",
        aka=["file"],
    )
    prefix: None = later("The prefix of the names in AWS.")
    region: None = later("The AWS region.")

    def problems(self) -> Iterable[Problem]:
        if self.store == "file" and self.path is None:
            yield Problem(
                self.place("store"), "missing-key", "`store: file` needs a `path`",
                "add `path: .sluice/secrets`; the file has mode 0600",
            )  # fmt: skip
        if self.store == "env" and self.path is not None:
            yield Problem(
                self.key_place("path"), "unused-key", "`path` has no effect with `store: env`",
                "remove it, or write `store: file`",
            )  # fmt: skip


def plan_secrets(draft: Draft, documents: tuple[Secrets, ...]) -> None:
    for store in documents[:1]:
        draft.secrets = SecretStore(store.store, store.path)
        draft.schemas = RegistrySchemas(draft.secrets, draft.schemas.also, draft.schemas.logins)


KIND = Kind(Secrets, plan_secrets, one_only=True)
