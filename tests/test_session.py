"""How the JVM of a session is started: by what is known of the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.engine import loop
from framework.engine.context import Context
from framework.engine.spark import session
from tests.project import Project, plan_for

FAST = "-XX:TieredStopAtLevel=1"


def test_only_few_rows_get_a_jvm_that_starts_fast(tmp_path: Path, sluice_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = plan_for(tmp_path, "127.0.0.1:1")

    def options(rows: int | None) -> str:
        return session.settings(plan, rows)["spark.driver.defaultJavaOptions"]

    assert [FAST in options(rows) for rows in (0, session.FEW, session.FEW + 1, None)] == [True, True, False, False]


@pytest.mark.spark
@pytest.mark.kafka
def test_what_waits_is_counted_before_spark_starts(project: Project) -> None:
    """Of a new topic, of new messages, and of a table that the same run has written before."""
    project.template += (
        "---\npipeline: copy\nfrom: {{table: {namespace}.trades}}\ninto: {{table: {namespace}.copy, write: replace}}\n"
    )
    project.make_topic()
    counted: list[int | None] = []

    def runs() -> list[int | None]:
        context = Context(project.plan, spark=lambda: project.spark)
        expect = context.expect

        def noted(rows: int) -> None:
            assert not context.started() or len(counted) > 0
            counted.append(rows)
            expect(rows)

        context.expect = noted  # type: ignore[method-assign]
        counted.clear()
        assert loop.catch_up(context, context.plan.pipelines, lambda _: None, lambda: False) == ()
        return list(counted)

    project.send_good(30)
    assert runs() == [30, 30]
    project.send_good(3)
    assert runs() == [3, 33]
    assert runs() == []
    context = Context(project.plan, spark=lambda: project.spark, warm=False)
    context.expect(1)
    assert context.rows is None  # one that stays has time to become fast
