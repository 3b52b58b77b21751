"""Identities that outlive a process, as digests: a pipeline's `spec` in its table, the ids of notices in records of exports, the tags of
followers, and the inputs of a failed run. Another digest computes a table again or sends a mail again, so none of them changes without a
reason. With REWRITE=1 in the environment `tests/digests.txt` is written again: read the diff."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, get_args, get_type_hints

import pytest

from framework.core.context.context import Context
from framework.core.run import same_failure
from framework.host.components import COMPONENTS
from framework.host.plans import draft
from framework.operations.reference import examples
from framework.plan import (
    Cluster,
    Column,
    Decoding,
    Engine,
    Expectation,
    Plan,
    SchemaChanges,
    SecretStore,
    SelectSource,
    Step,
    Table,
    TableChanges,
    Topics,
    digest,
)
from framework.plan.export import Export
from framework.plan.notice import Mail
from framework.systems import catalogs
from tests import toys
from tests.support import cases
from tests.support.spec_parts import LAKE, ORDERS

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "digests.txt"
# The classes of the objects of which digests are made.
ROOTS = (
    *(Cluster, Column, Decoding, Engine, Expectation, Mail, SchemaChanges, SecretStore, SelectSource, Step, Table, TableChanges),
)
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


TOKENS = """\
cluster: main
bootstrap: kafka:9092
security:
  protocol: SASL_SSL
  mechanism: OAUTHBEARER
  token_endpoint: https://login
  client_id: me
  client_secret: ${secret:kafka}
  scope: kafka
  extensions: {logicalCluster: lkc-1}
  ca: ca.pem
  certificate: ${secret:certificate}
  key: ${secret:key}
  key_password: ${secret:key_password}
---
topic: orders
value: json
columns: {id: bigint}
---
pipeline: orders
from: {topic: orders}
into: {table: shop.orders}
"""


def sources() -> Iterator[tuple[str, dict[str, str]]]:
    """Specs by a name, each as files: the shipped ones, those of the plans and the cases without problems, and the examples of steps and
    catalogs."""
    yield "specs", {path.relative_to(ROOT / "specs").as_posix(): path.read_text() for path in (ROOT / "specs").rglob("*.yaml")}
    yield "tests/plans/more", {"a.yaml": (ROOT / "tests" / "plans" / "more" / "specs.yaml").read_text()}
    yield "logins", {"a.yaml": f"{LOGINS}---\n{LAKE}"}
    yield "logins by tokens and certificates", {"a.yaml": f"{TOKENS}---\n{LAKE}"}
    for path in (*sorted(cases.PLANS.glob("*.case")), *sorted(cases.TOYS.glob("*/*.case"))):
        for case in cases.read(path):
            if case.expected.strip() == "ok":
                yield f"{path.stem} | {case.title}", cases.planned_files(case)
    for name in COMPONENTS.steps.names():
        text = examples.spec(COMPONENTS.steps.load(name).EXAMPLE, f"the_{name}")
        yield f"step {name}", {"a.yaml": f"{cases.MAIN}---\n{text}"}
    for name in COMPONENTS.catalogs.names():
        yield f"catalog {name}", {"a.yaml": ORDERS.format(catalog=COMPONENTS.catalogs.load(name).EXAMPLE)}


def identities(plan: Plan) -> Iterator[str]:
    """The identities of all that a plan has, each with what it belongs to."""
    for pipeline in plan.pipelines:
        yield f"pipeline {pipeline.name}: {pipeline.spec}"
        for follower in pipeline.also:
            yield f"pipeline {pipeline.name}, {follower.title}: {follower.tag} {follower.identity}".rstrip()
    for document in plan.documents:
        if isinstance(document.value, Export):
            for notice in document.value.notices:
                yield f"export {document.name}, {notice.says}: {digest.notice_id(notice)}"


def digested(plan: Plan) -> Iterator[object]:
    """The objects of which digests are made."""
    yield from (plan.engine, plan.secrets)
    for pipeline in plan.pipelines:
        source = None if isinstance(pipeline.source, Topics) else pipeline.source
        yield from (source, pipeline.steps, pipeline.expected, pipeline.table, pipeline.table.schema_changes)
        yield from ((topic.columns, topic.decoding, topic.cluster) for topic in pipeline.topics)
    for document in plan.documents:
        if isinstance(document.value, Export):
            yield from (notice.options for notice in document.value.notices)


def failures(plan: Plan) -> Iterator[str]:
    """The inputs of each pipeline's run, if it failed: without tables, and with the schemas of the plan."""
    for pipeline in plan.pipelines:
        if catalogs.client_of(pipeline.table.catalog).on_this_machine and not any(topic.registered for topic in pipeline.topics):
            yield f"run of {pipeline.name}: {same_failure._digest(Context(plan), pipeline)}"


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[str, Plan]]]:
    """The plan of each source, by its name."""
    folder = tmp_path_factory.mktemp("plans")
    with pytest.MonkeyPatch.context() as patch, toys.installed():
        for variable in [name for name in os.environ if name.startswith("SLUICE_VAR_")]:
            patch.delenv(variable)
        patch.setenv("SLUICE_VAR_REGISTRY", "http://127.0.0.1:1")
        patch.chdir(folder)
        source_plans = []
        for number, (name, files) in enumerate(sources()):
            cases.write(files, folder / str(number))
            shutil.copytree(ROOT / "pipelines" / "steps", folder / str(number) / "pipelines" / "steps")
            plan, problems = draft(Path("specs"))
            assert not problems, name
            source_plans.append((name, plan))
        yield source_plans


