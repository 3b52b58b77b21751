"""Object stores, and how a spec names one."""

from __future__ import annotations

import shutil

import pytest

STORAGE = 'storage: {endpoint: "%s", region: us-east-1, access_key: "${secret:s3_key}", secret_key: "${secret:s3_secret}"}'


@pytest.fixture(
    scope="module",
    params=[
        "moto",
        pytest.param("versitygw", marks=[pytest.mark.long, pytest.mark.skipif(not shutil.which("go"), reason="no Go")]),
    ],
)
def store(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("object_store" if request.param == "versitygw" else "quick_store"))
