"""Imports go down one list of layers; only `host` knows where components are; and a plan is made without Spark, Dagster and Kafka."""

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

from tests.support.heavy_imports import HEAVY

ROOT = Path(__file__).resolve().parents[2]
FRAMEWORK = ROOT / "framework"

# The folders of framework/, each of which imports only those that stand before it.
LAYERS = (
    "base",
    "machine",
    "plan",
    "sql",
    "language",
    "systems",
    "messages",
    "core",
    "documents",
    "features",
    "operations",
    "host",
)
UNRELATED = {("documents", "core")}  # neighbours in the list that do not know each other

# Which folders or files may import each third party.
ONLY: dict[str, tuple[str, ...]] = {
    "dagster": ("host/assets", "pipelines", "sluice"),
    "dagster_pyspark": ("host/assets",),
    "pyspark": (
        *("core", "documents/steps", "documents/rows.py", "features/followers", "features/writes", "operations/access/targets"),
        *("operations/forget", "operations/trials", "host/assets"),
    ),
    "py4j": ("core", "features/followers", "operations/forget"),
    "pyiceberg": ("core/iceberg", "systems/catalogs", "features/followers", "operations/drop", "operations/observe"),
    "deltalake": ("features/followers",),
    "confluent_kafka": ("core/kafka", "operations/drop", "operations/send", "machine/services"),
    "requests": ("systems/http.py", "features/notices"),
    "google": ("messages/formats",),
    "grpc_tools": ("messages/formats",),
    "duckdb": ("core/query", "core/rows", "features/export"),
    "boto3": ("systems/buckets.py", "machine/services"),
    "botocore": ("systems/buckets.py",),
    "psutil": ("machine/processes.py",),
    "yaml": ("language",),
    "jsonschema": ("messages/formats",),
    "openlineage": ("host/watchers",),
    "prometheus_client": ("host/prometheus",),
    "starlette": ("host/serve",),
    "uvicorn": ("host/serve",),
    "click": ("host/cli",),
    "rich": ("host/cli", "operations/trials/preview_text.py"),
}
# Where a third party is imported inside functions only, so that importing the folder does not load it.
LAZILY = {
    *(("pyspark", folder) for folder in ("documents", "features")),
    *(("pyiceberg", folder) for folder in ("systems", "features", "operations/observe")),
    *(("deltalake", "features"), ("requests", "systems"), ("requests", "features"), ("jsonschema", "messages")),
    *(("google", "messages"), ("grpc_tools", "messages"), ("psutil", "machine")),
}


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


def judged(place: str, source: str) -> Iterator[str]:
    """The problems of the imports of a file at this place, such as `core/run/run.py` or `sluice/steps.py`, with line numbers."""
    for statement in imports(source):
        package, _, submodule = statement.name.partition(".")
        if package == "":
            yield f"{statement.line}: write the whole name of {statement.name}"
        elif package in ("framework", "pipelines", "sluice"):
            if not may_import(place.partition("/")[0], package, submodule):
                yield f"{statement.line}: {place} imports {statement.name}"
        elif package in ONLY:
            if not any(is_in(place, allowed) for allowed in ONLY[package]):
                yield f"{statement.line}: {place} imports {package}"
            elif statement.runs and any(third == package and is_in(place, folder) for third, folder in LAZILY):
                yield f"{statement.line}: {place} imports {package} outside of a function"


def may_import(importer: str, package: str, submodule: str) -> bool:
    """Whether a layer, `pipelines` or `sluice` may import a module. The public API does not stand on the command line."""
    if importer == "pipelines":
        return package in ("pipelines", "sluice") or is_in(submodule.replace(".", "/"), "host")
    if importer == "sluice":
        return package in ("sluice", "framework") and not is_in(submodule.replace(".", "/"), "host/cli")
    layer = submodule.partition(".")[0]
    if layer not in LAYERS:
        return submodule == "__version__"
    return LAYERS.index(layer) <= LAYERS.index(importer) and (importer, layer) not in UNRELATED


def is_in(place: str, folder: str) -> bool:
    return f"{place}/".startswith(f"{folder}/")


def folders_elsewhere(source: str) -> list[int]:
    """Lines that name a folder of components which is not the file's own."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    folders = (call for call in calls if ast.unparse(call.func) in ("components_in", "components.components_in", "Folder"))
    return [call.lineno for call in folders if ast.unparse(call.args[0]) not in ("__name__", "packages")]


def files() -> Iterator[tuple[str, Path]]:
    """Every file with its place: from framework/, or from the project's root."""
    for path in sorted(FRAMEWORK.glob("*/**/*.py")):
        yield path.relative_to(FRAMEWORK).as_posix(), path
    for above in ("pipelines", "sluice"):
        yield from ((path.relative_to(ROOT).as_posix(), path) for path in sorted((ROOT / above).rglob("*.py")))


