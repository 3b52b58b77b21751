"""The connections of a process that keeps running."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.engine.context import Context
from framework.plan.passes import make

SPECS = """\
cluster: main
bootstrap: 127.0.0.1:1
security: {protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: ann, password: "${secret:kafka}"}
---
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: warehouse
---
topic: trades
value: json
columns: {n: bigint}
---
pipeline: copy
from: {topic: trades}
into: {table: shop.copy}
"""


def test_a_corrected_password_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text(SPECS)
    monkeypatch.setenv("SLUICE_SECRET_KAFKA", "wrong")
    plan = make(tmp_path)
    (pipeline,) = plan.pipelines
    context = Context(plan)
    before = context.kafka(pipeline)
    assert context.kafka(pipeline) is before
    monkeypatch.setenv("SLUICE_SECRET_KAFKA", "right")
    after = context.kafka(pipeline)
    assert after is not before and context.kafka(pipeline) is after
