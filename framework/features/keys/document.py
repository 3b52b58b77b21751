"""A login, or another key, that is replaced from time to time without a stop.

A new key is made and tried before anything uses it. What runs takes it at its next login, and former keys stay valid for what still
uses them. `sluice stream` and Dagster's sensor `Keys` replace keys that are due, `sluice keys` does each step. The values are in the store
of the document `secrets`, which has to be one that can be written: a file, AWS Secrets Manager or Vault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from framework.base.errors import Problem
from framework.documents.draft import Draft
from framework.features.key_types import KeyType
from framework.language import components
from framework.language.kind import Kind
from framework.language.options import ComponentName, Document, OptionGroup, RestOfOptions, option
from framework.language.scalars import Duration, Name
from framework.plan import PlannedDocument
from framework.plan.keys import Keys as Planned
from framework.plan.text import duration
from framework.systems.secrets import keeps_keys

EXAMPLE = """\
keys: kafka_login
of: kafka
secret: kafka
rotate_every: 30d
retain: 2
"""
_MOST = 8  # former keys


@dataclass(frozen=True)
class Keys(Document):
    """A key that is replaced by a new one from time to time."""

    options: Annotated[OptionGroup, RestOfOptions("of")]
    of: Annotated[str, ComponentName("key_types", "TYPE")] = option("What the keys open.", example="kafka", aka=["type", "for"])
    secret: Name = option(
        "The secret: `kafka` stands for `${secret:kafka_key}` and `${secret:kafka_secret}`, or for the fields of `kafka`.",
        example="kafka", aka=["name", "secrets"],
    )  # fmt: skip
    rotate_every: Duration | None = option(
        "Replace the key when it is so old; default: when somebody says so.", default=None, example="30d", at_least="1h",
        aka=["every", "days", "rotate_after"],
    )  # fmt: skip
    retain: int | None = option(
        "How many former keys stay valid, for what still uses them; default: 1, and of a mask all.", default=None, example="2", at_least=1,
        at_most=_MOST, aka=["keep", "number_to_retain"],
    )  # fmt: skip


def plan_keys(draft: Draft, documents: tuple[Keys, ...]) -> None:
    by_secret: dict[str, Keys] = {}
    for spec in documents:
        key_type: KeyType = components.current().key_types.load(spec.of).TYPE
        opened = None if spec.gaps else key_type.opens(spec.secret, spec.options, spec.place("secret"), draft)
        if opened is None:
            continue
        keys = Planned(
            name=spec.name, where=spec.place(), type=spec.of, lock=key_type, options=spec.options, secrets=opened.secrets,
            rotate_every=spec.rotate_every, retain=spec.retain or 1, opens=opened.opens,
        )  # fmt: skip
        problem = _unkept(draft, spec, key_type, keys) or _other(spec, keys, by_secret)
        if problem:
            draft.problems.append(problem)
            continue
        says = [f"{spec.of}, secrets {' and '.join(opened.secrets)}"]
        says += [f"a new one every {duration(spec.rotate_every)}"] if spec.rotate_every else []
        draft.documents.append(PlannedDocument(kind="keys", name=spec.name, where=spec.place(), value=keys, says=tuple(says)))


def _unkept(draft: Draft, spec: Keys, key_type: KeyType, keys: Planned) -> Problem | None:
    """The problem of keys that cannot be kept, or not so many."""
    slots = key_type.slots(keys)
    if not keeps_keys(draft.secrets):
        message = f"the secrets are in `store: {draft.secrets.type}`, which Sluice cannot write"
        hint = "write `store: file`, `store: aws_secrets_manager` or `store: vault` in the document `secrets`"
        return Problem(spec.place("secret"), "keys-need-a-store", message, hint)
    if key_type.keeps_former and spec.retain is not None:
        message = f"all keys of `{spec.of}` stay, since what they encrypted is still there"
        return Problem(
            spec.place("retain"), "keys-are-kept", message, f"remove `retain`; `sluice keys retire {spec.name}` retires one"
        )
    if slots and keys.retain >= slots:
        message = f"`{spec.of}` has {slots} keys at a time, the current one and {slots - 1} former"
        return Problem(spec.place("retain"), "too-many-keys", message, f"write `retain: {slots - 1}`")
    return None


def _other(spec: Keys, keys: Planned, by_secret: dict[str, Keys]) -> Problem | None:
    """The problem of another document that replaces the same secrets, or other fields of them: a store may keep each as one."""
    for name in (secret.rpartition(".")[0] or secret for secret in keys.secrets):
        other = by_secret.setdefault(name, spec)
        if other is not spec:
            message = f"the secret `{name}` is replaced by `keys: {other.name}` already, at {other.place()}"
            return Problem(spec.place("secret"), "same-keys", message, "remove one of the two, or give it secrets of its own")
    return None


KIND = Kind(Keys, plan_keys, needs=("cluster", "secrets", "catalog", "pipeline", "export"))