@pytest.mark.slow
def test_identities_are_as_they_were(plans: list[tuple[str, Plan]]) -> None:
    lines = sorted(f"{name} | {line}\n" for name, plan in plans for line in (*identities(plan), *failures(plan)))
    if os.environ.get("REWRITE") == "1":
        GOLDEN.write_text("".join(lines), encoding="utf-8")
    assert "".join(lines) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_word_is_in_a_digest_of_the_golden_file(plans: list[tuple[str, Plan]]) -> None:
    texts = [digest.text(value) for _, plan in plans for value in digested(plan)]
    class_names = {name for text in texts for name in re.findall(r"\b([A-Z]\w*)\(", text)}
    assert {words.name for words in digest.WORDS.values()} - class_names == set()


def test_every_class_and_field_that_a_digest_can_reach_has_words() -> None:
    options = [COMPONENTS.catalogs.load(name).Options for name in COMPONENTS.catalogs.names()]
    groups = [part for cls in options for part in inner(cls)]
    assert sorted(missing_words([*ROOTS, *groups])) == []


@dataclass(frozen=True)
class Unworded:
    name: str


@dataclass(frozen=True)
class Renamed:
    """A column by another name, whose field has another name, too, and a field that columns did not have."""

    called: str
    type: str = "int"
    hidden: bool = False

    @property
    def letters(self) -> int:
        return len(self.called)


@dataclass(frozen=True)
class Group:
    """Options that got another one."""

    in_digest: ClassVar[str] = "Group user"

    user: str
    token: str | None = None


def test_a_class_without_words_is_named() -> None:
    assert list(missing_words([Unworded])) == ["Unworded has no entry in WORDS of framework/plan/digest.py"]
    with pytest.raises(TypeError, match=r"a tests\.plan\.test_digests\.Unworded: it has no words in a digest"):
        digest.text(("one", Unworded("x")))
    with pytest.raises(TypeError, match=r"builtins\.set: it has no words"):
        digest.text({"no order"})


def test_a_renamed_class_and_field_keep_their_words() -> None:
    words = digest.Words("Column", "name=called type", if_set="hidden")
    assert digest.written(Renamed("id"), words) == "Column(name='id', type='int')"
    assert digest.written(Renamed("id", hidden=True), words) == "Column(name='id', type='int', hidden=True)"
    assert digest.written(Renamed("id"), digest.Words("Column", "name=called width=letters")) == "Column(name='id', width=2)"


def test_options_that_were_added_are_in_a_text_where_they_are_given() -> None:
    assert digest.text(Group("me")) == "Group(user='me')"
    assert digest.text(Group("me", "x")) == "Group(user='me', token='x')"


def missing_words(roots: Iterable[type]) -> Iterator[str]:
    """The classes that a digest can reach and that have no words, and the fields of the others without a decision."""
    for cls in reachable(roots):
        words = digest.words_of(cls)
        if words is None:
            yield f"{cls.__name__} has no entry in WORDS of framework/plan/digest.py"
            continue
        decided_names = [
            word.partition("=")[2] or word for word in f"{words.always} {words.if_set} {words.never} {words.spread}".split()
        ]
        names = [declared_field.name for declared_field in fields(cls) if declared_field.repr or cls in digest.WORDS]
        yield from (
            f"{cls.__name__}.{name} has no decision in framework/plan/digest.py" for name in names if name not in decided_names
        )
        yield from (f"{cls.__name__} has no field {name}" for name in decided_names if not (name in names or hasattr(cls, name)))
        yield from (f"{cls.__name__}.{name} has two decisions" for name, count in Counter(decided_names).items() if count > 1)


def reachable(roots: Iterable[type]) -> set[type]:
    """The dataclasses that can be in fields of these, but for fields that are in no digest. Of a class without
    fields those that derive from it beside it: other modules have types that no column has."""
    classes: set[type] = set()
    pending: list[type[Any]] = list(roots)
    while pending:
        cls = pending.pop()
        if cls in classes:
            continue
        if fields(cls) or not cls.__subclasses__():
            classes.add(cls)
        words = digest.words_of(cls)
        pending += inner(cls, words.never.split() if words else ())
        pending += [subclass for subclass in cls.__subclasses__() if subclass.__module__ == cls.__module__]
    return classes


def inner(cls: type[Any], never: Collection[str] = ()) -> Iterator[type[Any]]:
    """The dataclasses that the fields of a class can have."""
    hints = get_type_hints(cls)
    for field in fields(cls):
        if field.name not in never and (field.repr or cls in digest.WORDS):
            yield from (part for part in parts(hints[field.name]) if isinstance(part, type) and is_dataclass(part))


def parts(hint: Any) -> Iterator[Any]:
    yield hint
    for inner in get_args(hint):
        yield from parts(inner)
