"""Where the values of ${secret:NAME} are kept.

Without this document, or with `store: env`, `${secret:kafka_key}` is the environment variable `SLUICE_SECRET_KAFKA_KEY`. Variables of
other names are read only if `SLUICE_SECRETS` lists them, with commas between: what a spec can name is not for the spec to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from framework.errors import Problem
from framework.model import SecretStore
from framework.plan.draft import Draft
from framework.plan.registered import Schemas
from framework.spec.kinds import DocumentKind
from framework.spec.options import Kind, later, option
from framework.spec.scalars import Location

EXAMPLE = """\
secrets: main
store: file
path: .sluice/secrets
"""


@dataclass(frozen=True)
class Secrets(Kind):
    """Where the values of secrets are kept."""

    store: Literal["env", "file"] = option(
        "Where they are kept: `env`, in the environment variables `SLUICE_SECRET_NAME`; `file`, in the file `path`.",
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
    prefix: None = later("What the names in AWS begin with.")
    region: None = later("The AWS region.")

    def problems(self) -> Iterable[Problem]:
        if self.store == "file" and self.path is None:
            yield Problem(
                self.place("store"), "missing-key", "`store: file` needs a `path`",
                "add `path: .sluice/secrets`; the file has mode 0600",
            )  # fmt: skip
        if self.store == "env" and self.path is not None:
            yield Problem(
                self.key_place("path"), "unused-key", "`path` means nothing with `store: env`",
                "remove it, or write `store: file`",
            )  # fmt: skip


def resolve(draft: Draft, documents: tuple[Secrets, ...]) -> None:
    for store in documents[:1]:
        draft.secrets = SecretStore(store.store, store.path)
        draft.schemas = Schemas(draft.secrets, draft.schemas.also, draft.schemas.logins)


KIND = DocumentKind(Secrets, resolve, one_only=True)
