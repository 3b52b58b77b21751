"""Specs as written: places, values, files of all sorts, hostile texts, references, JSON Schema, extensions, speed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st
from jsonschema import Draft202012Validator

from framework.base.components import components_in
from framework.base.errors import Problem, Where
from framework.documents.kinds.catalog import Catalog
from framework.documents.kinds.cluster import Cluster
from framework.documents.kinds.engine import Engine
from framework.documents.kinds.variables import Variables
from framework.documents.pipeline.written import Pipeline, Run
from framework.documents.topic.written import Topic
from framework.host.components import COMPONENTS
from framework.host.plans import load
from framework.language import Documents
from framework.language.bind import FAILED, bind
from framework.language.components import using
from framework.language.editor import json_schema
from framework.language.files import decode
from framework.language.kind import document_types
from framework.language.node import YamlNode
from framework.language.options import OptionGroup, StepDocument, StepName, option
from framework.language.reader import read_text
from framework.language.scalars import Duration, Size
from framework.plan.secret import SecretRef
from tests.support.full_spec import GOOD
from tests.support.time_limits import bar


def specs(folder: Path, text: str | bytes = GOOD, name: str = "a.yaml") -> Path:
    path = folder / "specs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / "specs"


def codes(written: Documents) -> list[str]:
    return [problem.code for problem in written.problems]


def read(text: str) -> tuple[list[YamlNode], list[Problem]]:
    problems: list[Problem] = []
    return read_text(text, "f.yaml", problems), problems


# values and places


def test_values_are_read_as_their_types(tmp_path: Path) -> None:
    written = load(specs(tmp_path), environ={})
    assert written.problems == ()
    [topic], [pipeline], [cluster] = written.of(Topic), written.of(Pipeline), written.of(Cluster)
    assert topic.doc == "1.10"
    assert topic.partitions == 6
    assert topic.key.as_ == "userid"
    assert list(topic.columns) == ["side", "price", "at"]
    assert topic.columns["side"].type == "string"
    assert topic.columns["price"].required
    assert topic.start_from == datetime(2026, 1, 5, 8, tzinfo=timezone.utc)
    assert topic.generate is not None
    assert topic.generate.rate == 10.0
    assert topic.generate.columns["price"].between == (1, 9.5)
    assert topic.generate.columns["at"].now is True
    assert pipeline.run == Run(60)
    assert pipeline.fresh_within == 900
    assert pipeline.into.partition_by == ("day(at)", "bucket(16, userid)")
    assert pipeline.into.format_version == 2
    assert [step.name for step in pipeline.steps] == ["filter", "flag", "derive"]
    assert pipeline.steps[0] == StepDocument("filter", "price > 0")
    assert pipeline.steps[1].value.rules[1].when == "price > 4000"
    assert pipeline.steps[2].value == {"twice": "price * 2"}
    assert cluster.bootstrap == "127.0.0.1:19092"
    assert cluster.security is not None
    assert cluster.security.password == SecretRef("kafka_secret")
    assert written.of(Engine)[0].conf == {"spark.sql.shuffle.partitions": "4"}


def test_every_value_keeps_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs(tmp_path)
    monkeypatch.chdir(tmp_path)
    written = load(Path("specs"), environ={})
    lines = GOOD.split("\n")

    def line_at(where: Where) -> str:
        assert where.file == "specs/a.yaml"
        return lines[where.line - 1][where.column - 1 :]

    [topic], [pipeline] = written.of(Topic), written.of(Pipeline)
    assert line_at(topic.place("partitions")) == "6"
    assert line_at(topic.key_place("partitions")) == "partitions: 6"
    assert line_at(topic.key_place("columns", "price")) == "price: {type: double, doc: USD, required: true}"
    assert line_at(topic.place("columns", "price", "type")) == "double, doc: USD, required: true}"
    assert line_at(topic.columns["price"].place("required")) == "true}"
    assert line_at(topic.columns["side"].place()) == "string"
    assert line_at(topic.place("columns", "nothing", "there")) == "side: string"
    assert line_at(topic.key.place("as")) == "userid}"
    assert line_at(pipeline.place("into", "partition_by", 1)) == '"bucket(16, userid)"]'
    assert line_at(pipeline.place("into", "partition_by", 9)) == '[day(at), "bucket(16, userid)"]'
    assert line_at(pipeline.into.place("catalog")) == "table: markets.flagged"
    assert line_at(pipeline.steps[0].place()) == "price > 0"
    assert line_at(pipeline.steps[1].key_place()) == "flag:"
    assert line_at(pipeline.steps[1].place("rules", 1, "label")) == "HIGH}"
    assert line_at(pipeline.steps[1].value.rules[1].place("label")) == "HIGH}"
    assert line_at(pipeline.steps[2].key_place("twice")) == "twice: price * 2}"
    assert isinstance(pipeline.run, Run)
    assert line_at(pipeline.run.place("every")) == "pipeline: flagged"  # a default stands where its map does
    assert [line_at(document.where) for document in written.documents][-1] == "flagged"


def test_documents_with_problems_keep_their_names(tmp_path: Path) -> None:
    written = load(specs(tmp_path, "topic: trades\nvalue: jsn\n"), environ={})
    assert [(document.kind, document.name) for document in written.documents] == [("topic", "trades")]
    (topic,) = written.of(Topic)
    assert topic.gaps == {"value"}
    written = load(specs(tmp_path, "topic: trades\nvalue: json\ncluster: main\nbootstrp: x\n"), environ={})
    assert (written.of(Topic)[0].gaps, len(written.problems)) == (frozenset(), 2)
    written = load(specs(tmp_path, "cluster: main\nbootstrp: x\n"), environ={})
    assert [(document.kind, document.value) for document in written.documents] == [("cluster", None)]


def test_an_environment_replaces_whole_documents(tmp_path: Path) -> None:
    folder = specs(tmp_path)
    specs(tmp_path, "variables: main\nvalues: {LARGE_TRADE: 9}\n", "environments/prod/deep/b.yaml")
    local, prod = load(folder, environ={}), load(folder, "prod", environ={})
    assert (local.problems, prod.problems) == ((), ())
    assert local.of(Variables)[0].values == {"LARGE_TRADE": "4000"}
    assert prod.of(Variables)[0].values == {"LARGE_TRADE": "9"}
    assert prod.of(Pipeline)[0].steps[1].value.rules[1].when == "price > 9"
    assert len(prod.documents) == len(local.documents)


def test_a_path_inside_the_project_may_be_absolute(tmp_path: Path) -> None:
    text = f"catalog: lake\ntype: sql\nuri: sqlite:///{tmp_path}/lake.db\nwarehouse: file://{tmp_path}/warehouse\n"
    written = load(specs(tmp_path, text), environ={})
    assert written.problems == ()
    options: Any = written.of(Catalog)[0].options
    assert options.warehouse == f"file://{tmp_path}/warehouse"
    assert (
        codes(load(specs(tmp_path, text.replace(str(tmp_path), str(tmp_path) + "x")), environ={})) == ["path-leaves-project"] * 2
    )


# references


def test_a_variable_is_text_whatever_it_holds(tmp_path: Path) -> None:
    folder = specs(tmp_path, "topic: trades\nvalue: string\ndoc: ${var:D}\npartitions: ${var:N}\n")
    for text in ["null", "no", "", "a: b", "{x", "&a *a", "'", "\n---\ntopic: b\n", "${var:D}", "!!python/object:x"]:
        written = load(folder, environ={"SLUICE_VAR_D": text, "SLUICE_VAR_N": "3"})
        assert written.problems == ()
        assert written.of(Topic)[0].doc == text
        assert written.of(Topic)[0].partitions == 3


SECRETS = [
    "hunter2", "[hunter2]", "{a: hunter2}", "'hunter2' x", "hunter2: x", "&a [hunter2, *b]", "${var:P}", "!hunter2",
    "*hunter2", "&hunter2", "@hunter2", "> hunter2", "% hunter2", "${hunter2}", "x${hunter2", "hun(ter2, hunter2)",
    "a[hunter2]", "'hunter2", '"\\hunter2"', "- hunter2", "hunter2 }", "~",
]  # fmt: skip


@pytest.mark.parametrize("value", SECRETS)
@pytest.mark.parametrize(
    "template",
    [
        "security: {{protocol: SASL_SSL, password: {}}}",
        "password: {}",
        "security:\n  password: {}",
        "security:\n  password:\n    {}",
    ],
)
def test_a_secret_is_in_no_problem(tmp_path: Path, value: str, template: str) -> None:
    folder = specs(tmp_path, f"cluster: main\nbootstrap: a:1\n{template.format(value)}\n")
    written = load(folder, environ={"SLUICE_VAR_P": "hunter2"})
    assert written.problems
    assert "hunter2" not in "\n".join(map(str, written.problems))


def test_a_password_in_an_address_is_not_shown(tmp_path: Path) -> None:
    cluster = "cluster: a\nbootstrap: me:hunter2@kafka:9092\n"
    text = f"{cluster}---\ncatalog: b\ntype: sql\nuri: http://a:hunter2@b\nwarehouse: x"
    written = load(specs(tmp_path, text), environ={})
    assert codes(written) == ["bad-address", "literal-secret"]
    assert "hunter2" not in "\n".join(map(str, written.problems))


# files


def test_a_missing_folder_is_a_problem(tmp_path: Path) -> None:
    assert codes(load(tmp_path / "specs")) == ["no-folder"]
    (tmp_path / "file").touch()
    assert codes(load(tmp_path / "file")) == ["no-folder"]
    (tmp_path / "empty").mkdir()
    assert codes(load(tmp_path / "empty")) == ["no-specs"]


def test_a_path_that_is_not_a_file_is_not_opened(tmp_path: Path) -> None:
    folder = specs(tmp_path)
    os.mkfifo(folder / "fifo.yaml")
    (folder / "gone.yaml").symlink_to(tmp_path / "nowhere")
    (folder / "folder.yaml").mkdir()
    specs(tmp_path, "topic: b\nvalue: string\n", "folder.yaml/b.yaml")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    written = load(folder, environ={})
    assert [(Path(problem.where.file).name, problem.code) for problem in written.problems] == [
        ("fifo.yaml", "not-a-file"),
        ("gone.yaml", "unreadable-file"),
    ]
    assert len(written.of(Topic)) == 2


def test_a_file_over_one_mebibyte_is_refused(tmp_path: Path) -> None:
    comment = b"#" * ((1 << 20) - len(GOOD.encode()) - 1) + b"\n"
    assert load(specs(tmp_path, comment + GOOD.encode()), environ={}).problems == ()
    assert codes(load(specs(tmp_path, b"#" + comment + GOOD.encode()), environ={})) == ["file-too-large"]


@pytest.mark.parametrize(
    ("data", "code", "place"),
    [
        (GOOD.encode("utf-16"), "not-utf8", (1, 1)),
        (GOOD.encode("utf-32"), "not-utf8", (1, 1)),
        (b"topic: trades\ndoc: caf\xe9\n", "not-utf8", (2, 9)),
        (b"topic: trades\ndoc: a\x00b\n", "bad-character", (2, 7)),
        (b"topic: trades\ndoc: a\x1bb\n", "bad-character", (2, 7)),
        ("topic: trades\ndoc: a\u2028b\n".encode(), "bad-character", (2, 7)),
        ("topic: trades\ndoc: \u202etxt\n".encode(), "bad-character", (2, 6)),
        ("topic: trades\ndoc:\u00a0x\n".encode(), "bad-character", (2, 5)),
        ("topic: trades\n\u00a0doc: x\n".encode(), "bad-character", (2, 1)),
        (b"topic: trades\n\tdoc: x\n", "tab", (2, 1)),
    ],
)
def test_bad_characters_are_problems_at_their_place(data: bytes, code: str, place: tuple[int, int]) -> None:
    problems: list[Problem] = []
    assert decode(data, "f.yaml", problems) is None
    assert [(problem.code, (problem.where.line, problem.where.column)) for problem in problems] == [(code, place)]
    assert problems[0].hint


def test_a_byte_order_mark_and_other_line_ends_are_accepted(tmp_path: Path) -> None:
    written = load(specs(tmp_path, b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()), environ={})
    assert written.problems == ()
    assert written.of(Pipeline)[0].place("bad_rows").line == GOOD.split("\n").index("bad_rows: stop") + 1


def test_characters_beyond_ascii_keep_places_right() -> None:
    [node], problems = read("é: {ü: [日本, f(a, b), x]}\n")
    assert node.place("é", "ü", 2) == Where("f.yaml", 1, 22)
    assert [(problem.code, problem.where.column) for problem in problems] == [("unquoted-comma", 13)]


# hostile texts


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "a: &a [x,x,x,x]\n" + "".join(f"a{i}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(20)),
        "a: &a x\nb: [" + "*a," * 300_000 + "]",
        "".join(f"k{i}: &a{i} v\n" for i in range(55_000)),
        "x: [" + "f(a, b)," * 100_000 + "]",
        "x: [" + "a," * 500_000 + "]",
        "a: " + "'" * 999_999,
        "a: &a [" + "*a" * 100,
        "---\n" * 250_000,
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.slow
@pytest.mark.timed
def test_hostile_texts_are_read_fast(text: str) -> None:
    begun = time.process_time()
    read(text)
    assert time.process_time() - begun < bar(1.5)


def test_too_many_values_are_refused() -> None:
    assert [problem.code for problem in read("x: [" + "a," * 100_001 + "]")[1]] == ["too-many-values"]
    assert [problem.code for problem in read("---\nx: a\n" * 10_001)[1]] == ["too-many-values"]


def test_depth_counts_through_anchors() -> None:
    half = "[" * 40 + "x" + "]" * 40
    assert [problem.code for problem in read(f"a: &a {half}\nb: *a\n")[1]] == []
    assert [problem.code for problem in read(f"a: &a {half}\nb: {half.replace('x', '*a')}\n")[1]] == ["too-deep"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edits=st.lists(
        st.tuples(
            st.integers(0, len(GOOD)),
            st.integers(0, 12),
            st.sampled_from([*"[]{},:'\"-#&*!|>%@`~?\\$ \n", "", "null", "\n---\n", "0"]),
        ),
        min_size=1,
        max_size=3,
    )
)
@pytest.mark.slow
def test_no_text_raises_and_every_failure_has_a_problem(tmp_path: Path, edits: list[tuple[int, int, str]]) -> None:
    text = GOOD
    for start, length, new in edits:
        text = text[:start] + new + text[start + length :]
    written = load(specs(tmp_path, text), environ={})
    assert all(problem.hint and problem.message and problem.where.line for problem in written.problems)
    for document in written.documents:
        end = next(
            (
                candidate.node.where.line
                for candidate in written.documents
                if candidate.node.where.line > document.node.where.line
            ),
            10**9,
        )
        inside = [problem for problem in written.problems if document.node.where.line <= problem.where.line <= end]
        assert document.value is not None or inside or any(problem.code == "reference-cycle" for problem in written.problems)


# options of every type


@dataclass(frozen=True)
class Inner(OptionGroup):
    size: Size = option("A size.", at_least="1KB", at_most="1GB")


@dataclass(frozen=True)
class Everything(OptionGroup):
    words: list[str] = option("Words.", default=())
    pair: tuple[int, int] = option("Two.", default=(1, 2))
    ratio: float = option("A number.", default=0.5, at_least=0, at_most=1)
    either: str | Inner = option("Either.", default="x")
    table: dict[str, tuple[Inner, ...]] = option("A table.", default={})
    mode: Literal["on", 1, True] | None = option("A mode.", default=None, later=("auto",))
    wait: Duration | None = option("A time.", default=None, at_least="1m")


def bound(text: str) -> tuple[object, list[str]]:
    [node], problems = read(text)
    value = bind(Everything, node, Path("/project"), problems)
    return value, sorted(problem.code for problem in problems)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("words: [no, 012, 1.10, 12:30:45]", Everything(words=["no", "012", "1.10", "12:30:45"])),
        ("pair: [3, -4]", Everything(pair=(3, -4))),
        ("ratio: 1", Everything(ratio=1)),
        ("ratio: 1e-3", Everything(ratio=0.001)),
        ("either: 5", Everything(either="5")),
        ("either: {size: 2KB}", Everything(either=Inner(2048))),
        ("table: {a: [{size: 1MB}], b: []}", Everything(table={"a": (Inner(1 << 20),), "b": ()})),
        ("mode: on", Everything(mode="on")),
        ("mode: 1", Everything(mode=1)),
        ("mode: true", Everything(mode=True)),
        ("wait: 60s", Everything(wait=60)),
        ("wait: ~\nwords: null\nratio:", Everything()),
    ],
)
def test_every_type_is_read(text: str, expected: Everything) -> None:
    value, codes = bound(text)
    assert codes == []
    assert value == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("words: [[a]]", "wrong-type"),
        ("words: [~]", "missing-value"),
        ("pair: [1]", "wrong-count"),
        ("pair: [1, 2, 3]", "wrong-count"),
        ("pair: [1, 2.5]", "wrong-type"),
        ("ratio: 1.5", "out-of-range"),
        ("ratio: .5", "wrong-type"),
        ("ratio: nan", "wrong-type"),
        ("either: [a]", "wrong-type"),
        ("either: {size: 512B}", "out-of-range"),
        ("either: {size: 2GB}", "out-of-range"),
        ("either: {size: 1.5MB}", "bad-size"),
        ("either: {}", "missing-key"),
        ("table: {a: [x]}", "wrong-type"),
        ("mode: off", "unknown-value"),
        ("mode: auto", "not-in-this-version"),
        ("wait: 59s", "out-of-range"),
        ("wait: 0s", "bad-duration"),
    ],
)
def test_every_type_refuses_wrong_values(text: str, code: str) -> None:
    value, codes = bound(text)
    assert codes == [code]
    name = text.partition(":")[0]
    # A wrong option that stands alone gets its default, so that the rest of the document is checked; the problem is reported.
    assert value is FAILED or (name in ("ratio", "mode", "wait") and getattr(value, name) == getattr(Everything(), name))


# extensions


@dataclass(frozen=True)
class Chain(OptionGroup):
    steps: tuple[Annotated[StepDocument, StepName("steps", "step", later=("join", "sort"))], ...] = option("Steps.")


def test_an_extension_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "made_up_steps"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_shared.py").write_text("raise AssertionError('no extension')")
    (package / "limit.py").write_text('"""Keeps some rows."""\nWritten = int\nresolve = None\n')
    (package / "sort.py").write_text('"""Sorts."""\nWritten = list[str]\nresolve = None\n')
    monkeypatch.syspath_prepend(tmp_path)

    with using(replace(COMPONENTS, steps=components_in("made_up_steps"))):
        bind_made_up_steps(tmp_path)


def bind_made_up_steps(tmp_path: Path) -> None:
    [node], problems = read("steps:\n  - limit: 5\n  - sort: [a]\n")
    value = bind(Chain, node, tmp_path, problems)
    assert problems == []
    assert value.steps == (StepDocument("limit", 5), StepDocument("sort", ["a"]))
    [node], problems = read("steps:\n  - limt: 5\n  - limit: five\n  - join: {}\n")
    bind(Chain, node, tmp_path, problems)
    assert [problem.code for problem in problems] == ["unknown-step", "wrong-type", "not-in-this-version"]
    described = json_schema(Chain)["properties"]["steps"]["items"]["properties"]
    assert described["limit"]["type"] == ["integer", "string"] and described["limit"]["description"] == "Keeps some rows."


# JSON Schema


@pytest.mark.parametrize("kind", document_types())
@pytest.mark.slow
def test_each_schema_is_valid(kind: str) -> None:
    Draft202012Validator.check_schema(json_schema(document_types()[kind]))


def test_schemas_accept_right_specs_and_refuse_wrong_ones() -> None:
    validators = {kind: Draft202012Validator(json_schema(cls)) for kind, cls in document_types().items()}
    for document in yaml.load_all(GOOD, Loader=yaml.BaseLoader):
        kind = next(iter(document))
        errors = list(validators[kind].iter_errors({**document, "nothing": 1}))
        assert any("nothing" in error.message for error in errors)
    topic = {"topic": "a", "value": "string", "partitions": 6}
    assert validators["topic"].is_valid(topic)
    assert validators["topic"].is_valid({**topic, "partitions": "${var:N}"})
    assert not validators["topic"].is_valid({**topic, "partitions": "six"})
    assert not validators["engine"].is_valid({"engine": "spark", "remote": "sc://host"})
    security = {"protocol": "SASL_SSL", "password": "${secret:p}"}
    assert validators["cluster"].is_valid({"cluster": "a", "bootstrap": "a:1", "security": security})
    assert not validators["cluster"].is_valid({"cluster": "a", "bootstrap": "a:1", "security": {**security, "password": "x"}})


# the whole


@pytest.mark.slow
@pytest.mark.timed
def test_loading_specs_is_fast_and_imports_neither_spark_nor_dagster() -> None:
    script = (
        "import sys, time; begun = time.process_time(); import framework.language; took = time.process_time() - begun\n"
        "heavy = ('pyspark', 'dagster', 'pyiceberg', 'sqlglot', 'jsonschema')\n"
        "print(took, [name for name in sys.modules if name.split('.')[0] in heavy])"
    )
    output = min(subprocess.check_output([sys.executable, "-c", script], text=True) for _ in range(3))
    took, _, loaded = output.partition(" ")
    assert loaded.strip() == "[]"
    assert float(took) < bar(0.15)


@pytest.mark.slow
@pytest.mark.timed
def test_a_thousand_files_are_read_fast(tmp_path: Path) -> None:
    parts = GOOD.split("---\n")
    for number in range(500):
        specs(tmp_path, parts[5].replace("topic: stock_trades", f"topic: t{number}"), f"t{number}.yaml")
        specs(tmp_path, parts[6].replace("pipeline: flagged", f"pipeline: p{number}"), f"p{number}.yaml")
    folder = specs(tmp_path, parts[4])
    begun = time.process_time()
    written = load(folder, environ={})
    took = time.process_time() - begun
    assert written.problems == ()
    assert len(written.documents) == 1001
    assert took < bar(2)


def test_a_link_is_followed_only_inside_the_project(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (elsewhere / "more").mkdir(parents=True)
    (elsewhere / "a.yaml").write_text("hosts: {token: sesame}\n")
    (elsewhere / "more" / "b.yaml").write_text("users: {token: sesame}\n")
    (project / "shared").mkdir(parents=True)
    (project / "shared" / "c.yaml").write_text("topic: c\nvalue: string\n")
    folder = project / "specs"
    (folder / "environments").mkdir(parents=True)
    (folder / "a.yaml").symlink_to("../../elsewhere/a.yaml")
    (folder / "more").symlink_to("../../elsewhere/more")
    (folder / "environments" / "prod").symlink_to("../../../elsewhere/more")
    (folder / "shared").symlink_to("../shared")
    written = load(folder, "prod", environ={})
    assert codes(written) == ["path-leaves-project"] * 3
    assert not any(word in str(problem) for problem in written.problems for word in ("hosts", "users", "sesame"))
    assert [document.name for document in written.documents] == ["c"]
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "specs").symlink_to(project / "shared")
    assert codes(load(tmp_path / "linked" / "specs", environ={})) == []  # the caller may name a folder behind a link
