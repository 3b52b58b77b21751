"""The options of a login to AWS, which an object store and a store of secrets share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framework.base.errors import Problem
from framework.language.options import OptionGroup, option


def profile() -> Any:
    return option("A profile of the machine's AWS settings, to log in with.", default=None, example="reports")


def role() -> Any:
    return option(
        "A role that the login assumes, and assumes again before that ends.", default=None,
        example="arn:aws:iam::123456789012:role/sluice", aka=["assume_role", "role_arn"],
    )  # fmt: skip


def external_id() -> Any:
    return option("What the role's account asks of the one who assumes it.", default=None, example="7f3a9c")


def id_without_role(options: OptionGroup, role: str | None, external_id: str | None) -> Iterator[Problem]:
    """The problem of an external id that nobody asks for."""
    if external_id is not None and role is None:
        hint = "add `role`, or remove `external_id`"
        yield Problem(options.key_place("external_id"), "unused-key", "`external_id` has no effect without `role`", hint)
