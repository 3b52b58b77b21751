"""Policies of AWS IAM for who writes, who maintains and who reads the table, or all tables of a catalog."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from framework.operations.access import aws, aws_reach
from framework.operations.access.about import AccessSubject
from framework.operations.access.steps import SHELL, ScriptStep, System, Warned, check, optional, shared
from framework.systems.aws_policy import below, of_bucket, of_objects, policy

OF = "table"
TAKES = ("--catalog", "--bad-rows")
KEY = System("In the policy of the key", "json")
BUCKET = System("In the bucket's policy", "json")


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    location = aws_reach.files(about)
    yield Warned("each policy is for one role or user: attach the one that fits, not all")
    yield from _reach(about)
    yield Warned(
        "a policy that is there stays as it is: to change it give `aws iam create-policy-version --set-as-default` the document"
    )
    if not location.in_specs:
        catalog = about.pipeline.table.catalog.name
        yield Warned(
            f"the catalog `{catalog}` alone knows in which bucket and folder its tables are: ask its administrator. If it gives keys "
            "to each reader, only its own role needs rights there"
        )
    for use in aws.uses(about):
        policy_name = aws.called(about, use)
        document = shlex.quote(policy(*aws.statements(about, use), indent=2))
        yield shared(
            SHELL, f"For {aws.USES[use]}. Reaches {aws_reach.covered(about, use)}.",
            f"aws iam create-policy --policy-name {policy_name} --policy-document {document}",
            f"aws iam delete-policy --policy-arn {aws.policy_arn(policy_name)}",
        )  # fmt: skip
    yield from _attached(about)
    yield from _others(location)
    yield check(
        SHELL,
        "Who a login is, and whether it may read.",
        f"aws sts get-caller-identity\naws s3 ls {shlex.quote(f'{location.folder}/')}",
    )


def _reach(about: AccessSubject) -> Iterator[Warned]:
    """Notes about the reach of the policies, and how to get other policies."""
    if about.whole_catalog:
        yield Warned(
            f"each policy reaches ALL tables of the catalog `{about.pipeline.table.catalog.name}`, with their bad rows, which hold whole "
            "messages: `sluice access aws-policy NAME` prints those for one table"
        )
        return
    bad_rows = (
        "; one is for its bad rows"
        if about.bad_rows
        else "; `--bad-rows` prints one more for readers of its bad rows, which hold whole messages"
    )
    yield Warned(
        f"the policies reach this table alone{bad_rows}. For all tables of the catalog, as the user of `sluice run` needs them, it is "
        f"`{about.catalog_command('aws-policy')}`"
    )
    if aws_reach.files(about).in_specs:
        yield Warned(
            "the folder is the one in which Sluice creates the table. A table that was taken over, or that is in a database with a "
            "location of its own, can have another one: correct it in the documents"
        )


def _attached(about: AccessSubject) -> Iterator[ScriptStep]:
    for use in aws.uses(about):
        arguments = aws.attached(about, "'<role>'", use)
        yield optional(
            SHELL, f"To a role for {use}; for a user it is `attach-user-policy --user-name`.",
            f"aws iam attach-role-policy {arguments}", f"aws iam detach-role-policy {arguments}",
            f"take the policy for {use} from its role",
        )  # fmt: skip


def _others(location: aws_reach.ReachedFiles) -> Iterator[ScriptStep]:
    statement = {
        "Sid": "SluiceReaders",
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::<account of the readers>:root"},
        "Action": ["s3:GetObject"],
        "Resource": [of_objects(location.folder)],
    }
    listing = {
        **statement, "Sid": "SluiceReadersList", "Action": ["s3:ListBucket"], "Resource": [of_bucket(location.folder)],
        "Condition": below(location.folder),
    }  # fmt: skip
    yield optional(
        BUCKET, "Only if readers are in another account: add these statements; their own policy is needed as well.",
        json.dumps([statement, listing], indent=2), "Remove the statements SluiceReaders and SluiceReadersList.",
        "readers of another account",
    )  # fmt: skip
    region = location.storage.region or "<region>"
    if location.storage.kms_key:
        key = {
            "Sid": "SluiceReaders", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::<account of the readers>:root"},
            "Action": ["kms:Decrypt"], "Resource": ["*"],
        }  # fmt: skip
        yield optional(
            KEY, "Only if readers are in another account: the key's own policy has to let them in, too.", json.dumps(key, indent=2),
            "Remove the statement SluiceReaders.", "readers of another account",
        )  # fmt: skip
    yield optional(
        SHELL, "Only if the machine is in a network of AWS without a way out: a door to S3; Glue and KMS need others, which cost.",
        f"aws ec2 create-vpc-endpoint --vpc-id '<network>' --service-name 'com.amazonaws.{region}.s3' --route-table-ids '<route table>'",
        "aws ec2 delete-vpc-endpoints --vpc-endpoint-ids '<endpoint>'", "the door to S3",
    )  # fmt: skip
