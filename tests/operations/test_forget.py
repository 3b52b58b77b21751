"""`sluice forget`: no file of the tables has the person any more, and nothing brings the rows back, whatever dies when."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from framework.base.errors import SluiceError
from framework.core.run.run import batches
from framework.host.cli import main
from framework.operations.forget import forget
from framework.operations.undo import replay
from framework.plan import in_order
from tests.support.follower_parts import ran
from tests.support.kill_points import Died, dies_at
from tests.support.people import ANN, APPEND, BOB, HISTORY, ORDERS, UPSERT, emails, files_with, forgotten, order, orders, trades
from tests.support.project import Project
from tests.support.rebuilds import rebuilt
from tests.support.rollbacks import rolled_back, snapshots
from tests.support.runs import published
from tests.support.selection import few

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

UPSERT_2 = ORDERS % ", write: upsert, keys: [email], deletes: tombstones, partition_by: [email], format_version: 2"
MASKED = 'steps: [{mask: {key: "${secret:pii}", columns: {email: hmac}}}]'
ENTRIES = ORDERS % ", write: upsert, keys: [email, id], deletes: ignore"
FLATTENED = """
topic: trades
kafka_name: {topic}
value: json
columns: {{id: bigint, who: "struct<number: string>", amount: int}}
---
pipeline: trades
from: {{topic: trades}}
steps: [{{flatten: [who]}}]
into: {{table: {namespace}.trades}}
"""
COPY = """---
pipeline: copy
from: {{table: {namespace}.trades}}
into: {{table: {namespace}.copy}}
"""


@pytest.mark.parametrize(
    "template",
    [
        pytest.param(APPEND, id="append", marks=pytest.mark.long),
        pytest.param(UPSERT, id="upsert"),
        pytest.param(UPSERT_2, id="upsert of format 2", marks=pytest.mark.long),
        pytest.param(HISTORY, id="history", marks=pytest.mark.long),
    ],
)
def test_no_file_has_the_person_and_nothing_brings_rows_back(project: Project, template: str) -> None:
    project.template = template
    project.make_topic(1)
    bad: dict[str, Any] = {"key": ANN, "value": b"not json", "partition": 0}
    tombstones: list[dict[str, Any]] = [{"key": ANN, "value": None, "partition": 0}] if "deletes" in template else []
    for messages in (orders(ANN, BOB, ANN), [*tombstones, bad, order(BOB, 7, "x")], orders(ANN, "carl@example.com")):
        project.produce(messages)
        project.run()
    assert len(files_with(project)) > 5
    other_emails = [email for email in emails(project) if email != ANN]
    lines = forgotten(project)
    assert lines[1] == f"1 bad row of {project.namespace}.trades__bad_rows is gone"
    assert files_with(project) == set()
    assert emails(project) == other_emails
    assert [row["key"] for row in project.rows(bad=True)] == [BOB.encode()]

    project.produce([*orders(ANN, "dora@example.com"), *tombstones])
    (batch,) = project.run()
    assert (batch.rows, batch.filtered) == (1, 1 + len(tombstones))
    assert emails(project) == sorted([*other_emails, "dora@example.com"])
    assert forgotten(project)[0] == f"0 rows of {project.namespace}.trades are gone"
    assert files_with(project) == set()


def test_a_rebuild_brings_no_row_back(project: Project) -> None:
    project.template = APPEND
    project.make_topic(1)
    project.produce(orders(ANN, BOB))
    project.run()
    forgotten(project)
    project.more = "steps: [{derive: {twice: amount * 2}}]"
    context = project.context()
    pipeline = context.plan.pipelines[0]
    rebuilt(context, pipeline)
    assert emails(project) == [BOB]
    project.produce(orders(ANN))
    project.run()
    assert emails(project) == [BOB]
    assert files_with(project) == set()


@pytest.mark.parametrize("point", few(forget.KILL_POINTS, "deleted"))
@pytest.mark.parametrize("template", few([APPEND, UPSERT], UPSERT))
def test_forgetting_ends_after_a_death_at(project: Project, template: str, point: str) -> None:
    project.template = template
    project.make_topic(1)
    for _ in range(2):
        project.produce([*orders(ANN, BOB), {"key": ANN, "value": b"not json", "partition": 0}])
        project.run()
    with suppress(Died):
        forgotten(project, dies_at(point))
    project.produce(orders(ANN, "carl@example.com"))
    project.run()
    assert ANN not in emails(project) or point == "remembered"
    forgotten(project)
    assert files_with(project) == set()
    assert set(emails(project)) == {BOB, "carl@example.com"}


def replayed(project: Project, on_point: Callable[[str], None] | None = None) -> None:
    context = project.context(on_point)
    published(replay.replay(context, trades(context), replay.condition(""), lambda: False))


@pytest.mark.parametrize("later", few(forget.KILL_POINTS, "deleted_bad_rows"))
@pytest.mark.parametrize("point", few(["staged", "staged_bad_rows", "checked", "published", "published_bad_rows"], "published"))
@pytest.mark.parametrize("template", few([ORDERS % "", ENTRIES], ENTRIES))
def test_forgetting_dies_after_a_replay_that_died_at(project: Project, template: str, point: str, later: str) -> None:
    """Each message of others is in the rows or the bad rows once, and what the replay had staged brings nobody back."""
    project.template, project.more = template, "steps: [{derive: {ratio: 10 / amount}}]"
    project.make_topic(1)

    def send(first_number: int) -> None:
        project.produce(
            order(email, first_number + number, amount) for email in (ANN, BOB) for number, amount in enumerate((1, 0, "x"))
        )

    send(0)
    project.run()
    project.more = "steps: [{derive: {ratio: 10 / (amount + 1)}}]"
    with suppress(Died):
        replayed(project, dies_at(point))
    with suppress(Died):
        forgotten(project, dies_at(later))
    send(10)
    project.run()
    replayed(project)
    forgotten(project)
    assert files_with(project) == set()
    assert [(row["email"], row["id"]) for row in sorted(project.rows(), key=lambda row: int(row["id"]))] == [
        (BOB, 0), (BOB, 1), (BOB, 10), (BOB, 11)
    ]  # fmt: skip
    assert sorted((row["offset"], row["state"]) for row in project.rows(bad=True)) == [(4, "replayed"), (5, "open"), (11, "open")]
    assert project.branches() == []


@pytest.mark.long
def test_a_batch_that_was_staged_before_lands_without_the_row(project: Project) -> None:
    project.template = UPSERT
    project.make_topic(1)
    project.produce(orders(BOB))
    project.run()
    project.produce(orders(ANN, "carl@example.com"))
    points: list[str] = []

    def forget_once(point: str) -> None:
        if point == "checked" and not points:
            points.append(point)
            with pytest.raises(SluiceError, match="a batch is being written"):
                forgotten(project)

    project.run(forget_once)
    assert points and emails(project) == [BOB, "carl@example.com"]
    forgotten(project)
    assert files_with(project) == set()


@pytest.mark.long
def test_a_forgotten_state_is_gone_after_a_rebuild_too(project: Project) -> None:
    """The states that a rebuild empties are listed in the snapshot at which states begin."""
    project.template = UPSERT
    project.make_topic(1)
    project.produce([*orders(ANN, BOB), {"key": ANN, "value": None, "partition": 0}, *orders(ANN)])
    project.run()
    context = project.context()
    rebuilt(context, trades(context))
    forgotten(project)
    assert files_with(project) == set()
    project.produce([{"key": BOB, "value": None, "partition": 0}])
    project.run()
    assert emails(project) == []


@pytest.mark.long
def test_only_bad_rows_with_the_number_itself_go(project: Project) -> None:
    project.template = APPEND.replace("[email]", "[id]")
    project.make_topic(1)
    values = (
        '{"id": 7, "amount": "x"}', '{"id":"7", "amount": "x"}', '{"amount": 7, "id": 70}', '{"id": 7.5}',
        '{"id": 17, "amount": "7"}', "7 ",
    )  # fmt: skip
    project.produce([order(BOB, 7), order(BOB, 8), *({"key": BOB, "value": value.encode(), "partition": 0} for value in values)])
    project.run()
    lines = forgotten(project, key={"id": "7"})
    assert lines[0] == f"1 row of {project.namespace}.trades is gone"
    bad_values = {row["value"].decode() for row in project.rows(bad=True)}
    assert not bad_values & set(values[:2])
    assert {'{"id": 7.5}', '{"id": 17, "amount": "7"}', "7 "} <= bad_values


@pytest.mark.long
def test_a_bad_row_of_a_flattened_field_goes(project: Project) -> None:
    project.template = FLATTENED
    project.make_topic(1)
    values = ('{"id": 1, "who": {"number": "4711"}, "amount": "x"}', '{"id": 4711, "who": {"number": "12"}, "amount": "x"}')
    project.send([value.encode() for value in values], partition=0)
    project.send([b'{"id": 2, "who": {"number": "4711"}}'], partition=0)
    project.run()
    lines = forgotten(project, key={"who_number": "4711"})
    assert [line.split()[0] for line in lines[:2]] == ["1", "1"]
    assert [row["value"].decode() for row in project.rows(bad=True)] == [values[1]]


@pytest.mark.long
def test_bad_rows_go_however_their_json_is_written(project: Project) -> None:
    """Bad rows are found by a text escaped as by Gson or PHP, by JSON inside a text, and by a number in a nested field."""
    project.template = FLATTENED.replace("number: string", "number: bigint, name: string").replace(
        "[{{flatten: [who]}}]", "[{{derive: {{no: who.number, called: who.name}}}}, {{drop: [who]}}]"
    )
    project.make_topic(1)
    rest = '"amount": "x"}'
    of_ann = (
        r'{"who": {"name": "Ann O\u0027Neil \u00E4\/\uD83D\uDE00"}, ',
        r'{"who": {"name": "- \nAnn O\u0027Neil \u00e4/\ud83d\ude00\n"}, ',
        r'{"who": {"name": "{\"x\": \"Ann O\\u0027Neil \\u00e4/\\ud83d\\ude00\"}"}, ',
    )
    of_bob = (r'{"who": {"name": "Ann O\u0027Neil \u00e4\/"}, ', r'{"who": {"number": 4711}, ')
    project.send([(prefix + rest).encode() for prefix in (*of_ann, *of_bob)], partition=0)
    project.send(['{"id": 2, "who": {"number": 4711, "name": "Ann O\'Neil ä/😀"}}'.encode()], partition=0)
    project.run()
    lines = forgotten(project, key={"called": "Ann O'Neil ä/😀"})
    assert [line.split()[0] for line in lines[:2]] == ["1", "3"]
    assert [row["value"].decode() for row in project.rows(bad=True)] == [prefix + rest for prefix in of_bob]
    forgotten(project, key={"no": "4711"})
    assert [row["value"].decode() for row in project.rows(bad=True)] == [of_bob[0] + rest]


@pytest.mark.long
def test_what_a_batch_that_leaves_repeats_out_counts(project: Project) -> None:
    project.template, project.more = APPEND, "steps: [{dedup: {keys: [id]}}]"
    project.make_topic(1)
    project.produce(orders(ANN, BOB))
    project.run()
    forgotten(project)
    project.produce([order(ANN, 7), order("carl@example.com", 8), order("dora@example.com", 9), order(BOB, 1)])
    (batch,) = project.run()
    assert (batch.rows, batch.filtered) == (2, 2)


@pytest.mark.long
def test_files_that_others_name_stay_and_are_said_each_time(project: Project) -> None:
    project.template = APPEND
    project.make_topic(1)
    project.produce(orders(ANN, BOB))
    project.run()
    folder = project.lake / "warehouse" / project.namespace / "trades" / "metadata"
    newest_file = max(folder.glob("*.metadata.json"))
    stray_file = folder / "00009-00000000-0000-0000-0000-000000000000.metadata.json"
    shutil.copy(newest_file, stray_file)
    for _ in range(2):
        with pytest.raises(SluiceError, match="could not be deleted; named by") as refused:
            forgotten(project)
        assert refused.value.code == "named-by-others"
        assert files_with(project)
    stray_file.unlink()
    forgotten(project)
    assert files_with(project) == set()


def test_a_table_that_was_rolled_back_is_refused(project: Project) -> None:
    project.template = APPEND
    project.make_topic(1)
    for _ in range(2):
        project.produce(orders(ANN, BOB))
        project.run()
    first_snapshot = snapshots(project)[1]
    project.sql(f"CALL lake.system.rollback_to_snapshot('{{bare}}', {first_snapshot})")
    with pytest.raises(SluiceError, match="another program rolled"):
        forgotten(project)
    assert len(snapshots(project)) > 1


@pytest.mark.long
def test_a_table_can_be_rolled_back_to_what_was_after_it(project: Project) -> None:
    project.template = APPEND
    project.make_topic(1)
    project.produce(orders(ANN, BOB))
    project.run()
    forgotten(project)
    project.produce(orders("carl@example.com"))
    project.run()
    rolled_back(project, snapshots(project)[0])
    assert emails(project) == [BOB]
    project.run()
    assert emails(project) == [BOB, "carl@example.com"]


def test_rows_without_the_column_are_refused(project: Project) -> None:
    project.template = ORDERS % ""
    project.make_topic(1)
    project.produce(orders(ANN, BOB))
    project.run()
    forgotten(project)
    project.more = "steps: [{rename: {email: contact}}]"
    project.produce(orders(ANN))
    with pytest.raises(SluiceError, match="recognises persons that were forgotten by `email`") as refused:
        project.run()
    assert refused.value.code == "forgotten-column"
    project.more = ""
    project.run()
    assert emails(project) == [BOB]


@pytest.mark.long
def test_what_is_deleted_again_ends_again(project: Project) -> None:
    """The second of two commands for one key dies; between them, another program brought the row back."""
    project.template = APPEND
    project.make_topic(1)
    project.produce(orders(ANN, BOB))
    project.run()
    forgotten(project)
    project.sql("INSERT INTO {table} SELECT 'ann.canary@example.com', 9, 1, 0, -1, current_timestamp()")
    with suppress(Died):
        forgotten(project, dies_at("deleted"))
    forgotten(project)
    assert files_with(project) == set()


def test_a_death_between_expiry_and_the_deletion_of_files_leaves_none(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.template = APPEND
    project.make_topic(1)
    project.produce(orders(ANN, BOB))
    project.run()

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as patched, suppress(Died):
        patched.setattr("framework.core.iceberg.deletable_files.delete", die)  # no kill point is there
        forgotten(project)
    assert files_with(project)
    forgotten(project)
    assert files_with(project) == set()


def test_readers_are_waited_for_and_read_on(project: Project) -> None:
    project.template = APPEND + COPY
    project.make_topic(1)
    project.produce(orders(ANN, BOB))

    def run_both() -> list[int]:
        context = project.context()
        return [batch.rows for pipeline in in_order(context.plan.pipelines) for batch in batches(context, pipeline)]

    assert run_both() == [2, 2]
    with pytest.raises(SluiceError, match="copy must read") as refused:
        forgotten(project)
    assert refused.value.hint.startswith("`sluice run copy`, then")
    assert run_both() == [0]
    lines = forgotten(project)
    assert f"  the table {project.namespace}.copy, made of this one: `sluice forget copy`" in lines
    assert {Path(path).parts[0] for path in files_with(project)} == {"copy"}
    project.produce(orders(ANN, "dora@example.com"))
    assert run_both() == [1, 1]


@pytest.mark.long
def test_a_follower_gets_the_tombstone(project: Project) -> None:
    project.template = UPSERT + "also: [{{topic: {topic}_onward, key: email, value: json}}]\n"
    project.make_topic(1)
    project.produce(orders(ANN, BOB))
    assert ran(project) == [2]
    assert "trades: 1 row to the topic " + project.topic + "_onward" in forgotten(project)
    assert files_with(project) == set()
    project.produce(orders("carl@example.com"))
    assert ran(project) == [1]


def test_a_delta_log_shows_the_table_without_the_person(project: Project) -> None:
    project.template = UPSERT + "also: [{{delta: true}}]\n"
    project.make_topic(1)
    project.produce(orders(ANN, BOB))
    assert ran(project) == [2]
    forgotten(project)
    assert files_with(project) == set()
    table = DeltaTable(str(project.lake / "warehouse" / project.namespace / "trades"))
    assert pyarrow.table(table.to_pyarrow_dataset().to_table()).column("email").to_pylist() == [BOB]
    project.produce(orders("carl@example.com"))
    assert ran(project) == [1]


def test_pins_of_others_go_and_are_named(project: Project) -> None:
    project.template = APPEND
    project.make_topic(1)
    project.produce(orders(ANN, BOB))
    project.run()
    context = project.context()
    table = context.lake(trades(context)).load(trades(context).table.identifier)
    assert table is not None
    snapshot = table.currentSnapshot().snapshotId()
    table.manageSnapshots().createTag("audit", snapshot).createBranch("experiment", snapshot).commit()
    lines = forgotten(project)
    assert [line for line in lines if "kept an older" in line] == [
        "`audit`, which kept an older snapshot, is gone",
        "`experiment`, which kept an older snapshot, is gone",
    ]
    assert files_with(project) == set()


@pytest.mark.long
def test_a_masked_column_is_named_by_its_plain_value(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SECRET_PII", "a-secret-of-the-canaries-0123456789")
    project.template, project.more = APPEND, MASKED
    project.make_topic(1)
    project.produce([*orders(ANN, BOB), {"key": ANN, "value": b"not json", "partition": 0}])
    project.run()
    (hashed, *_) = [row["email"] for row in project.rows() if row["id"] == 0]
    assert files_with(project, hashed) and not files_with(project)
    with (
        monkeypatch.context() as another,
        pytest.raises(SluiceError, match=r"^forget-key: a bad row of trades is encrypted by a key"),
    ):
        another.setenv("SLUICE_SECRET_PII", "another-secret-of-the-canaries-0123456789")
        forgotten(project)
    project.more = ""
    with pytest.raises(SluiceError, match=r"^forget-key: a bad row of trades is encrypted by a key"):
        forgotten(project)
    project.more = MASKED
    lines = forgotten(project)
    assert lines[:2] == [
        f"1 row of {project.namespace}.trades is gone",
        f"1 bad row of {project.namespace}.trades__bad_rows is gone",
    ]
    assert files_with(project, hashed) == set()
    project.produce(orders(ANN))
    project.run()
    assert len(project.rows()) == 1


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ({"mail": ANN}, "has no column `mail`"),
        ({"id": "one"}, "`id` is bigint, and its value is not bigint"),
        ({"amount": "1"}, "trades remembers the keys alone"),
    ],
)
def test_keys_that_are_refused(project: Project, key: dict[str, str], says: str) -> None:
    project.template = UPSERT if "amount" in key else APPEND
    project.make_topic(1)
    project.produce(orders(BOB))
    project.run()
    with pytest.raises(SluiceError, match=says):
        forgotten(project, key=key)


@pytest.mark.usefixtures("lent_spark")
def test_the_command_shows_what_it_means_and_writes_exports_again(project: Project) -> None:
    export_spec = "---\nexport: all\nfrom: {{table: {namespace}.trades}}\nfile: {{format: csv, to: {namespace}.csv}}\n"
    project.template = APPEND + export_spec
    project.make_topic(1)
    project.produce([*orders(ANN, BOB), {"key": ANN, "value": b"not json", "partition": 0}])
    project.run()
    specs = str(Path(project.pipeline.where.file).parent)

    def typed(*words: str, answer: str = "") -> str:
        return CliRunner().invoke(main, [*words, "--specs", specs], input=answer).output

    file = f"{project.namespace}.csv"
    typed("export")
    assert ANN in Path(file).read_text()
    output = typed("forget", "trades", "--key", f"email={ANN}", answer="n\n")
    table = f"{project.namespace}.trades"
    assert output.splitlines()[:4] == [
        f"trades: what `email` says is forgotten in {table}",
        "  1 row and 1 bad row",
        "  1 older snapshot: afterwards there is no `rollback`, `diff` or `query --at` to before",
        f"  {file} is written again, from the table as it is then",
    ]
    assert emails(project) == [ANN, BOB]
    output = typed("forget", "trades", "--key", "email=-", "--yes", answer=f"{ANN}\n")
    assert f"{file} is written again: 1 row, 2 before" in output
    assert ANN not in output and "Traceback" not in output
    assert ANN not in Path(file).read_text()
    assert emails(project) == [BOB]
    assert "keeps a hash of" in typed("drop", "trades", answer="n\n")
    assert "write COLUMN=VALUE" in typed("forget", "trades", "--key", "email")
    assert "cannot be undone" not in typed("forget", "trades", "--key", "email=", "--yes")


def test_a_copy_of_masked_rows_is_forgotten_by_the_plain_value(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SECRET_PII", "of sixteen characters")
    project.template, project.more = APPEND + COPY, MASKED
    project.make_topic(1)
    project.produce(orders(ANN, BOB, ANN))
    context = project.context()
    for pipeline in in_order(context.plan.pipelines):
        list(batches(context, pipeline))
    copy = context.plan.pipeline("copy")
    assert copy is not None
    meaning = forget.judged(context, copy, {"email": ANN})
    assert next(iter(forget.forget(context, copy, meaning.key))) == f"2 rows of {project.namespace}.copy are gone"
