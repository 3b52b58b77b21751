"""A REST catalog in specs, and the logins to it and to the object store behind it."""

from __future__ import annotations

import pytest

from framework.machine.services import catalog, s3

LOGINS = {"OC_ID": catalog.CLIENT, "OC_SECRET": catalog.SECRET, "S3_KEY": s3.KEY, "S3_SECRET": s3.SECRET}
"""Values of the secrets that `DOCUMENT` names."""
STORAGE = (
    'storage: {{endpoint: "{store}", region: us-east-1, access_key: "${{secret:s3_key}}", secret_key: "${{secret:s3_secret}}"}}'
)
DOCUMENT = f"""\
catalog: {{name}}
type: rest
uri: {{uri}}
oauth: {{{{client_id: "${{{{secret:oc_id}}}}", client_secret: "${{{{secret:oc_secret}}}}"}}}}
{STORAGE}
"""
"""With `name`, `uri` and `store` to fill in."""


def environment(**overrides: str) -> dict[str, str]:
    return {f"SLUICE_SECRET_{name}": value for name, value in {**LOGINS, **overrides}.items()}


def login(patch: pytest.MonkeyPatch, **overrides: str) -> None:
    for name, value in environment(**overrides).items():
        patch.setenv(name, value)
