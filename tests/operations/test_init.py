"""`sluice init`: a first project that runs as it is, and specs from what a real topic holds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from hypothesis import example, given, settings, strategies as st

from framework.base.errors import SluiceError
from framework.core.context.context import Context
from framework.core.iceberg import table_state
from framework.core.kafka import newest_messages
from framework.core.kafka.newest_messages import KafkaMessage, MessageSample
from framework.core.run.run import batches
from framework.host.cli import main
from framework.host.plans import make
from framework.operations.init import files, infer, project as projects, spec
from framework.plan import Cluster, Plan, SecretStore, Security
from tests.support.project import BASE, Project
from tests.support.selection import few
from tests.support.time_limits import bar

ROOT = Path(__file__).resolve().parents[2]


def sluice(*arguments: str) -> str:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return done.output


def sampled(
    values: Iterable[Any], keys: Iterable[bytes | None] = (), headers: tuple[tuple[str, bytes | None], ...] = ()
) -> MessageSample:
    """A sample of these values: objects, or the bytes of messages."""
    raw = [value if isinstance(value, bytes | None) else json.dumps(value).encode() for value in values]
    all_keys = [*keys, *[None] * len(raw)]
    messages = [
        KafkaMessage(
            partition=0, offset=index, timestamp=1_760_000_000_000 + index, key=all_keys[index], value=value, headers=headers
        )
        for index, value in enumerate(raw)
    ]
    return MessageSample(tuple(messages), len(raw), 3)


def written(values: Iterable[Any], name: str = "orders", **parts: Any) -> str:
    return spec.write(name, sampled(values, **parts)).text


def column(*values: Any, name: str = "c") -> str:
    """The line of the spec for a column with these values."""
    lines = written([{name: value} for value in values]).splitlines()
    return next(line for line in lines if line.startswith("  ")).strip()


# A new project


def test_a_project_that_checks_and_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    output = sluice("init", "my shop")
    assert "wrote my shop/.gitignore, my shop/specs/main.yaml, my shop/specs/orders.yaml" in output
    assert "  cd 'my shop'\n" in output
    monkeypatch.chdir(tmp_path / "my shop")
    assert (tmp_path / "my shop" / ".gitignore").read_text() == ".sluice/\n"
    assert "no problems" in sluice("check")
    plan = make(Path("specs"))
    assert (plan.engine.memory, len(plan.pipelines[0].examples)) == ("4g", 1)
    assert "LARGE when amount > 400" in sluice("plan", "--no-look")


def test_the_port_is_the_one_that_services_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_KAFKA_PORT", "29092")
    projects.start(tmp_path)
    assert make(tmp_path / "specs").clusters[0].bootstrap == "127.0.0.1:29092"


@pytest.mark.parametrize(
    ("existing", "expected", "written_files"),
    [
        ("*.log\n/.sluice\n", "*.log\n/.sluice\n", ()),
        ("*.log\n", "*.log\n.sluice/\n", (".gitignore (one line more)",)),
        ("*.log", "*.log\n.sluice/\n", (".gitignore (one line more)",)),
        ("", ".sluice/\n", (".gitignore",)),
    ],
)
def test_a_gitignore_gets_the_line_once(tmp_path: Path, existing: str, expected: str, written_files: tuple[str, ...]) -> None:
    (tmp_path / ".gitignore").write_text(existing)
    assert projects.start(tmp_path) == (*written_files, "specs/main.yaml", "specs/orders.yaml")
    assert (tmp_path / ".gitignore").read_text() == expected


def test_a_gitignore_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").mkdir()
    with pytest.raises(SluiceError, match="gitignore cannot be written: is a directory") as refused:
        projects.start(tmp_path)
    assert (refused.value.code, (tmp_path / "specs" / "orders.yaml").exists()) == ("not-written", True)
    assert "add the line `.sluice/`" in refused.value.hint


@pytest.mark.parametrize("name", ["specs/main.yaml", "specs/deep/er/any.yaml"])
def test_existing_files_are_never_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = everything(tmp_path)
    with pytest.raises(SluiceError) as refused:
        projects.start(tmp_path)
    assert refused.value.code == "file-exists"
    assert name in refused.value.message and "--topic" in refused.value.hint
    assert everything(tmp_path) == before


def everything(folder: Path) -> dict[str, str | None]:
    return {str(path): path.read_text() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def test_files_are_written_all_or_none(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("a file, so no folder")
    before = everything(tmp_path)
    with pytest.raises(SluiceError) as refused:
        files.put(tmp_path, {"new/folder/a.yaml": "a", "here/b.yaml": "b"})
    assert refused.value.code == "not-written"
    assert everything(tmp_path) == before
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(SluiceError, match="exists already"):
        files.put(tmp_path, {"new.yaml": "a", "gone": "b"})
    assert not (tmp_path / "new.yaml").exists()


def test_options_without_effect_are_refused() -> None:
    for option in (["--sample", "5"], ["--bootstrap", "127.0.0.1:1"], ["--env", "prod"]):
        done = CliRunner().invoke(main, ["init", "nowhere", *option])
        assert (done.exit_code, option[0] in done.output) == (2, True)
    assert CliRunner().invoke(main, ["init", "--topic", "a", "--bootstrap", "no address"]).exit_code == 2


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
def test_the_printed_commands_run(tmp_path: Path, kafka: str) -> None:
    output = CliRunner().invoke(main, ["init", str(tmp_path / "shop")]).output
    lines = [line.split("#")[0].split() for line in output.splitlines() if line.startswith("  sluice")]
    assert [line[1] for line in lines] == ["setup", "check", "test", "services", "generate", "preview", "run"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SLUICE_VAR_KAFKA": kafka}
    run = [sys.executable, "-c", "from framework.host.cli import main; main()"]
    for line in lines:
        done = subprocess.run(
            [*run, *line[1:]], check=False, cwd=tmp_path / "shop", env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert "shop.orders is caught up" in done.stdout
    assert " filtered" in done.stdout and " bad" not in done.stdout


# Columns of a sample


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([1, -5], "c: bigint"),
        ([1, 2.5], "c: double"),
        ([2**70, 2.5], "c: double"),
        ([2**63 - 1, 2**63], "c: string  # whole numbers, some beyond bigint"),
        ([True, False], "c: boolean"),
        ([True, 1], "c: string  # a mix: boolean in 1, whole number in 1"),
        (["a", "2026-01-05"], "c: string"),
        (["2026-01-05T10:00:00Z", "2026-01-05 10:00:00.123456789+05:30"], "c: timestamp"),
        (["2026-01-05T10:00"], "c: timestamp  # some have no zone: read as UTC"),
        (["2026-01-05T25:00:00Z"], "c: string"),
        (["2026-01-05T10:00:00+0200"], "c: string"),
        (["2026-01-05T10:00:00+19:00"], "c: string"),
        (["10:00", "2026", "20260105"], "c: string"),
        (["2026-01-05", "2026-12-31"], "c: date"),
        (["2026-02-30"], "c: string"),
        ([None, None], "c: string  # always null, in 2"),
        ([1, None], "c: bigint  # null in 1 of 2"),
        ([[1], [], None, [2.5]], "c: array<double>  # null in 1 of 4"),
        ([[], []], "c: array<string>  # always an empty list"),
        ([[1, "a"]], "c: array<string>  # a mix: whole number in 1, text in 1"),
        ([[[1]], [[2], []]], "c: array<array<bigint>>"),
        ([{}], "c: string  # always an empty object"),
        ([{"a": 1}, {"b": {"at": "2026-01-05T10:00:00Z"}}], "c: struct<a bigint, b struct<at timestamp>>"),
        ([[{"a": 1}, {"a": None, "x-y": "é"}]], "c: array<struct<a bigint, `x-y` string>>"),
        ([{"a": 1, "A": 2, "b.c": 3}], "c: struct<a bigint>  # 2 of its fields left out: names that no field can have"),
        ([{"a": None}], "c: struct<a string>  # a: always null, in 1"),
        ([{"a": 1}, 5], "c: string  # a mix: object in 1, whole number in 1"),
        ([1_760_000_000_000], "c: bigint"),
    ],
)
def test_a_columns_type_holds_every_value_of_the_sample(values: list[Any], line: str) -> None:
    assert column(*values) == line


@pytest.mark.parametrize("name", ["at", "created_at", "createdAt", "ts", "event_ts", "registertime", "eventTime", "timestamp_ms"])
def test_numbers_are_timestamps_by_name_and_size(name: str) -> None:
    epoch = '{type: timestamp, format: epoch_millis, doc: "milliseconds since 1970, by its name and size"}'
    assert column(1_760_000_000_000, name=name) == f"{name}: {epoch}"
    assert column(1_760_000_000, name=name) == f"{name}: bigint", "seconds are left a number"
    assert column(1_760_000_000_000, 5, name=name) == f"{name}: bigint"


@pytest.mark.parametrize("name", ["amount", "format", "cats", "sat", "runtime_id", "total"])
def test_numbers_are_no_timestamps_by_size_alone(name: str) -> None:
    assert column(1_760_000_000_000, name=name) == f"{name}: bigint"


@pytest.mark.parametrize("count", [1, 99, 100, 1000])
def test_a_sample_makes_no_column_required(count: int) -> None:
    """However many messages have a field, the next one may lack it, and would be a bad row."""
    text = written([{"a": 1, "b": 1, "n": None}] * (count - 1) + [{"a": 1, "c": None}])
    assert "  a: bigint\n" in text
    if count > 1:
        assert f"  b: bigint  # 1 of {count:,} messages lacks it\n" in text
    assert not re.search(r"^[^#]*required", text, re.MULTILINE)
    assert (
        "# No column is `required: true`, which makes a bad row of a message without it: a sample cannot tell.\ncolumns:" in text
    )


def test_a_sample_of_changes_makes_no_column_required() -> None:
    change = {"before": None, "after": {"id": 1, "name": "a"}, "source": {}, "op": "c", "ts_ms": 1}
    text = written([change] * 200)
    assert "value: debezium_json" in text
    assert not re.search(r"^[^#]*required", text, re.MULTILINE)


def test_names_that_no_column_can_have_are_left_out_with_the_reason() -> None:
    names = [
        "a.b",
        "a b",
        "",
        "new\nline",
        "soft\u00adhyphen",
        "_kafka_offset",
        "_Sluice_x",
        "_event_time",
        "id",
        "ID",
        "x" * 256,
    ]
    fine = ["no", "null", "~", "12", "-", "ünï", "#1", "select", "password", "a-b", "!x", "&x", "*x", "|", "%", "@x", "?"]
    draft = spec.write("t", sampled([dict.fromkeys([*names, *fine], 1)]))
    left_names = ["a.b", "a b", "", "new\nline", "soft\u00adhyphen", "_kafka_offset", "_Sluice_x", "_event_time", "ID", "x" * 256]
    assert sorted(draft.left_out) == sorted(left_names)
    assert draft.columns == len(fine) + 1
    assert "  # `new\\nline` is left out: no column can have such a name\n" in draft.text
    assert "  # `_kafka_offset` is left out: `_kafka_offset` is a name that Sluice uses itself\n" in draft.text
    assert "  # `ID` is left out: `ID` and `id` differ only in case\n" in draft.text
    assert checked(draft.text).columns[0].name == "id"


def checked(text: str) -> Any:
    """The only topic of a spec, which has no problems."""
    return planned(text).topics[0]


def planned(text: str) -> Plan:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.yaml").write_text(projects.main())
        Path(folder, "topic.yaml").write_text(text)
        plan = make(Path(folder))
        assert len(plan.topics) == 1
        return plan


def test_no_value_of_a_message_is_written() -> None:
    text = written([{"card": "4111-1111", "n": 424242}] * 100, keys=[b"4242"] * 100, headers=(("h", b"secret"),))
    assert not any(value in text for value in ("4111", "4242", "secret"))


@pytest.mark.parametrize(
    ("values", "value"),
    [
        ([{"a": 1}] * 9 + [b"[1]"], "value: json  # 1 of 10 messages are not one JSON object, which makes bad rows"),
        ([{"a": 1}] * 9 + [None], "value: json  # 1 of 10 messages have no value, which makes bad rows"),
        ([{"a": 1}] * 8 + [b"x"] * 2, "value: string  # 8 of 10 messages are JSON objects"),
        ([b'{"a": NaN}', b"{} {}", b"5"], "value: string"),
        ([{}], "value: string  # 1 of 1 messages are JSON objects"),
        ([b"a", b"\xff"], "value: bytes  # 1 of 2 messages are UTF-8 text"),
        (
            [b"\0\0\0\0\1abc"],
            "value: bytes  # they begin as those of a schema registry do: name it, by `registry: URL` in the cluster, and write"
            " `value: avro`, `json_schema` or `protobuf`",
        ),
        ([b'{"a": ' + b"[" * 100_000], "value: string"),
    ],
)
def test_the_format_follows_from_the_messages(values: list[Any], value: str) -> None:
    assert value in written(values).splitlines()
    checked(written(values))


def envelope(op: str, before: Any = None, after: Any = None, beside_schema: bool = False) -> dict[str, Any]:
    payload = {"op": op, "before": before, "after": after, "source": {"ts_ms": 1_760_000_000_000, "table": "orders"}, "ts_ms": 1}
    return {"schema": {"type": "struct"}, "payload": payload} if beside_schema else payload


@pytest.mark.parametrize("beside_schema", [False, True])
def test_envelopes_of_debezium_are_changes_by_the_keys_of_the_messages(beside_schema: bool) -> None:
    unsent = {"id": 1, "note": "__debezium_unavailable_value", "amount": 2}
    values = [
        envelope("r", after={"id": 1, "note": "a", "amount": 1}, beside_schema=beside_schema),
        envelope("u", {"id": 1, "note": "a", "amount": 1}, unsent, beside_schema),
        envelope("d", {"id": 2, "note": None, "amount": None}, beside_schema=beside_schema),
        None,
    ]
    key = {"schema": {}, "payload": {"id": 1}} if beside_schema else {"id": 1}
    draft = spec.write("shop.public.orders", sampled(values, [json.dumps(key).encode()] * 4))
    assert (draft.value, draft.columns) == ("debezium_json", 3)
    assert "value: debezium_json  # 1 of 4 messages are tombstones, which are left out\n" in draft.text
    assert "\n  id: bigint\n  note: string" in draft.text and "\n  amount: bigint" in draft.text
    assert "into: {table: raw.shop_public_orders, write: upsert, keys: [id]}\n" in draft.text
    assert [pipeline.table.write.name for pipeline in planned(draft.text).pipelines] == ["upsert"]


def test_envelopes_whose_keys_name_no_column_are_rows_of_changes() -> None:
    values = [envelope("c", after={"id": 1}), envelope("c", after={"id": 2})]
    text = written(values)
    assert "\n# A row for each change." in text and "upsert" not in text.splitlines()[-1]
    assert planned(text).pipelines[0].table.write.name == "append"
    assert "value: json" in written([envelope("c", after="text, as of MongoDB")])
    assert "value: json" in written([{"op": "c", "amount": 1}, {"op": "u", "amount": 2}])


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ([None, None], "# No message has a key."),
        ([b"User_1", b"k-2"], "key: {format: string, as: key}"),
        ([b"User_1", None], "key: {format: string, as: key}  # 1 of 2 messages lacks it"),
        ([b"7", b"8"], "# key: {format: string, as: key}  # would make a column of the key, which is always `n`"),
        ([b"\xff", b"a"], "# key: {format: bytes, as: key}  # would make a column of the key, which is not always text"),
        (
            [bytes(7) + b"\xff", b"\xff" * 8],
            "# key: {format: long, as: key}  # would make a column of the key, which always has 8 bytes, as Java's numbers have",
        ),
        (
            [b'{"a": 1, "N": 2, "x-y": 3, "at": 1760000000000}', b'{"a": 1.5, "null": {"b": [1]}, "A": 1}'],
            '# key: {format: json, columns: {a: double, at: {type: timestamp, format: epoch_millis}, "null": "struct<b array<bigint>>"}}'
            "  # would make columns of the key, which is an object; those that are columns already are left out",
        ),
        (
            [b'{"n": 1}', b'{"n": 2}'],
            "# key: {format: string, as: key}  # would make a column of the key, which does not look like an id",
        ),
        (
            [b"two words", b"b"],
            "# key: {format: string, as: key}  # would make a column of the key, which does not look like an id",
        ),
    ],
)
def test_the_key_becomes_a_column_if_it_looks_like_an_id(keys: list[bytes | None], line: str) -> None:
    text = written([{"n": 7}, {"n": 8}], keys=keys)
    assert line in text.splitlines()
    uncommented = text.replace(f"\n{line}\n", f"\n{line.removeprefix('# ')}\n") if "as:" in line else text
    checked(uncommented)


def test_a_key_column_gets_a_free_name_and_headers_are_listed() -> None:
    text = written([{"KEY": 7}], keys=[b"k"], headers=(("source", b"x"), ("trace-id", None), ("a b", b"")))
    assert "key: {format: string, as: message_key}\n" in text
    line = "# headers: {source: string, trace-id: string}"
    assert line in text
    assert checked(text.replace(line, line.removeprefix("# "))).headers == ("source", "trace-id")


@pytest.mark.parametrize(
    ("kafka", "name"),
    [
        ("orders", "orders"),
        ("Sample.Data-Orders", "sample_data_orders"),
        ("userEvents", "user_events"),
        ("2026.orders", "topic_2026_orders"),
        ("___", "topic"),
        ("x" * 249, "x" * 63),
    ],
)
def test_a_topics_name_becomes_a_valid_name_of_the_spec(kafka: str, name: str) -> None:
    topic = checked(written([{"a": 1}], kafka))
    assert (topic.name, topic.kafka_name) == (name, kafka)


@pytest.mark.slow
def test_only_the_first_fields_of_very_many_become_columns() -> None:
    draft = spec.write("t", sampled([{f"f{number}": 1 for number in range(700)}]))
    assert (draft.columns, len(draft.left_out)) == (500, 200)
    wide = infer.columns([{"o": {f"f{number}": 1 for number in range(300)}}])[0]
    assert (str(wide.type), wide.remarks) == ("string", ("objects of 300 fields: kept as JSON text",))


def test_a_topic_without_values_is_an_error() -> None:
    for values in ([], [None, None]):
        with pytest.raises(SluiceError) as refused:
            written(values)
        assert refused.value.code == "no-messages"


NAMES = st.one_of(
    st.text(max_size=5), st.sampled_from(["select", "ID", "id", "null", "a: b", "#", "`", "_kafka_offset", "İ", "ı", "s", "ſ"])
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("2026-01-05T24:00:00Z"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.slow
@pytest.mark.parametrize("examples", few([20, 100], 20))
def test_the_spec_of_any_messages_has_no_problems(examples: int) -> None:
    @settings(max_examples=examples, derandomize=examples == 20, database=None)
    @example([{"op": []}], None)
    @given(st.lists(st.dictionaries(NAMES, VALUES, max_size=6), min_size=1, max_size=4), st.none() | st.binary(max_size=9))
    def fine(objects: list[dict[str, Any]], key: bytes | None) -> None:
        checked(written(objects, keys=[key]))
        keys = [json.dumps({name: fields[name] for name in list(fields)[:2]}).encode() for fields in objects]
        checked(written([envelope("c", after=fields) for fields in objects], keys=keys))

    fine()


# Real topics

NASTY: dict[str, Any] = {
    "id": 7, "userId": "User_7", "flag": True, "day": "2026-01-05", "created_at": 1_760_000_000_000, "no": "no", "null": 1, "12": "x",
    "a.b": 1, "a b": 2, "ID": 9, "_kafka_offset": 5, "ünï": "é", "select": 1, "x-y": [], "#": "#", "huge": 2**70, "none": None,
    "loc": {"building": "b", "floor": 3, "Floor": 4, "a.b": 1, "x-y": 2, "comment": "c", "deep": {"at": "2026-01-05T10:00"}},
    "tags": ["a", None], "matrix": [[1, 2], [3.5], []], "things": [{"k": 1, "w": "x"}, {"k": 2}, {}], "empty": {},
    "first": "0001-01-01T00:00:00",
}  # fmt: skip


def nasty(number: int) -> bytes:
    times = ("2026-01-05T10:00:00Z", "2026-01-05 10:00:00", "2026-01-05T10:00", "2026-01-05T10:00:00.123456789+17:30")
    varying = {
        "price": number if number % 2 else number + 0.5,
        "at": times[number % len(times)],
        "mixed": (number, "x", None, [number], {"a": number}, 1.5, False)[number % 7],
        "mixed_list": [number, "x"] if number % 3 else [{"a": [1]}],
        "text": times[0] if number % 2 else "soon",
        **({"maybe": number} if number % 5 else {}),
    }
    return json.dumps({**NASTY, **varying}).replace('"maybe": 3}', '"maybe": 1e400}').encode()


@pytest.fixture
def real(kafka: str) -> Iterator[Callable[..., str]]:
    """Makes a topic of Kafka with three partitions and these messages (value, key, partition), and returns its name."""
    admin = AdminClient({"bootstrap.servers": kafka})
    topics = []

    def make_topic(messages: Iterable[tuple[bytes | None, bytes | None, int]], name: str = "") -> str:
        name = name or f"Real.Topic-{uuid.uuid4().hex[:8]}"
        admin.create_topics([NewTopic(name, 3, 1)])[name].result()
        topics.append(name)
        producer = Producer({"bootstrap.servers": kafka})
        for value, key, partition in messages:
            producer.produce(name, value, key=key, partition=partition, headers=[("source", b"test")])
        assert producer.flush(30) == 0
        return name

    yield make_topic
    for future in admin.delete_topics(topics).values():
        future.exception()


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_the_sampled_messages_land_without_bad_rows(real: Callable[..., str], project: Project) -> None:
    name = real((nasty(number), f"k{number}".encode(), number % 3) for number in range(140))
    folder = project.lake / "specs" / uuid.uuid4().hex
    (folder / "specs").mkdir(parents=True)
    (folder / "specs" / "main.yaml").write_text(BASE.format(bootstrap=project.bootstrap))
    output = sluice("init", str(folder), "--topic", name)
    plan = make(folder / "specs")
    added = plan.topics[0].name
    text = (folder / "specs" / f"{added}.yaml").read_text()
    assert f"wrote {folder}/specs/{added}.yaml\n{added}: json, 26 columns, from 140 messages" in output
    assert "4 fields are left out" in output
    assert f"sluice preview {added}" in output
    assert "newest 140 of about 140 messages, from 20" in text
    assert "  maybe: string  # 28 of 140 messages lack it; a mix: whole number in 111, number out of range in 1\n" in text
    assert "  userId: string\n" in text
    assert "key: {format: string, as: key}\n" in text

    context = Context(plan, spark=lambda: project.spark)
    batch = list(batches(context, plan.pipelines[0]))
    assert [(loaded.rows, loaded.bad) for loaded in batch] == [(140, 0)]
    table = table_state.table(plan.catalogs[0], f"raw.{added}")
    assert table is not None
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["price"])
    assert rows[3]["loc"] == {
        "building": "b", "floor": 3, "x-y": 2, "comment": "c", "deep": {"at": datetime(2026, 1, 5, 10, tzinfo=timezone.utc)}
    }  # fmt: skip
    assert rows[3]["created_at"] == datetime.fromtimestamp(1_760_000_000, timezone.utc)
    assert rows[3]["matrix"] == [[1.0, 2.0], [3.5], []]
    assert (rows[3]["key"], rows[3]["huge"], rows[3]["mixed"]) == ("k3", str(2**70), "[3]")

    second_run = CliRunner().invoke(main, ["init", str(folder), "--topic", name])
    assert second_run.exit_code == 1
    assert f"name-taken: the specs have the topic `{added}` already" in second_run.output
    assert (folder / "specs" / f"{added}.yaml").read_text() == text


@pytest.mark.kafka
def test_a_sample_is_the_newest_of_each_partition(real: Callable[..., str], kafka: str, tmp_path: Path) -> None:
    messages = [(b'{"n": %d}' % number, None, 0) for number in range(50)]
    name = real([*messages, (b'{"n": 50}', None, 1)])
    cluster = Cluster(name="main", bootstrap=kafka, security=Security())
    sample = newest_messages.read_newest(cluster, SecretStore(), name, 10)
    assert [(message.partition, message.offset) for message in sample.messages] == [
        *((0, offset) for offset in range(41, 50)),
        (1, 0),
    ]
    assert (sample.offsets, sample.partitions) == (51, 3)
    assert sample.messages[0].headers == (("source", b"test"),)
    assert len(newest_messages.read_newest(cluster, SecretStore(), name, 1000).messages) == 51
    assert len(newest_messages.read_newest(cluster, SecretStore(), real([]), 10).messages) == 0


@pytest.mark.kafka
@pytest.mark.timed
def test_a_sample_stops_before_open_transactions_without_waiting(real: Callable[..., str], kafka: str) -> None:
    name = real([(b"1", None, 0)])
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(name, b"aborted", partition=0)
    producer.flush()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.produce(name, b"open", partition=0)
    producer.flush()
    began = time.monotonic()
    sample = newest_messages.read_newest(Cluster(name="main", bootstrap=kafka, security=Security()), SecretStore(), name, 100)
    assert [message.value for message in sample.messages] == [b"1"]
    assert time.monotonic() - began < bar(5)
    producer.abort_transaction()


@pytest.mark.kafka
def test_a_topic_into_an_empty_folder(
    real: Callable[..., str], kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = real([(b"text", b"\xff", 0)])
    output = sluice("init", "--topic", name, "--bootstrap", kafka, "--sample", "5")
    assert sorted(str(path) for path in Path().rglob("*") if path.is_file()) == [
        ".gitignore", "specs/main.yaml", f"specs/{spec.name_of(name)}.yaml"
    ]  # fmt: skip
    assert ": string, 1 column, from 1 message" in output
    assert "no problems" in sluice("check")
    assert make(Path("specs")).clusters[0].bootstrap == kafka


@pytest.mark.kafka
def test_a_topic_named_like_the_first_file_gets_another_file(real: Callable[..., str], kafka: str, tmp_path: Path) -> None:
    real([(b'{"n": 1}', None, 0)], "main")
    sluice("init", str(tmp_path), "--topic", "main", "--bootstrap", kafka)
    plan = make(tmp_path / "specs")
    assert ([pipeline.name for pipeline in plan.pipelines], plan.clusters[0].bootstrap) == (["main"], kafka)
    assert (tmp_path / "specs" / "topic_main.yaml").exists()


@pytest.mark.kafka
def test_refusals_write_nothing(kafka: str, tmp_path: Path) -> None:
    cases = [
        (["orders"], "no-cluster: the specs have no cluster to read from"),
        (["orderz", "--bootstrap", kafka], "no-topic: there is no topic `orderz` in the cluster"),
    ]
    for words, error in cases:
        done = CliRunner().invoke(main, ["init", str(tmp_path / "new"), "--topic", *words])
        assert (done.exit_code, error in done.output) == (1, True), done.output
        assert not (tmp_path / "new").exists()


def test_an_unreachable_kafka_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["init", str(tmp_path / "new"), "--topic", "orders", "--bootstrap", "127.0.0.1:1"])
    assert (done.exit_code, "kafka-unreachable: Kafka at 127.0.0.1:1 does not answer" in done.output) == (1, True), done.output
    assert not (tmp_path / "new").exists()