def by_position(node: ast.ClassDef) -> bool:
    """Whether a dataclass of over four fields takes more than three by position. Options of a spec are bound by their names."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    if not any("dataclass" in decorator and "kw_only=True" not in decorator for decorator in decorators) or _is_bound(node):
        return False
    assignments = (
        statement
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and "init=False" not in ast.unparse(statement)
    )
    fields = [kind for assignment in assignments if not (kind := ast.unparse(assignment.annotation)).startswith("ClassVar")]
    return len(fields) > 4 and "KW_ONLY" not in fields[:4]


def changeable(node: ast.ClassDef) -> list[str]:
    """The fields of a frozen dataclass that can be changed all the same. Options of a spec are as YAML has them."""
    if not any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list) or _is_bound(node):
        return []
    fields = {
        ast.unparse(statement.target): ast.unparse(statement.annotation)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    return [name for name, kind in fields.items() if re.search(r"\b(list|dict|set|Counter|defaultdict)\[", kind)]


def _is_bound(node: ast.ClassDef) -> bool:
    return bool({ast.unparse(base) for base in node.bases} & {"OptionGroup", "Document"})


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


def test_framework_has_its_layers_and_nothing_else() -> None:
    assert {path.name for path in FRAMEWORK.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(LAYERS)
    assert [path.name for path in FRAMEWORK.glob("*.py")] == ["__init__.py"]


@pytest.mark.slow  # and `make check` has it
def test_imports_go_down_the_list() -> None:
    problems = [
        f"{path.relative_to(ROOT)}:{problem}"
        for place, path in files()
        for problem in judged(place, path.read_text(encoding="utf-8"))
    ]
    assert problems == []


@pytest.mark.slow
def test_only_the_host_knows_where_components_are() -> None:
    elsewhere = [place for place, path in files() if folders_elsewhere(path.read_text(encoding="utf-8"))]
    assert elsewhere == ["host/components.py"]


@pytest.mark.slow
def test_no_module_needs_itself_to_be_imported() -> None:
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for _, path in files()}
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        needed_names = {statement.name for statement in imports(path.read_text(encoding="utf-8")) if statement.runs}
        graph[module] = {name if name in paths else name.rpartition(".")[0] for name in needed_names} & set(paths) - {module}
    TopologicalSorter(graph).prepare()  # a cycle is an error that shows it


@pytest.mark.parametrize(
    ("place", "source", "says"),
    [
        ("language/bind.py", "from framework.plan import Plan", None),
        ("plan/plan.py", "from framework.language import load", "1: plan/plan.py imports framework.language.load"),
        ("language/bind.py", "def f():\n    from framework import core", "2: language/bind.py imports framework.core"),
        ("documents/make.py", "from framework.core.rows import frame", "1: documents/make.py imports framework.core.rows.frame"),
        ("core/run/run.py", "import framework.documents.make", "1: core/run/run.py imports framework.documents.make"),
        ("base/errors.py", "from framework import machine", "1: base/errors.py imports framework.machine"),
        ("core/run/run.py", "from framework.host.cli import main", "1: core/run/run.py imports framework.host.cli.main"),
        ("core/run/run.py", "from framework.core_other import x", "1: core/run/run.py imports framework.core_other.x"),
        ("host/ui.py", "from framework import __version__", None),
        ("core/run/run.py", "from dagster import asset", "1: core/run/run.py imports dagster"),
        ("plan/plan.py", "if TYPE_CHECKING:\n    from pyspark.sql import DataFrame", "2: plan/plan.py imports pyspark"),
        (
            "documents/steps/unique.py", "from pyspark.sql import functions",
            "1: documents/steps/unique.py imports pyspark outside of a function",
        ),
        ("documents/steps/unique.py", "def f():\n    from pyspark.sql import functions", None),
        ("plan/plan.py", "from . import topic", "1: write the whole name of ..topic"),
        ("pipelines/definitions.py", "from sluice.dagster import x", None),
        ("pipelines/steps/tidy.py", "from framework.base import types", "1: pipelines/steps/tidy.py imports framework.base.types"),
        ("sluice/__init__.py", "from framework.host.session import opened", None),
        ("sluice/__init__.py", "from framework.host.cli import _specs", "1: sluice/__init__.py imports framework.host.cli._specs"),
    ],
)  # fmt: skip
def test_an_import_upwards_is_named(place: str, source: str, says: str | None) -> None:
    assert list(judged(place, source)) == ([says] if says else [])


def test_a_folder_of_another_file_is_named() -> None:
    assert folders_elsewhere("A = components_in(__name__)\nB = components_in('framework.features.writes')\n") == [2]


@pytest.mark.parametrize(
    "work",
    [
        "from pathlib import Path; from framework.host.plans import make; assert make(Path('specs')).pipelines",
        "from framework.host.cli import main; main(['plan', '--no-look'], standalone_mode=False)",
    ],
)
@pytest.mark.slow
def test_a_plan_is_made_without_what_runs_it(work: str) -> None:
    ask = f"import sys; {work}; print('loaded:', *sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", ask], check=True, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "loaded:"
