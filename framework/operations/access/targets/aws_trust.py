"""A role of AWS that another account may assume to read the table, such as Snowflake's."""

from __future__ import annotations

from collections.abc import Iterator

from framework.operations.access import aws, aws_reach
from framework.operations.access.about import AccessSubject
from framework.operations.access.endpoint import endpoint
from framework.operations.access.steps import SHELL, ScriptStep, Warned, check

OF = "table"
TAKES = ("--describe",)
DESCRIBED = (
    "what `sluice access snowflake` says how to save: DESC EXTERNAL VOLUME and DESC CATALOG INTEGRATION, as a table, CSV or JSON"
)
_VOLUME = ("STORAGE_AWS_IAM_USER_ARN", "STORAGE_AWS_EXTERNAL_ID")
_GLUE = ("GLUE_AWS_IAM_USER_ARN", "GLUE_AWS_EXTERNAL_ID")


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    aws_reach.files(about)
    place = next((place for place in about.places if place.catalog.type in ("rest", "glue")), None)
    if place and place.catalog.type == "rest" and endpoint(place).gives_keys:
        yield Warned(
            f"the catalog `{place.catalog.name}` gives each reader keys to the files: only one that cannot take them needs this role"
        )
    pairs = [_VOLUME, *([_GLUE] if place and place.catalog.type == "glue" else [])]
    missing_names = [name for pair in pairs for name in pair if name not in about.described]
    if missing_names:
        yield Warned(
            f"the other side tells {', '.join(missing_names)} once it is set up: `{about.command('snowflake')}` prints how to save them "
            "in a file, which is given here as `--describe`"
        )
    yield Warned(
        "a role that is there keeps whom it trusts; `update-assume-role-policy` replaces that: give another party a role of its own"
    )
    parties = [
        (about.described.get(principal, f"<{principal}>"), about.described.get(external_id, f"<{external_id}>"))
        for principal, external_id in pairs
    ]
    yield from aws.trusted(about, aws.READERS, "read", *parties)
    role = aws.called(about, aws.READERS)
    yield check(SHELL, "Whom it trusts.", f"aws iam get-role --role-name {role} --query Role.AssumeRolePolicyDocument")
