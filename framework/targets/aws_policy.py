"""Policies of AWS IAM for who writes, who maintains and who reads the table."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from framework.access import aws
from framework.access.about import About
from framework.access.steps import SHELL, Step, System, Warned, check, optional, shared
from framework.aws_policy import of_bucket, of_objects, policy

OF = "table"
KEY = System("In the policy of the key", "json")
BUCKET = System("In the bucket's policy", "json")


def steps(about: About) -> Iterator[Step | Warned]:
    where = aws.files(about)
    yield Warned("each policy is for one role or user: attach the one that fits, not all")
    yield Warned(
        "a policy that is there stays as it is: for a new namespace give `aws iam create-policy-version --set-as-default` the document"
    )
    if not where.told:
        catalog = about.pipeline.table.catalog.name
        yield Warned(
            f"the catalog `{catalog}` alone knows in which bucket its tables are: ask its administrator. If it gives keys to each reader, "
            "only its own role needs rights there"
        )
    for use in aws.uses(about):
        called = aws.called(about, use)
        document = shlex.quote(policy(*aws.statements(about, use), indent=2))
        yield shared(
            SHELL, f"For {aws.USES[use]}.",
            f"aws iam create-policy --policy-name {called} --policy-document {document}",
            f"aws iam delete-policy --policy-arn {aws.policy_arn(called)}",
        )  # fmt: skip
    yield from _attached(about)
    yield from _others(where)
    yield check(
        SHELL,
        "Who a login is, and whether it may read.",
        f"aws sts get-caller-identity\naws s3 ls {shlex.quote(f'{where.warehouse}/')}",
    )


def _attached(about: About) -> Iterator[Step]:
    for use in aws.uses(about):
        to = aws.attached(about, "'<role>'", use)
        yield optional(
            SHELL, f"To a role for {use}; for a user it is `attach-user-policy --user-name`.",
            f"aws iam attach-role-policy {to}", f"aws iam detach-role-policy {to}", f"take the policy for {use} from its role",
        )  # fmt: skip


def _others(where: aws.Files) -> Iterator[Step]:
    statement = {
        "Sid": "SluiceReaders", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::<account of the readers>:root"},
        "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": [of_bucket(where.warehouse), of_objects(where.warehouse)],
    }  # fmt: skip
    yield optional(
        BUCKET, "Only if readers are in another account: add this statement; their own policy is needed as well.",
        json.dumps(statement, indent=2), "Remove the statement SluiceReaders.", "readers of another account",
    )  # fmt: skip
    region = where.storage.region or "<region>"
    if where.storage.kms_key:
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
