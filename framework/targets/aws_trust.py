"""A role of AWS that another account may assume to read the table, such as Snowflake's."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from framework import aws_policy
from framework.access import aws
from framework.access.about import About
from framework.access.endpoint import endpoint
from framework.access.steps import SHELL, Step, Warned, check, shared

OF = "table"
_VOLUME = ("STORAGE_AWS_IAM_USER_ARN", "STORAGE_AWS_EXTERNAL_ID")  # Snowflake's names, of DESC EXTERNAL VOLUME
_GLUE = ("GLUE_AWS_IAM_USER_ARN", "GLUE_AWS_EXTERNAL_ID")  # and of DESC CATALOG INTEGRATION
_CATALOG = ("userArn", "externalId")  # of a catalog in Polaris or Open Catalog


def steps(about: About) -> Iterator[Step | Warned]:
    (own, *_) = about.places
    aws.files(about)
    gives_keys = own.catalog.type == "rest" and endpoint(own).gives_keys
    reached_in_glue = next((each for each in about.places if each.catalog.type in ("rest", "glue")), own).catalog.type == "glue"
    others = [_CATALOG] if gives_keys else [_VOLUME, *([_GLUE] if reached_in_glue else [])]
    missing = [name for pair in others for name in pair if name not in about.described]
    if missing:
        where = f"`{about.command('open-catalog')}`" if gives_keys else f"`{about.command('snowflake')}`"
        yield Warned(
            f"the other side tells {', '.join(missing)} once it is set up: {where} prints how to save them in a file, which is given "
            "here as `--describe`"
        )
    yield Warned(
        "a role that is there keeps whom it trusts; `update-assume-role-policy` replaces that: give another party a role of its own"
    )
    role = aws.called(about, aws.CATALOG if gives_keys else aws.READERS)
    document = shlex.quote(aws_policy.policy(*(_trust(about, *pair) for pair in others), indent=2))
    yield shared(
        SHELL, "The role, which only those may assume who say the external id. Snowflake tags its sessions.",
        f"aws iam create-role --role-name {role} --assume-role-policy-document {document}",
        f"aws iam delete-role --role-name {role}",
    )  # fmt: skip
    use: aws.Use = "maintain" if gives_keys else "read"
    attached, policies = aws.attached(about, role, use), about.command("aws-policy")
    why = "a catalog gives keys to Sluice, too, which writes and maintains" if gives_keys else "it reads, and nothing else"
    yield shared(
        SHELL, f"What it may do: {aws.called(about, use)}, a policy of `{policies}`; {why}.",
        f"aws iam attach-role-policy {attached}", f"aws iam detach-role-policy {attached}",
    )  # fmt: skip
    yield check(SHELL, "Whom it trusts.", f"aws iam get-role --role-name {role} --query Role.AssumeRolePolicyDocument")


def _trust(about: About, who: str, external_id: str) -> dict[str, object]:
    told = about.described
    return {
        "Effect": "Allow", "Principal": {"AWS": told.get(who, f"<{who}>")}, "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {"StringEquals": {"sts:ExternalId": told.get(external_id, f"<{external_id}>")}},
    }  # fmt: skip
