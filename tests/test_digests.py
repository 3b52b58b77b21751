"""Identities that outlive a process, as digests: a pipeline's `spec` in its table, the ids of notices in records of exports, the tags of
followers, and the inputs of a failed run. Another digest computes a table again or sends a mail again, so none of them changes without a
reason. With REWRITE=1 in the environment `tests/digests.txt` is written again: read the diff."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from framework import catalogs, components
from framework.engine.context import Context
from framework.engine.observe import same_failure
from framework.model import Plan
from framework.model.export import Export
from framework.plan.passes import draft
from framework.reference import examples
from framework.spec import extensions
from tests import test_cases, toys
from tests.spec_parts import LAKE, ORDERS

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "digests.txt"
LOGINS = """\
cluster: main
bootstrap: kafka:9092
security: {protocol: SASL_SSL, mechanism: PLAIN, username: "${secret:user}", password: "${secret:kafka}"}
registry: https://registry
registry_auth: {username: me, password: "${secret:registry}"}
---
engine: main
memory: 2g
conf: {spark.ui.enabled: "true"}
---
secrets: main
store: file
path: secrets
---
topic: orders
value: json
columns: {id: bigint}
start_from: 2026-01-05T10:00:00Z
---
topic: payments
value: json
columns: {id: bigint}
start_from: latest
---
pipeline: orders
from: {topic: orders}
into: {table: shop.orders, schema_changes: {rename: allow, drop: refuse}}
---
pipeline: payments
from: {topic: payments}
into: {table: shop.payments}
bad_rows: stop
"""


def sources() -> Iterator[tuple[str, dict[str, str]]]:
    """Specs by a name, each as files: the shipped ones, those of the plans and the cases without problems, and the examples of steps and
    catalogs."""
    yield "specs", {path.relative_to(ROOT / "specs").as_posix(): path.read_text() for path in (ROOT / "specs").rglob("*.yaml")}
    yield "tests/plans/more", {"a.yaml": (ROOT / "tests" / "plans" / "more" / "specs.yaml").read_text()}
    yield "logins", {"a.yaml": f"{LOGINS}---\n{LAKE}"}
    for path in (*sorted(test_cases.PLANS.glob("*.case")), *sorted(test_cases.TOYS.glob("*/*.case"))):
        for case in test_cases.read(path):
            if case.expected.strip() == "ok":
                yield f"{path.stem} | {case.title}", test_cases.planned_files(case)
    for name in components.names(extensions.STEPS):
        text = examples.spec(components.load(extensions.STEPS, name).EXAMPLE, f"the_{name}")
        yield f"step {name}", {"a.yaml": f"{test_cases.MAIN}---\n{text}"}
    for name in components.names(catalogs.PACKAGE):
        yield f"catalog {name}", {"a.yaml": ORDERS.format(catalog=components.load(catalogs.PACKAGE, name).EXAMPLE)}


def identities(plan: Plan) -> Iterator[str]:
    """The identities of all that a plan has, each with what it belongs to."""
    for pipeline in plan.pipelines:
        yield f"pipeline {pipeline.name}: {pipeline.spec}"
        for follower in pipeline.also:
            yield f"pipeline {pipeline.name}, {follower.title}: {follower.tag} {follower.identity}".rstrip()
    for document in plan.documents:
        if isinstance(document.value, Export):
            for notice in document.value.notices:
                yield f"export {document.name}, {notice.says}: {notice.id}"


def failures(plan: Plan) -> Iterator[str]:
    """The inputs of each pipeline's run, if it failed: without tables, and with the schemas of the plan."""
    for pipeline in plan.pipelines:
        if catalogs.of(pipeline.table.catalog).on_this_machine and not any(topic.registered for topic in pipeline.topics):
            yield f"run of {pipeline.name}: {same_failure._digest(Context(plan), pipeline)}"


@pytest.mark.slow
@pytest.mark.usefixtures("registry_away")
def test_identities_are_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith("SLUICE_VAR_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("SLUICE_VAR_REGISTRY", "http://127.0.0.1:1")
    monkeypatch.chdir(tmp_path)
    lines = []
    with toys.installed():
        for number, (name, files) in enumerate(sources()):
            test_cases.write(files, tmp_path / str(number))
            shutil.copytree(ROOT / "pipelines" / "steps", tmp_path / str(number) / "pipelines" / "steps")
            plan, problems = draft(Path("specs"))
            assert not problems, name
            lines += [f"{name} | {line}\n" for line in (*identities(plan), *failures(plan))]
    if os.environ.get("REWRITE") == "1":
        GOLDEN.write_text("".join(sorted(lines)), encoding="utf-8")
    assert "".join(sorted(lines)) == GOLDEN.read_text(encoding="utf-8")
