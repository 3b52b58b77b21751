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
BUCKET = System("In the bucket's policy", "json")


def steps(about: About) -> Iterator[Step | Warned]:
    place = about.place("IAM", "glue", "sql")
    where = aws.files(place)
    yield Warned("each policy is for one role or user: attach the one that fits with `aws iam attach-role-policy`, not all")
    for use in aws.uses(place):
        called = aws.called(place, use)
        document = shlex.quote(policy(*aws.statements(place, use), indent=2))
        yield shared(
            SHELL, f"For {aws.USES[use]}.",
            f"aws iam create-policy --policy-name {called} --policy-document {document}",
            f"aws iam delete-policy --policy-arn {aws.account_of(called)}",
        )  # fmt: skip
    statement = {
        "Sid": "SluiceReaders", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::<account of the readers>:root"},
        "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": [of_bucket(where.warehouse), of_objects(where.warehouse)],
    }  # fmt: skip
    yield optional(
        BUCKET, "Only if readers are in another account: add this statement; their own policy is needed as well.",
        json.dumps(statement, indent=2), "Remove the statement SluiceReaders.",
    )  # fmt: skip
    region = where.storage.region or "<region>"
    yield optional(
        SHELL, "Only if the machine is in a network of AWS without a way out: a door to S3; Glue and KMS need others, which cost.",
        f"aws ec2 create-vpc-endpoint --vpc-id '<network>' --service-name com.amazonaws.{region}.s3 --route-table-ids '<route table>'",
        "aws ec2 delete-vpc-endpoints --vpc-endpoint-ids '<endpoint>'",
    )  # fmt: skip
    yield check(SHELL, "Who a login is, and whether it may read.", f"aws sts get-caller-identity\naws s3 ls {where.warehouse}/")
