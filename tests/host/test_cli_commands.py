"""One suite over every command's file, and over a toy: `tests/toys/cli/hello.py` is a command, and nothing else knows of it."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from framework.host.cli import COMMANDS, SECTIONS, help_lines, main
from tests import toys

ROOT = Path(__file__).resolve().parents[2]
SPECS = """
topic: trades
value: json
columns: {id: bigint}
---
topic: tracks
value: string
---
pipeline: trades_by_day
from: {topic: trades}
into: {table: shop.trades}
---
export: trades_of_a_day
from: {table: shop.trades}
file: {format: csv, to: trades.csv}
---
keys: traders
of: serve
secret: traders
"""
NAMED = ("name", "names", "topic")  # arguments that name a topic or a pipeline


def commands(group: click.Group = main, parents: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*parents, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*parents, name))


with toys.installed():
    ALL = [pytest.param(words, command, id=" ".join(words)) for words, command in commands()]
    FILES = COMMANDS.load_all()


@pytest.fixture(autouse=True, scope="module")
def with_toys() -> Iterator[None]:
    with toys.installed():
        yield


def test_one_file_adds_the_toy_command() -> None:
    assert [path.name for path in (toys.FOLDER / "cli").glob("*.*")] == ["hello.py"]
    result = CliRunner().invoke(main, ["hello", "you", "--twice"])
    assert (result.exit_code, result.stdout) == (0, "hello you\nhello you\n")


@pytest.mark.parametrize(("words", "command"), ALL)
def test_help_begins_with_an_imperative_line(words: tuple[str, ...], command: click.Command) -> None:
    line, _, rest = (command.help or "").partition("\n")
    assert re.fullmatch(r"[A-Z].{,67}[^.]\.", line), "one sentence, short enough for the help of `sluice`"
    assert not re.match(r"\w*[^s]s ", line), "write `Load`, not `Loads`"
    assert rest.startswith("\n"), "an empty line stands below it"


@pytest.mark.parametrize("name", FILES)
def test_each_command_has_its_line_in_one_section(name: str) -> None:
    file = FILES[name]
    assert file.SECTION in SECTIONS
    assert [title for title, lines in help_lines().items() if name.replace("_", "-") in lines] == [file.SECTION]
    output = CliRunner().invoke(main, ["--help"], terminal_width=100).output
    assert re.search(
        rf"^  {name.replace('_', '-')} +{re.escape(help_lines()[file.SECTION][name.replace('_', '-')])}$", output, re.M
    )
    same_place = [
        command_name
        for command_name, candidate in FILES.items()
        if (candidate.SECTION, candidate.ORDER) == (file.SECTION, file.ORDER)
    ]
    assert same_place == [name], "two commands have the same place in the help"


@pytest.mark.parametrize(("words", "command"), ALL)
def test_help_has_an_example_that_parses(words: tuple[str, ...], command: click.Command) -> None:
    result = CliRunner().invoke(main, [*words, "--help"])
    assert result.exit_code == 0, result.output
    example = re.search(r"^ +Example: (.+?)(?=\n\n|\n*\Z)", result.output, re.MULTILINE | re.DOTALL)
    assert example, f"the help of `sluice {' '.join(words)}` has no line `Example: …`"
    line = example[1].removeprefix('eval "$(').removesuffix(')"')
    arguments = shlex.split(line)
    arguments = arguments[: arguments.index(">")] if ">" in arguments else arguments
    assert tuple(arguments[: len(words) + 1]) == ("sluice", *words)
    if not isinstance(command, click.Group):
        command.make_context(words[-1], arguments[len(words) + 1 :])


@pytest.mark.parametrize(("words", "command"), ALL)
def test_an_unknown_option_is_wrong_usage_with_a_hint(words: tuple[str, ...], command: click.Command) -> None:
    result = CliRunner().invoke(main, [*words, "--nonsense"], prog_name="sluice")
    assert result.exit_code == 2
    assert f"Try 'sluice {' '.join(words)} --help' for help." in result.stderr
    assert "--nonsense" in result.stderr


@pytest.mark.parametrize(("words", "command"), ALL)
def test_other_exit_statuses_are_documented(words: tuple[str, ...], command: click.Command) -> None:
    source = ast.parse(inspect.getsource(inspect.getmodule(command.callback) or main))
    exits = (node.args[0] for node in ast.walk(source) if isinstance(node, ast.Call) and node.args and _ends(node.func))
    statuses = {node.value for exit_ in exits for node in ast.walk(exit_) if isinstance(node, ast.Constant)}
    if {status for status in statuses if type(status) is int} - {0, 1, 2}:
        assert "Exit status" in (command.help or ""), f"`sluice {' '.join(words)}` does not say what its exit statuses mean"


def _ends(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr == "exit"


@pytest.mark.parametrize("name", FILES)
def test_a_shell_completes_the_command(name: str) -> None:
    with click.Context(main) as context:
        assert name.replace("_", "-") in {item.value for item in main.shell_complete(context, name[:2])}


@pytest.mark.parametrize(("words", "command"), ALL)
def test_a_shell_completes_names_of_the_specs(
    words: tuple[str, ...], command: click.Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "a.yaml").write_text(SPECS)
    monkeypatch.chdir(tmp_path)
    for argument in command.params:
        if isinstance(argument, click.Argument) and argument.name in NAMED and not isinstance(argument.type, click.Choice):
            with click.Context(command) as context:
                offered = {item.value for item in argument.shell_complete(context, "tra")}
            assert offered in ({"trades", "tracks"}, {"trades_by_day"}, {"trades_of_a_day"}, {"traders"}), (
                f"{words}: complete {argument.name}"
            )


def test_names_that_people_try_lead_to_one_command() -> None:
    synonyms = Counter(synonym for file in FILES.values() for synonym in getattr(file, "ALSO_CALLED", ()))
    assert synonyms.most_common(1)[0][1] == 1
    assert set(synonyms).isdisjoint(main.list_commands(click.Context(main)))


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("chek", "did you mean `sluice check`?"),
        ("validate", "did you mean `sluice check`?"),
        ("backfill", "did you mean `sluice rebuild`?"),
        ("up", "did you mean `sluice services up`?"),
        ("greet", "did you mean `sluice hello`?"),
        ("xyzzy", "`sluice --help` lists all commands"),
    ],
)
def test_an_unknown_command_suggests_the_probable_one(typed: str, says: str) -> None:
    result = CliRunner().invoke(main, [typed])
    assert result.exit_code == 2
    assert f"Error: there is no command `{typed}`; {says}\n" in result.stderr


@pytest.mark.slow
def test_the_help_of_all_commands_loads_nothing_heavy() -> None:
    heavy_modules = (
        "rich",
        "yaml",
        "framework.plan",
        "framework.language",
        "framework.plan",
        "framework.core",
        "framework.messages.formats",
    )
    program = "import sys; from framework.host.cli import help_lines; help_lines(); print(*sys.modules)"
    module_names = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    assert set(heavy_modules) & set(module_names) == set()
