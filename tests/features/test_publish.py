"""`publish` lists a table in other catalogs: what readers see there, and what happens if somebody else changes the listing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from framework.base.errors import SluiceError
from framework.core.follow import follow
from framework.core.iceberg import metadata, published, table_state
from framework.core.iceberg.jvm_state import names
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.metadata import Metadata
from framework.core.maintain import expire, maintain
from framework.core.spark import session
from framework.operations.drop import unpublish
from framework.operations.observe.status import status_of
from framework.operations.undo import accept, rollback
from framework.plan import PUBLISHED
from framework.systems import catalogs
from framework.systems.catalogs import ListedMetadata, _rest_changes
from tests.support.follower_parts import ran
from tests.support.kill_points import Died
from tests.support.project import Project
from tests.support.rest_catalog import DOCUMENT, STORAGE, login
from tests.support.spark_catalogs import tell

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TOPIC = """
topic: trades
kafka_name: {{topic}}
value: json
columns: {{{{id: {{{{type: bigint, required: true}}}}, price: double{more}}}}}
---
pipeline: trades
from: {{{{topic: trades}}}}
into: {{{{table: {{namespace}}.trades{into}}}}}
publish: [{{{{catalog: there_{{namespace}}, as: "seen_{{namespace}}.flagged"}}}}]
---
"""
SQL_CATALOG = """\
catalog: THERE
type: sql
uri: sqlite:///there.db
warehouse: warehouse
"""
HOME = """\
catalog: home
type: sql
uri: sqlite:///home.db
warehouse: s3://sluice/home
"""
GLUE = """\
catalog: THERE
type: glue
endpoint: {aws}
warehouse: s3://sluice/glue
"""
WHERE = ["sql", pytest.param("rest", marks=pytest.mark.slow), pytest.param("glue", marks=[pytest.mark.slow, pytest.mark.long])]


@pytest.fixture(params=WHERE)
def shared(request: pytest.FixtureRequest, project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project whose table another catalog lists, on this machine or in a bucket."""
    login(monkeypatch)
    kind: str = request.param
    if kind == "sql":
        project.template = template_of(SQL_CATALOG)
    else:
        store = request.getfixturevalue("quick_store")
        storage = STORAGE.format(store=store)
        if kind == "rest":
            other_document = DOCUMENT.format(name="THERE", uri=request.getfixturevalue("rest_catalog"), store=store)
        else:
            other_document = GLUE.format(aws=request.getfixturevalue("aws")) + storage
        project.template = template_of(f"{HOME}{storage}\n---\n{other_document}", ", catalog: home")
    plan = project.plan
    session.prepare(plan)
    tell(project.spark, plan)
    project.make_topic(1)
    yield project
    for listing in unpublish.of_pipeline(project.plan, project.pipeline):
        unpublish.end(project.plan, project.pipeline, listing)


def template_of(documents: str, into: str = "", extra: str = "") -> str:
    """Returns the project's template. The other catalog has a unique name, since Spark keeps the first catalog of a name."""
    written = documents.replace("{", "{{").replace("}", "}}").replace("THERE", "there_{namespace}")
    return TOPIC.format(into=into, more=extra) + written


def send(project: Project, *ids: int) -> None:
    project.send([b'{"id": %d, "price": 1}' % id_ for id_ in ids], 0)


def name(project: Project) -> str:
    return f"seen_{project.namespace}.flagged"


def other_catalog(project: Project) -> Any:
    (catalog,) = [candidate for candidate in project.plan.catalogs if candidate.name.startswith("there_")]
    return catalog


def seen_ids(project: Project) -> list[int]:
    """Returns the ids that a reader of the other catalog sees."""
    table = table_state.table(other_catalog(project), name(project))
    return sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) if table else []


def both_tables(project: Project) -> tuple[Metadata, Metadata]:
    """Returns the table's metadata in its own catalog and in the other."""
    own_table = metadata.read(project.pipeline.table.catalog, project.pipeline.table.identifier)
    other_table = metadata.read(other_catalog(project), name(project))
    assert own_table is not None and other_table is not None
    return own_table, other_table


def state(project: Project) -> tuple[str, int]:
    (follower,) = status_of(project.plan, project.pipeline).followers
    return follower.state, follower.rows


def test_it_is_the_same_table(shared: Project) -> None:
    assert state(shared) == ("pending", 0)
    send(shared, 1, 2)
    assert ran(shared) == []
    assert (seen_ids(shared), state(shared)) == ([1, 2], ("connected", 0))
    own_table, other_table = both_tables(shared)
    assert (other_table.uuid, other_table.refs["main"], set(other_table.refs)) == (
        own_table.uuid,
        own_table.refs["main"],
        {"main"},
    )
    assert not any("sluice." in name for name in (*other_table.properties, *metadata.summary(other_table.main)))
    for number in range(3, 7):
        send(shared, number)
        ran(shared)
    assert seen_ids(shared) == [1, 2, 3, 4, 5, 6]
    assert len(published.files(own_table, shared.pipeline.published[0])) <= 2  # the listed one, and that before
    context = shared.context()
    list(maintain.maintain(context, context.plan.pipelines[0]))
    assert ran(shared) == []
    assert (seen_ids(shared), state(shared)) == ([1, 2, 3, 4, 5, 6], ("connected", 0))
    assert ran(shared) == []


