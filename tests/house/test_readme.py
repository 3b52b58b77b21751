"""The README and the pages in docs/: their commands run or at least parse, their specs plan, their names exist."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from click import MissingParameter

from framework.base import errors
from framework.documents import pipeline, topic
from framework.documents.pipeline.written import NOT_YET
from framework.host.cli import help_lines
from framework.host.components import COMPONENTS
from framework.language.kind import later_kinds
from framework.language.options import Option, OptionGroup
from tests.support.docs_pages import parse

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = ROOT / "docs" / "commands.md"
FEATURES = ROOT / "docs" / "features.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "framework" / "DECISIONS.md"])
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "framework").rglob("*.py"))}
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
SLUICE = (sys.executable, "-c", "from framework.host.cli import main; main(prog_name='sluice')")
CHEAP = ("plan", "--help")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """Returns the page and the text of every line in an `sh` block."""
    return [
        (page.name, line)
        for page in PAGES
        for block in blocks("sh", page.read_text(encoding="utf-8"))
        for line in block.splitlines()
    ]


def section(title: str, page: str = README) -> str:
    text = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL)
    assert text, f"there is no section {title}"
    return text[1]


def sluice(*arguments: str, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run([*SLUICE, *arguments], check=False, cwd=cwd, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A folder with the shipped `main.yaml` and the README's own spec."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "main.yaml").write_text((ROOT / "specs" / "main.yaml").read_text().replace("memory: 4g", "memory: 1g"))
    (tmp_path / "specs" / "orders.yaml").write_text(blocks("yaml")[0])
    return tmp_path


@pytest.mark.parametrize(("page", "line"), commands())
def test_every_command_exists(page: str, line: str) -> None:
    line = line.partition(" > ")[0]
    words = [word for word in shlex.split(line, comments=True) if not re.match(r"[A-Z_]+=", word)]
    if not words or words[0] == "export":
        assert re.search(r"((PIP|SLUICE)_[A-Z_]+|PATH)=", line), f"{page}: {line}"
    elif page == "tutorial.md":
        assert words[0] == "mkdir", f"{page}: {line}"  # test_tutorial.py runs it
    elif page == "install.md" and words[0] in ("pip", "pipx", "uv", "sluice"):
        assert words[-1] in ("./sluice-0.1.0-py3-none-any.whl", "init", "demo"), line  # test_install.py does it, with pip
    elif page == "infrastructure.md" and words[:2] == ["aws", "secretsmanager"]:
        assert words[2] == "put-secret-value", line  # test_secrets_manager.py calls it
    elif page == "infrastructure.md" and words[0] == "sluice":  # test_deploy.py does it
        parse(shlex.join(words))
    elif words[0] == "make":
        words = [word for word in words if "=" not in word]
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
        assert set(words[1:]) <= targets, f"{page}: {line}"
    elif words[0] == ".venv/bin/sluice":
        parse(shlex.join(words))
    elif words[0] in (".venv/bin/dagster", ".venv/bin/dg"):
        assert words[1] == "dev" or " ".join(words[1:]) in CI.replace("'*'", "*"), f"{page}: .ci/run does not call {line}"
    else:
        assert words[:3] == [".venv/bin/python", "-m", "pytest"], f"{page}: say here how {line} is tested"
        assert all((ROOT / word).exists() for word in words[3:] if word.startswith("tests/"))


@pytest.mark.parametrize(
    "line", [line for page, line in commands() if line.startswith(".venv/bin/sluice") and line.endswith(CHEAP)]
)
@pytest.mark.slow
def test_cheap_commands_run(line: str, orders: Path) -> None:
    assert sluice(*shlex.split(line)[1:], cwd=orders)


INLINE = re.compile(r"`((?:\.venv/bin/)?sluice (?!COMMAND|chek)[^`]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_running_text_exist(page: Path) -> None:
    """Commands in running text exist, though they may lack arguments."""
    for line in INLINE.findall(re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)):
        with suppress(MissingParameter):
            parse(line)


def test_ci_runs_what_the_readme_says() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "make test" in blocks("sh")[0].splitlines()
    assert re.search(r"^    if make test; then return; fi$", CI, re.MULTILINE)
    assert "dg launch --assets '*' -m pipelines.definitions" in CI
    assert not re.search(r"(?<![\w.$}\"/])/(?!usr/bin/env|/)[a-z]+/", CI), "an absolute path"


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 90


@pytest.mark.slow
def test_the_spec_of_ten_lines(orders: Path) -> None:
    assert len(blocks("yaml")[0].splitlines()) == 10
    planned = sluice("plan", cwd=orders)
    assert "lake.shop.orders, append" in planned
    assert "LARGE when amount > 400" in planned


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_a_table_of_your_own(orders: Path, kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_VAR_KAFKA", kafka)
    lines = [line for line in section("A table of your own").splitlines() if line.startswith(".venv/bin/sluice")]
    outputs = [sluice(*shlex.split(line)[1:], cwd=orders) for line in lines]
    printed = {shlex.split(line)[1]: text for line, text in zip(lines, outputs, strict=True)}
    assert "1,000 messages sent" in printed["generate"]
    assert "shop.orders is caught up" in printed["run"]
    assert "LARGE" in printed["query"]
    assert "caught up" in printed["status"]
    reader = subprocess.run([sys.executable, "-c", blocks("python")[0]], check=True, cwd=orders, capture_output=True, text=True)
    rows = ast.literal_eval(re.sub(r"datetime\.datetime\([^)]*\)\)?", "None", reader.stdout))
    assert [row["size"] for row in rows] == ["LARGE" if row["amount"] > 400 else "NORMAL" for row in rows]
    assert len(rows) == 3


def test_the_command_table_is_complete() -> None:
    rows = [line for title, commands in help_lines().items() for line in (f"| **{title}** | |", *table(commands))]
    page = COMMANDS.read_text(encoding="utf-8")
    if os.environ.get("REWRITE") == "1":
        start, head, old = page.partition("| --- | --- |\n")
        page = f"{start}{head}{chr(10).join(rows)}\n\n{old.partition(chr(10) * 2)[2]}"
        COMMANDS.write_text(page, encoding="utf-8")
    assert "\n".join(rows) in page, "write it again: REWRITE=1 .venv/bin/python -m pytest tests/house/test_readme.py"


def table(commands: Mapping[str, str]) -> list[str]:
    return [f"| `{name}` | {help_line} |" for name, help_line in commands.items()]


def test_what_is_refused_by_name_is_all_that_this_version_lacks() -> None:
    lacks = {*later_kinds(), *NOT_YET} - {*COMPONENTS.steps.names()}
    folders = (COMPONENTS.kinds, COMPONENTS.steps, COMPONENTS.followers, COMPONENTS.notices)
    of_components = [module for folder in folders for module in folder.load_all().values()]
    for module in (*of_components, *modules(pipeline), *modules(topic)):
        for cls in (value for value in vars(module).values() if isinstance(value, type) and issubclass(value, OptionGroup)):
            lacks |= {name for field in dataclasses.fields(cls) for name in later(field)}
    listed = re.findall(r"^[-0-9 ].*\n", section("Refused by name", FEATURES.read_text(encoding="utf-8")), re.MULTILINE)
    assert set(re.findall(r"`([\w-]+)`", "".join(listed))) == lacks


def modules(package: ModuleType) -> list[ModuleType]:
    return [importlib.import_module(f"{package.__name__}.{module.name}") for module in pkgutil.iter_modules(package.__path__)]


def later(field: dataclasses.Field[object]) -> tuple[str, ...]:
    """Returns the names at an option that the language has and this version does not."""
    option = field.metadata.get("option")
    if not isinstance(option, Option):
        return ()
    return option.later if option.in_this_version else (field.name,)


MAKERS = {"source_lost", "commit_failed"}  # functions that make an error of a given code


@pytest.mark.slow
def test_every_error_of_a_run_is_explained() -> None:
    tree = {name for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, errors.SluiceError)}
    raised = {
        argument.value
        for path, source in SOURCES.items()
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in tree | MAKERS
        and "engine" in path.parts
        for argument in call.args[: 1 + (call.func.id in MAKERS)]
        if isinstance(argument, ast.Constant)
    }
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", page))
    assert raised - explained == set(), "docs/operations.md does not explain these"
    unused = {code for code in explained if not any(f'"{code}"' in source for source in SOURCES.values())}
    assert unused == set(), "docs/operations.md explains errors that do not exist"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_on_a_page_are_real(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
    source = "".join(SOURCES.values())
    variables = set(re.findall(r"\bSLUICE_[A-Z_]+[A-Z]\b", text))
    own = {name for name in variables if name.startswith("SLUICE_VAR_")}  # of specs
    assert {name for name in variables - own if f'"{name}"' not in source} == set()


def test_the_index_of_the_docs_leads_to_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    links = {(index.parent / link).resolve() for link in re.findall(r"\]\(([^)#]+)\)", index.read_text(encoding="utf-8"))}
    assert {page for page in PAGES if page.parent == index.parent} - {index} <= links
    assert {ROOT / "docs" / "howto" / "index.md", ROOT / "docs" / "language" / "index.md"} <= links
