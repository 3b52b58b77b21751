"""A role of AWS that another account may assume to read the table, such as Snowflake's."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from framework import aws_policy
from framework.access import aws
from framework.access.about import About
from framework.access.steps import SHELL, Step, Warned, check, shared

OF = "table"
USER, EXTERNAL_ID = "STORAGE_AWS_IAM_USER_ARN", "STORAGE_AWS_EXTERNAL_ID"
GLUE_USER, GLUE_EXTERNAL_ID = "GLUE_AWS_IAM_USER_ARN", "GLUE_AWS_EXTERNAL_ID"


def steps(about: About) -> Iterator[Step | Warned]:
    place = about.place("IAM", "glue", "sql")
    aws.files(place)
    told = about.described
    if USER not in told:
        yield Warned(
            "the other side tells who it is once its volume or integration is there: run its DESC, save what it prints to a file, and give "
            "the file as --describe"
        )
    role = aws.called(place, aws.READERS)
    statements = [_trust(told.get(USER, f"<{USER}>"), told.get(EXTERNAL_ID, f"<{EXTERNAL_ID}>"))]
    if GLUE_USER in told:
        statements.append(_trust(told[GLUE_USER], told.get(GLUE_EXTERNAL_ID, f"<{GLUE_EXTERNAL_ID}>")))
    document = shlex.quote(aws_policy.policy(*statements, indent=2))
    yield shared(
        SHELL, "The role, which only those may assume who say the external id. Snowflake tags its sessions.",
        f"aws iam create-role --role-name {role} --assume-role-policy-document {document}",
        f"aws iam delete-role --role-name {role}",
    )  # fmt: skip
    attached = f"--role-name {role} --policy-arn {aws.account_of(aws.called(place, 'read'))}"
    yield shared(
        SHELL, f"What it may do: the policy for readers of `sluice access aws-policy {about.pipeline.name}`.",
        f"aws iam attach-role-policy {attached}", f"aws iam detach-role-policy {attached}",
    )  # fmt: skip
    yield check(SHELL, "Whom it trusts.", f"aws iam get-role --role-name {role} --query Role.AssumeRolePolicyDocument")


def _trust(who: str, external_id: str) -> dict[str, object]:
    return {
        "Effect": "Allow", "Principal": {"AWS": who}, "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
    }  # fmt: skip
