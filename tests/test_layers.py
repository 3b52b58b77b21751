"""Imports go one way, judged by the source of every file; and a plan is made without Spark, Dagster and Kafka."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What each part of framework/ may import besides itself: a part, or a module of it. Those above stand on those below.
ENGINE = (
    *("errors", "catalogs", "amounts", "home", "iso_times", "patience", "spelling", "type_text", "types", "model", "sql"),
    "plan",
)
_BY_SCHEMA = ("formats", "schemas", "registry")
MAY: dict[str, tuple[str, ...]] = {
    "sluice": (
        *("assets", "cli", "errors", "home", "types", "model", "sql.expressions", "sql.quote", "engine", "plan", "spec", "init"),
        "__version__",
    ),
    # `sluice.steps` for own steps, `cli` for what spark-submit runs
    "pipelines": ("sluice.dagster", "sluice.steps", "cli", "assets.loading"),
    "cli": (
        "iso_times",
        *("patience", "processes", "errors", "amounts", "home", "types", "spelling", "java", "jars", "model", "sql", "spec", "plan"),
        *("engine", "generate", "hints", "services", "init", "formats", "encoding", "reference", "doctor", "serve", "ui", "clean", "jvm"),
        *("preview_text", "components", "secrets", "preflight", "access", "targets", "lineage", "__version__", "hosts"),
    ),
    "assets": (
        *("errors", "amounts", "iso_times"),
        *("hints", "home", "processes", "model", "plan", "engine", "spec", "spelling", "preview_text"),
    ),
    "clean": ("errors", "catalogs", "home", "jars", "jvm", "model", "plan", "engine", "services", "ui"),
    "lineage": ("model", "plan.lineage"),
    "preview_text": ("amounts", "hints", "model", "engine.trials"),
    "init": (
        *("errors", "catalogs", "patience", "types", "model", "registry", "formats", "encoding", "spec", "plan", "engine.kafka"),
        "services",
    ),
    "generate": ("errors", "patience", "types", "model", "registry", "formats", "encoding", "plan", "engine.kafka"),
    "engine.class_archive": ("ivy", "java", "patience", "catalogs", "jars", "jvm", "plan", "engine.spark", "engine.trials"),
    "engine.trials": (
        *(*ENGINE, "engine.observe", "engine.publish", "engine.context", "engine.source", "engine.iceberg", "engine.rows"),
        *("engine.spark", "engine.rules"),
    ),
    "engine.observe": (
        *(*ENGINE, "engine.follow", "engine.maintain", "engine.rebuild", "engine.context", "engine.feed", "engine.source", "engine.kafka"),
        *("engine.iceberg", "engine.rules", "secret_digest"),
    ),
    "engine.rebuild": (
        *(*ENGINE, "engine.publish", "engine.drop", "engine.openlineage", "engine.context", "engine.feed", "engine.source", "engine.kafka"),
        *("engine.iceberg", "engine.spark", "engine.rules"),
    ),
    "engine.loop": (
        *(*ENGINE, "engine.follow", "engine.maintain", "engine.observe", "engine.publish", "engine.openlineage", "engine.context"),
        *("engine.outage", "engine.kafka", "engine.spark", "engine.rules"),
    ),
    "engine.undo": (
        *(*ENGINE, "engine.publish", "engine.staging", "engine.openlineage", "engine.context", "engine.messages", "engine.kafka"),
        "engine.iceberg",
        *("engine.rows", "engine.spark", "engine.rules"),
    ),
    "engine.forget": (
        *(*ENGINE, "engine.export", "engine.follow", "engine.maintain", "engine.publish", "engine.context", "engine.iceberg"),
        *("engine.rows", "engine.spark", "engine.rules"),
    ),
    "engine.maintain": (*ENGINE, "engine.publish", "engine.context", "engine.iceberg", "engine.spark", "engine.rules"),
    "engine.publish": (
        *(*ENGINE, "engine.staging", "engine.context", "engine.feed", "engine.source", "engine.messages", "engine.iceberg"),
        *("engine.rows", "engine.spark", "engine.rules"),
    ),
    "kinds": ("errors", "components", "hosts", "notices", "spelling", "types", "catalogs", "model", "sql.settings", "spec", "plan"),
    "notices": ("errors", "amounts", "iso_times", "patience", "secrets", "model", "plan.draft", "spec.options", "spec.scalars"),
    "followers": (*ENGINE, "spec.options", "spec.scalars", "spec.kinds", "engine.follow", "engine.feed", "engine.iceberg", *_BY_SCHEMA),
    "writes": (*ENGINE, "spec.kinds", "engine.feed", "engine.staging", "engine.rows", "engine.spark"),
    "catalogs": (
        *("aws_policy", "components", "errors", "buckets", "channel", "hosts", "patience", "secrets", "model"),
        *("spec.options", "spec.scalars"),
        "spec.storage",
    ),
    "engine.staging": (*ENGINE, "engine.context", "engine.source", "engine.iceberg", "engine.rows", "engine.spark", "engine.rules"),
    "engine.context": (
        *(*ENGINE, "secrets", "engine.feed", "engine.source", "engine.messages", "engine.kafka", "engine.iceberg", "engine.spark"),
        "engine.rules",
    ),
    "engine.follow": (
        *(*ENGINE, "components", "engine.context", "engine.feed", "engine.outage", "engine.kafka", "engine.iceberg", "engine.spark"),
        "engine.rules",
    ),
    "engine.openlineage": ("errors", "model", "plan", "engine.iceberg"),
    "engine.outage": ("errors", "patience", "model", "engine.kafka", "engine.spark"),
    "engine.unpublish": (*ENGINE, "engine.context", "engine.iceberg", "engine.spark", "engine.rules"),
    "engine.feed": (*ENGINE, "engine.source", "engine.iceberg", "engine.spark", "engine.rules"),
    "engine.source": (*ENGINE, "engine.rules"),
    "engine.drop": (*ENGINE, "engine.kafka", "engine.iceberg", "engine.spark", "engine.rules"),
    "engine.export": (*ENGINE, "aws_policy", "components", "buckets", "engine.query", "engine.iceberg"),
    "engine.query": (*ENGINE, "engine.iceberg", "engine.spark", "java", "jvm", "secrets"),
    "engine.messages": (*ENGINE, "engine.kafka", "formats", "encoding", "schemas", "registry"),
    "engine.iceberg": (*ENGINE, "engine.spark", "engine.rules"),
    "engine.kafka": (*ENGINE, "engine.rules", "secrets", "services.process", "hosts"),
    "engine.spark": (*ENGINE, "ivy", "java", "jars", "jvm", "processes", "encoding", "engine.rules", "secrets"),
    "engine.rows": ("model", "sql.masks", "sql.quote", "sql.standard"),
    "engine.rules": ("errors", "home", "iso_times", "model", "sql.quote"),
    "reference": ("access", "errors", "hints", "type_text", "types", "model", "sql", "spec", "plan.rows"),
    "steps": (
        *("errors", "spelling", "type_text", "types", "model", "sql", "plan.rows", "plan.landing", "plan.text"),
        *("spec.options", "spec.scalars"),
    ),
    "plan": (
        *("components", "errors", "amounts", "spelling", "type_text", "types", "model", "sql", "spec", "formats", "encoding"),
        *("schemas", "registry", "iso_times"),
    ),
    "formats": ("components", "iso_times", "types", "model", "sql.quote", "encoding", "schemas"),
    "encoding": ("iso_times", "types", "model", "sql.quote", "sql.settings", "schemas"),
    "schemas": ("types", "model"),
    "registry": ("formats", "errors", "channel", "home", "patience", "model", "secrets"),
    "channel": ("hosts", "patience"),
    "aws_policy": ("model",),
    "access": ("aws_policy", "catalogs", "components", "errors", "model", "secrets", "spec.storage", "sql", "engine.kafka.acls"),
    "targets": (
        *("access", "aws_policy", "catalogs", "components", "errors", "formats", "hosts", "jars", "model", "types"),
        *("secrets", "engine.kafka.acls", "sql.quote", "sql.standard"),
    ),
    "buckets": ("aws_policy", "patience", "model", "secrets"),
    "secrets": ("errors", "home", "model"),
    "secret_digest": ("errors", "jar_cache", "model", "secrets"),
    "spec": ("components", "iso_times", "errors", "hosts", "spelling", "model.secret", "model.storage"),
    "preflight": (
        *("errors", "amounts", "patience", "catalogs", "doctor", "ivy", "jars", "notices", "model", "engine.export", "engine.iceberg"),
        "engine.kafka",
    ),
    "doctor": ("processes", "errors", "home", "ivy", "java", "jars", "jvm", "services"),
    "serve": ("errors", "patience", "spelling", "buckets", "catalogs", "model", "engine.iceberg", "engine.rules"),
    "ui": ("patience", "processes", "errors", "home", "services"),
    "services": ("patience", "processes", "errors", "hints", "home", "ivy", "java", "jars", "jvm"),
    "sql": ("model", "errors", "type_text", "types", "spelling"),
    "jars": ("errors", "home", "ivy", "jar_cache"),
    "ivy": ("errors", "java", "patience"),
    "jvm": ("errors", "home", "ivy", "java", "jars", "patience"),
    "java": ("errors", "hints", "patience"),
    "model": ("errors", "types"),
    "type_text": ("spelling", "types"),
    "types": (),
    "processes": ("patience",),
    "iso_times": (),
    "patience": (), "components": (), "jar_cache": (), "spelling": (), "hosts": (), "hints": (), "amounts": (), "errors": (),
    "home": ("errors",),
}  # fmt: skip
# Which parts may import each third party.
ONLY: dict[str, tuple[str, ...]] = {
    "dagster": ("assets", "pipelines", "sluice"),
    "dagster_pyspark": ("assets",),
    "pyspark": ("engine", "writes", "assets", "steps", "formats", "followers"),
    "py4j": ("engine", "assets"),
    "pyiceberg": ("engine", "catalogs", "assets", "followers"),
    "deltalake": ("followers",),
    "confluent_kafka": ("engine", "generate", "services"),
    "requests": ("channel", "notices"),
    "google": ("formats",),
    "grpc_tools": ("formats",),
    "duckdb": ("engine",),
    "boto3": ("buckets",),
    "botocore": ("buckets",),
    "yaml": ("spec",),
    "jsonschema": ("formats",),
    "starlette": ("serve",),
    "uvicorn": ("serve",),
    "click": ("cli",),
    "rich": ("cli", "preview_text"),
}
# Where a third party is imported inside functions only, so that importing the part does not load it.
LAZILY = {
    *(
        ("pyspark", "steps"),
        ("pyspark", "followers"),
        ("pyspark", "writes"),
        ("pyspark", "formats"),
        ("pyiceberg", "engine.observe"),
        ("pyiceberg", "catalogs"),
        ("pyiceberg", "followers"),
        ("deltalake", "followers"),
        ("requests", "channel"),
        ("requests", "notices"),
        ("jsonschema", "formats"),
    ),
    *(("google", "formats"), ("grpc_tools", "formats")),
}
HEAVY = (
    *("pyspark", "py4j", "dagster", "pyiceberg", "pyarrow", "confluent_kafka", "duckdb", "deltalake", "boto3", "botocore"),
    *("framework.core.context.context", "framework.core.iceberg.lake", "framework.core.spark.session", "framework.host.assets"),
)


@dataclass(frozen=True)
class Import:
    line: int
    name: str
    runs: bool  # when the module is imported; not inside a function, not for type checkers alone


def imports(source: str) -> Iterator[Import]:
    yield from _within(ast.parse(source), True)


def _within(node: ast.AST, runs: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(node.lineno, alias.name, runs) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = f"{'.' * node.level}{node.module or ''}"
        yield from (Import(node.lineno, f"{module}.{alias.name}", runs) for alias in node.names)
    elif not isinstance(node, ast.expr):  # in which nothing is imported
        for inner in ast.iter_child_nodes(node):
            yield from _within(inner, runs and not _is_later(node))


def _is_later(node: ast.AST) -> bool:
    typing_only = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return typing_only or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def judged(part: str, source: str) -> Iterator[str]:
    """What is wrong with the imports of a file of this part, with line numbers."""
    for found in imports(source):
        first = found.name.split(".")[0]
        if first == "":
            yield f"{found.line}: write the whole name of {found.name}"
        elif first in ("framework", "pipelines", "sluice"):
            inside = found.name.removeprefix("framework.")
            if not any(f"{inside}.".startswith(f"{allowed}.") for allowed in (part, *MAY[part])):
                yield f"{found.line}: {part} imports {found.name}"
        elif first in ONLY:
            if not any(f"{part}.".startswith(f"{allowed}.") for allowed in ONLY[first]):
                yield f"{found.line}: {part} imports {first}"
            elif found.runs and (first, part) in LAZILY:
                yield f"{found.line}: {part} imports {first} outside of a function"


def files() -> Iterator[tuple[str, Path]]:
    """Every file with the part that it belongs to."""
    for path in sorted((ROOT / "framework").rglob("*.py")):
        first, *inside = path.relative_to(ROOT / "framework").parts
        rooms = [first, inside[0]] if first == "engine" else [first]
        if rooms[-1] != "__init__.py":
            yield ".".join(rooms).removesuffix(".py"), path
    for above in ("pipelines", "sluice"):
        yield from ((above, path) for path in sorted((ROOT / above).rglob("*.py")))


def by_position(node: ast.ClassDef) -> bool:
    """Whether a dataclass of over four fields takes more than three by position. Options of a spec are bound by their names."""
    decorators = [ast.unparse(each) for each in node.decorator_list]
    if not any("dataclass" in each and "kw_only=True" not in each for each in decorators) or _is_bound(node):
        return False
    given = (each for each in node.body if isinstance(each, ast.AnnAssign) and "init=False" not in ast.unparse(each))
    fields = [kind for each in given if not (kind := ast.unparse(each.annotation)).startswith("ClassVar")]
    return len(fields) > 4 and "KW_ONLY" not in fields[:4]


def changeable(node: ast.ClassDef) -> list[str]:
    """The fields of a frozen dataclass that can be changed all the same. Options of a spec are as YAML has them."""
    if not any("frozen=True" in ast.unparse(each) for each in node.decorator_list) or _is_bound(node):
        return []
    fields = {ast.unparse(each.target): ast.unparse(each.annotation) for each in node.body if isinstance(each, ast.AnnAssign)}
    return [name for name, kind in fields.items() if re.search(r"\b(list|dict|set|Counter|defaultdict)\[", kind)]


def _is_bound(node: ast.ClassDef) -> bool:
    return bool({ast.unparse(each) for each in node.bases} & {"Bound", "Kind"})


@pytest.mark.slow  # and `make check` has it
def test_dataclasses_of_many_fields_are_by_name_and_frozen_ones_do_not_change() -> None:
    classes = {
        f"{'.'.join(path.relative_to(ROOT / 'framework').with_suffix('').parts)}.{node.name}": node
        for path in sorted((ROOT / "framework").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    assert {name for name, node in classes.items() if by_position(node)} == set()
    assert {name: fields for name, node in classes.items() if (fields := changeable(node))} == {}


def test_every_part_has_its_rule_and_every_rule_its_part() -> None:
    assert {part for part, _ in files()} == set(MAY)


@pytest.mark.slow  # and `make check` has it
def test_imports_go_one_way() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{said}" for part, path in files() for said in judged(part, path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


@pytest.mark.slow
def test_no_module_needs_itself_to_be_imported() -> None:
    named = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for _, path in files()}
    graph: dict[str, set[str]] = {}
    for module, path in named.items():
        needed = {found.name for found in imports(path.read_text(encoding="utf-8")) if found.runs}
        graph[module] = {name if name in named else name.rpartition(".")[0] for name in needed} & set(named) - {module}
    TopologicalSorter(graph).prepare()  # a cycle is an error that shows it


@pytest.mark.parametrize(
    ("part", "source", "says"),
    [
        ("spec", "from framework.plan import Plan", "1: spec imports framework.plan.Plan"),
        ("spec", "def f():\n    from framework import engine", "2: spec imports framework.core"),
        ("steps", "from framework.core.rows import frame", "1: steps imports framework.core.rows.frame"),
        ("formats", "import framework.documents.make", "1: formats imports framework.documents.make"),
        ("sql", "from framework import jars", "1: sql imports framework.machine.java.jars"),
        ("engine.publish", "from framework.host.cli import main", "1: engine.publish imports framework.host.cli.main"),
        ("engine.publish", "from framework.host.assets import keys", "1: engine.publish imports framework.host.assets.keys"),
        ("generate", "from framework.core.kafka_other import x", "1: generate imports framework.core.kafka_other.x"),
        ("engine.rules", "from framework.core.iceberg import lake", "1: engine.rules imports framework.core.iceberg.lake"),
        ("engine.publish", "from dagster import asset", "1: engine.publish imports dagster"),
        ("plan", "if TYPE_CHECKING:\n    from pyspark.sql import DataFrame", "2: plan imports pyspark"),
        ("steps", "from pyspark.sql import functions", "1: steps imports pyspark outside of a function"),
        ("plan", "from . import model", "1: write the whole name of ..model"),
        ("pipelines", "from framework.core import loop", "1: pipelines imports framework.core.run.run"),
        ("pipelines", "from framework.documents.rows import Rows", "1: pipelines imports framework.documents.rows.Rows"),
        ("steps", "def f():\n    from pyspark.sql import functions", None),
        ("engine.publish", "from framework.plan import Pipeline", None),
    ],
)
def test_an_import_upwards_is_named(part: str, source: str, says: str | None) -> None:
    assert list(judged(part, source)) == ([says] if says else [])


@pytest.mark.parametrize(
    "work",
    [
        "from pathlib import Path; from framework.documents.make import make; assert make(Path('specs')).pipelines",
        "from framework.host.cli import main; main(['plan', '--no-look'], standalone_mode=False)",
    ],
)
@pytest.mark.slow
def test_a_plan_is_made_without_what_runs_it(work: str) -> None:
    ask = f"import sys; {work}; print('loaded:', *sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", ask], check=True, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "loaded:"