def test_columns_that_are_added_and_a_rollback(shared: Project) -> None:
    send(shared, 1)
    ran(shared)
    own_table, _ = both_tables(shared)
    shared.template = shared.template.replace("price: double", "price: double, note: string")
    shared.send([b'{"id": 2, "note": "new"}'], 0)
    ran(shared)
    table = table_state.table(other_catalog(shared), name(shared))
    assert table is not None
    assert sorted((row["id"], row["note"]) for row in table.scan().to_arrow().to_pylist()) == [(1, None), (2, "new")]
    context = shared.context()
    pipeline = context.plan.pipelines[0]
    accept.move(context, pipeline, rollback.judged(context, pipeline, own_table.refs["main"]).moves)
    list(follow.after_run(context, pipeline))
    assert seen_ids(shared) == [1]
    ran(shared)
    assert seen_ids(shared) == [1, 2]


def test_what_another_program_changed_there_is_reported(shared: Project) -> None:
    send(shared, 1)
    ran(shared)
    TableStore(shared.spark, other_catalog(shared))
    shared.spark.sql(f"ALTER TABLE {other_catalog(shared).name}.{name(shared)} ADD COLUMN theirs bigint")
    send(shared, 2)
    with pytest.raises(SluiceError) as caught:
        ran(shared)
    assert caught.value.code == "published-changed"
    assert seen_ids(shared) == [1]
    assert len(shared.rows()) == 2
    assert state(shared) == ("failing", 1)
    (listed,) = unpublish.of_pipeline(shared.plan, shared.pipeline)
    assert listed.listed_table is not None
    unpublish.end(shared.plan, shared.pipeline, listed)
    untag(shared)
    ran(shared)
    assert (seen_ids(shared), state(shared)) == ([1, 2], ("connected", 0))


def untag(project: Project) -> None:
    """Removes the tags of what was published, as `sluice unpublish` does."""
    context = project.context()
    lake = context.lake(context.plan.pipelines[0])
    table = lake.load(project.pipeline.table.identifier)
    assert table is not None
    lake.untag(table, [tag for tag in names(table) if tag.startswith(PUBLISHED)])


@pytest.mark.parametrize("shared", ["sql"], indirect=True)
def test_what_was_removed_there_is_reported(shared: Project) -> None:
    send(shared, 1)
    ran(shared)
    catalogs.client_of(other_catalog(shared)).drop(name(shared))
    send(shared, 2)
    with pytest.raises(SluiceError, match="is not there any more"):
        ran(shared)
    untag(shared)
    ran(shared)
    assert seen_ids(shared) == [1, 2]


@pytest.mark.parametrize("shared", ["sql"], indirect=True)
def test_another_table_of_that_name_stays(shared: Project) -> None:
    send(shared, 1)
    ran(shared)
    untag(shared)
    before = shared.namespace
    shared.template = shared.template.replace("{namespace}.trades", "second.trades").replace("{{namespace}}", "{namespace}")
    with pytest.raises(SluiceError, match="is another table"):
        ran(shared)
    assert (seen_ids(shared), shared.namespace) == ([1], before)


@pytest.mark.parametrize("point", ["shown", "tagged"])
@pytest.mark.parametrize("shared", ["sql"], indirect=True)
def test_a_run_dies_and_more_is_committed(shared: Project, point: str) -> None:
    for number in (1, 2):  # with and without a commit that was shown before
        send(shared, number)
        with suppress(Died):
            ran(shared, dies_at(point))
        send(shared, number + 10)
        ran(shared)
        assert seen_ids(shared) == sorted(row["id"] for row in shared.rows())
        assert state(shared) == ("connected", 0)


