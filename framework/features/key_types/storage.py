"""The login to an object store: access keys of AWS' users, of which IAM has two at a time; other stores' keys are made by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from framework.base.errors import Problem, SluiceError, Where
from framework.base.hosts import is_open
from framework.documents.draft import Draft
from framework.features.key_types import KeyType, KeyWork, Opened, deleted_by_hand, login_secrets, made_by_hand
from framework.language.options import OptionGroup, option
from framework.language.scalars import Url
from framework.plan import Storage
from framework.plan.keys import Keys
from framework.systems import aws_policy, buckets, keyring
from framework.systems.buckets import BucketLogin
from framework.systems.keyring import StoredKey

_SETTLED = 30.0  # seconds after which all of AWS knows a new key
_PAUSE = 1.0


@dataclass(frozen=True)
class Options(OptionGroup):
    """The login of `storage`."""

    iam: Url | None = option(
        "The address of IAM, where keys are made; default: that of AWS, and for a store with an `endpoint` a person makes them.",
        default=None, example="https://iam.amazonaws.com",
    )  # fmt: skip

    def problems(self) -> Iterator[Problem]:
        if is_open(self.iam):
            message = f"new keys would come from {self.iam} without encryption"
            yield Problem(self.place("iam"), "unencrypted-login", message, "write `https://…`")


class StorageLogin(KeyType):
    does = "replaces `access_key` and `secret_key` of a `storage`"

    def opens(self, secret: str, options: Any, where: Where, draft: Draft) -> Opened | None:
        for storage in _storages(draft):
            if names := login_secrets(secret, (storage.access_key, storage.secret_key)):
                return Opened(secrets=names, opens=storage)
        login = f'access_key: "${{secret:{secret}_key}}", secret_key: "${{secret:{secret}_secret}}"'
        message = f"no `storage` logs in by secrets of `{secret}`"
        draft.problems.append(
            Problem(where, "unused-keys", message, f"write `storage: {{{login}, …}}` in a catalog or an export")
        )
        return None

    def by_hand(self, keys: Keys) -> bool:
        return keys.opens.endpoint is not None and keys.options.iam is None

    def slots(self, keys: Keys) -> int | None:
        return None if self.by_hand(keys) else 2

    def make(self, work: KeyWork, number: int, stored: Sequence[StoredKey]) -> Mapping[str, str]:
        if self.by_hand(work.keys):
            raise made_by_hand(work.keys, "a key of this object store is made where its users are")
        own_names = {self.known_as(key.values) for key in stored}
        names = [str(key["AccessKeyId"]) for key in self._asked(work, stored, "list_access_keys")["AccessKeyMetadata"]]
        if len(names) > 1 and (others := sorted(set(names) - own_names)):
            message = f"the user has {len(names)} keys at AWS, which is the most, and Sluice does not know {', '.join(others)}"
            raise SluiceError(
                "too-many-keys", message, f"`aws iam delete-access-key --access-key-id {others[0]}`, if nobody uses it"
            )
        key = self._asked(work, stored, "create_access_key")["AccessKey"]
        return dict(zip(work.keys.secrets, (key["AccessKeyId"], key["SecretAccessKey"]), strict=True))

    def check(self, work: KeyWork, values: Mapping[str, str]) -> None:
        """Logs in to the store; what else the key may do is for `sluice doctor`. A new key of AWS is not known everywhere at once."""
        end = time.monotonic() + (0.0 if self.by_hand(work.keys) else _SETTLED)
        while (trouble := _trouble(work.keys.opens, _login(work, values))) is not None:
            if trouble.kind != "wrong-login" or time.monotonic() > end:
                what = f"the object store does not take the key {self.known_as(values)}: {trouble.says}"
                raise SluiceError("storage-refused", what, "`sluice doctor` tries what the login may do")
            time.sleep(_PAUSE)

    def remove(self, work: KeyWork, number: int, values: Mapping[str, str], stored: Sequence[StoredKey]) -> Sequence[str]:
        if self.by_hand(work.keys):
            return (deleted_by_hand(self.known_as(values), at_confluent=False),)
        self._asked(work, stored, "delete_access_key", AccessKeyId=self.known_as(values))
        return ()

    def _asked(self, work: KeyWork, stored: Sequence[StoredKey], action: str, **arguments: Any) -> Any:
        """The answer of IAM to the user of the key that AWS takes. A key that is not there need not be deleted."""
        acting, storage = keyring.acting(stored), replace(work.keys.opens, role=None)
        if acting is None:
            hint = f"`sluice keys new {work.keys.name} --by-hand` asks for one"
            raise SluiceError("no-key", f"there is no key of {work.keys.name} yet", hint)
        try:
            session = buckets.session(storage, _login(work, acting.values))
            return getattr(buckets.client(session, storage, "iam", work.keys.options.iam), action)(**arguments)
        except buckets.errors() as error:
            trouble = buckets.trouble(error, storage)
            if trouble.says == "NoSuchEntity" and action == "delete_access_key":
                return None
            actions = [f"iam:{name}" for name in ("CreateAccessKey", "DeleteAccessKey", "ListAccessKeys")]
            rights = aws_policy.hint([aws_policy.allow(actions, "arn:aws:iam::*:user/${aws:username}")])
            hint = rights if trouble.kind == "refused" else "`sluice keys status` shows the keys; try again"
            raise SluiceError(
                "storage-refused", f"IAM refused `{action}` to {self.known_as(acting.values)}: {trouble.says}", hint
            ) from None


def _storages(draft: Draft) -> Iterator[Storage]:
    """The storages of catalogs and of exports."""
    written = (getattr(catalog.options, "storage", None) for catalog in draft.catalogs.values())
    yield from (storage.planned() for storage in written if storage is not None)
    planned = (getattr(document.value, "storage", None) for document in draft.documents)
    yield from (storage for storage in planned if isinstance(storage, Storage))


def _login(work: KeyWork, values: Mapping[str, str]) -> BucketLogin:
    return BucketLogin(*(values[name] for name in work.keys.secrets))


def _trouble(storage: Storage, login: BucketLogin) -> buckets.Trouble | None:
    """The reason why a login is not taken. One that may not list buckets is taken; one that gets no keys of the role is not."""
    try:
        if storage.role:
            buckets.keys(buckets.session(storage, login))
        else:
            buckets.client(buckets.session(storage, login), storage).list_buckets()
    except buckets.errors() as error:
        trouble = buckets.trouble(error, storage)
        return None if trouble.kind == "refused" and not storage.role else trouble
    return None


TYPE = StorageLogin()
