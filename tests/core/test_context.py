"""The connections of a process that keeps running."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.core.context.context import Context
from framework.host.plans import make
from tests.support.spec_parts import LAKE, ORDERS

LOGIN = 'security: {protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: ann, password: "${secret:kafka}"}'


def test_a_corrected_password_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = ORDERS.format(catalog=LAKE).replace("bootstrap: 127.0.0.1:1", f"bootstrap: 127.0.0.1:1\n{LOGIN}")
    (tmp_path / "a.yaml").write_text(specs)
    monkeypatch.setenv("SLUICE_SECRET_KAFKA", "wrong")
    plan = make(tmp_path)
    (pipeline,) = plan.pipelines
    context = Context(plan)
    before = context.kafka(pipeline)
    assert context.kafka(pipeline) is before
    monkeypatch.setenv("SLUICE_SECRET_KAFKA", "right")
    after = context.kafka(pipeline)
    assert after is not before and context.kafka(pipeline) is after