@pytest.mark.parametrize("shared", ["sql"], indirect=True)
def test_between_two_looks_somebody_else_is_first(shared: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    send(shared, 1)
    ran(shared)
    send(shared, 2)
    shows = published.write

    def then_another(*arguments: Any) -> Any:
        written = shows(*arguments)
        with sqlite3.connect(other_catalog(shared).options.uri.removeprefix("sqlite:///")) as file:
            file.execute("UPDATE iceberg_tables SET metadata_location = metadata_location || '.theirs'")
        return written

    monkeypatch.setattr(published, "write", then_another)  # no hook is between the look and the commit
    with pytest.raises(SluiceError, match="another program changed it"):
        ran(shared)
    catalogs.client_of(other_catalog(shared)).drop(name(shared))


@pytest.mark.parametrize("shared", ["sql"], indirect=True)
def test_expired_files_go_and_those_that_are_listed_stay(shared: Project) -> None:
    """Metadata files for others keep no file of an expired snapshot, and their newest snapshot stays readable."""
    shared.template = shared.template.replace("publish:", "maintain: {{keep_snapshots_for: 1h, keep_at_least: 1}}\npublish:")
    for number in range(4):
        send(shared, number)
        ran(shared)
    context = shared.context()
    pipeline = context.plan.pipelines[0]
    lake = context.lake(pipeline)
    own_table, _ = both_tables(shared)
    old = [snapshot for snapshot in own_table.snapshots if snapshot not in own_table.refs.values()]
    lists = [own_table.files.path(own_table.snapshots[snapshot]["manifest-list"]) for snapshot in old]
    assert lists and all(Path(path).exists() for path in lists)
    expire.expire(lake, pipeline.table.catalog, pipeline.table.identifier, old)
    assert not any(Path(path).exists() for path in lists)
    assert seen_ids(shared) == [0, 1, 2, 3]


@pytest.mark.parametrize("shared", ["sql"], indirect=True)
def test_a_spec_without_it_keeps_the_listing_until_it_is_unpublished(shared: Project) -> None:
    send(shared, 1)
    ran(shared)
    listed = shared.template
    shared.template = "\n".join(line for line in listed.splitlines() if not line.startswith("publish:")).replace(
        "{namespace}.trades", "{namespace}.trades, catalog: lake"
    )
    assert state(shared) == ("left", 0)
    context = shared.context()
    list(maintain.maintain(context, context.plan.pipelines[0]))
    assert state(shared) == ("left", 0)
    shared.template = listed
    send(shared, 2)
    ran(shared)
    assert seen_ids(shared) == [1, 2]


@pytest.mark.parametrize("shared", ["sql"], indirect=True)
def test_the_table_itself_is_never_unpublished(shared: Project) -> None:
    """The table moved into the catalog that listed it, so the listing's name now means the table itself."""
    send(shared, 1)
    ran(shared)
    own_table, other_table = both_tables(shared)
    catalogs.client_of(other_catalog(shared)).show(
        name(shared), ListedMetadata(other_table.file, {}, other_table.files), ListedMetadata(own_table.file, {}, own_table.files)
    )
    (listed,) = unpublish.of_pipeline(shared.plan, shared.pipeline)
    assert (listed.listed_table, listed.listing) == (None, "where another table is: that stays")
    unpublish.end(shared.plan, shared.pipeline, listed)
    assert seen_ids(shared) == [1]


@pytest.mark.parametrize("shared", ["sql"], indirect=True)
def test_a_listing_whose_catalog_is_gone_is_forgotten(shared: Project) -> None:
    send(shared, 1)
    ran(shared)
    file = Path(other_catalog(shared).options.uri.removeprefix("sqlite:///"))
    before = file.read_bytes()
    file.write_bytes(b"no database" * 100)
    with pytest.raises(SluiceError):
        list(unpublish.of_pipeline(shared.plan, shared.pipeline))
    (listed,) = unpublish.of_pipeline(shared.plan, shared.pipeline, ask=False)
    context = shared.context()
    unpublish.end(shared.plan, shared.pipeline, listed)
    unpublish.forget_tags(context, context.plan.pipelines[0], listed)
    assert state(shared) == ("lagging", 1)
    file.write_bytes(before)
    catalogs.client_of(other_catalog(shared)).drop(name(shared))
    ran(shared)
    assert seen_ids(shared) == [1]


def test_changes_that_a_rest_catalog_takes() -> None:
    """Only newer snapshots are added, each change removes one, and the format is upgraded before its first snapshot."""

    def document(format_: int, *snapshots: tuple[int, bool]) -> dict[str, Any]:
        listed = [
            {"snapshot-id": id_, "sequence-number": id_, **({"first-row-id": 0} if numbered else {})}
            for id_, numbered in snapshots
        ]
        parts = {"current-schema-id": 0, "default-spec-id": 0, "default-sort-order-id": 0, "properties": {}}
        return {
            **parts, "format-version": format_, "snapshots": listed, "current-snapshot-id": snapshots[-1][0],
            "last-sequence-number": max(id_ for id_, _ in snapshots),
        }  # fmt: skip

    def done(current: dict[str, Any], target: dict[str, Any]) -> list[tuple[str, Any]]:
        changes = _rest_changes.between(current, target)
        return [
            (
                change["action"],
                change.get("snapshot", {}).get("snapshot-id") or change.get("snapshot-ids") or change.get("snapshot-id"),
            )
            for change in changes
        ]

    add, main, remove, upgrade = "add-snapshot", "set-snapshot-ref", "remove-snapshots", ("upgrade-format-version", None)
    assert done(document(3, (1, True), (2, True)), document(3, (3, True), (4, True))) == [
        (add, 3), (add, 4), (main, 4), (remove, [1]), (remove, [2]),
    ]  # fmt: skip
    assert done(document(3, (5, True)), document(3, (2, True), (6, True))) == [(add, 6), (main, 6), (remove, [5])]
    assert done(document(2, (1, False)), document(3, (1, False), (2, False), (3, True))) == [upgrade, (add, 3), (main, 3)]
    assert done(document(2, (1, False)), document(3, (1, False), (2, False))) == [(add, 2), (main, 2), upgrade]


def dies_at(point: str) -> Any:
    def at(reached: str) -> None:
        if reached == point:
            raise Died

    return at
