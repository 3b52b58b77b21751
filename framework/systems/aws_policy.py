"""The statements of an IAM policy, in AWS's form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from framework.plan.storage import SCHEME


def allow(actions: Iterable[str], *resources: str, condition: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A statement that allows these actions on these resources."""
    entry = {"Condition": condition} if condition else {}
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources), **entry}


def policy(*statements: Mapping[str, Any], indent: int | None = None) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)}, indent=indent)


def hint(statements: Iterable[Mapping[str, Any]]) -> str:
    """The hint for a person who lacks these rights."""
    return f"add to the policy of this login: {', '.join(map(json.dumps, statements))}"


def of_bucket(location: str) -> str:
    """The name of the bucket that a location is in."""
    return f"arn:aws:s3:::{location.removeprefix(SCHEME).partition('/')[0]}"


def of_namespace(region: str | None, account: str | None, namespace: str) -> tuple[str, ...]:
    """The names of a namespace of Glue with all its tables, of which each request asks in its catalog."""
    arn = f"arn:aws:glue:{region or '*'}:{account or '*'}"
    return f"{arn}:catalog", f"{arn}:database/{namespace}", f"{arn}:table/{namespace}/*"


def of_table(region: str | None, account: str | None, namespace: str, table: str) -> tuple[str, ...]:
    """The names of one table of Glue, and of what each request for it asks besides."""
    catalog, database, every_table = of_namespace(region, account, namespace)
    return catalog, database, f"{every_table.removesuffix('*')}{table}"


def of_key(key: str) -> str:
    """The name of a key of KMS, which a policy wants whole."""
    return key if ":key/" in key else f"<ARN of the key {key}>"


def below(*locations: str) -> dict[str, Any]:
    """The condition that a listing is of files below one of these locations, which are in one bucket."""
    folders = (location.removeprefix(SCHEME).partition("/")[2].rstrip("/") for location in locations)
    return {"StringLike": {"s3:prefix": [f"{folder}/*" if folder else "*" for folder in folders]}}


def of_start(start: str) -> str:
    """The name of all objects whose location begins so."""
    return f"arn:aws:s3:::{start.removeprefix(SCHEME)}*"


def of_objects(location: str) -> str:
    """The name of all objects below a location."""
    return f"arn:aws:s3:::{location.removeprefix(SCHEME).rstrip('/')}/*"
