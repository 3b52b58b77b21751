"""Requests to AWS with the login and the region of an environment, and what these answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from framework.base.errors import SluiceError


def client(service: str, variables: Mapping[str, Any]) -> Any:
    """A client of a service, for the variables of the module `aws`."""
    session = boto3.Session(profile_name=variables.get("profile"), region_name=variables["region"])
    return session.client(service, endpoint_url=variables.get("endpoint"))


@contextmanager
def refused(message: str, hint: str) -> Iterator[None]:
    """Makes a named error of what AWS refuses, or does not answer."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise SluiceError("aws-refused", f"{message}: {error}", hint) from None
