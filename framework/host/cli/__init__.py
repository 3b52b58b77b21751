"""The command line: one file per command, found by its name.

A command's file has `command`, whose help begins with its line in the help of `sluice`; `SECTION` and `ORDER`, where that line
stands; and, if other tools have other names for it, `ALSO_CALLED`. `sluice bad-rows` is the file `bad_rows.py`.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import click

from framework import __version__
from framework.base.components import components_in
from framework.base.errors import SluiceError
from framework.host.cli import _slim, _specs
from framework.host.cli._interrupted import ends_on_ctrl_c

COMMANDS = components_in(__name__)
SECTIONS = ("write", "run", "see", "try and tidy")
# Python's garbage collector would search all loaded objects before a command ends, which takes 0.3 s after Spark.
atexit.register(gc.freeze)


class Commands(click.Group):
    """A group that imports only the module of the invoked command, so that each starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [_typed(name) for name in COMMANDS.names()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command = COMMANDS.load(name.replace("-", "_")).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from framework.base.spelling import closest

            suggestion = _other_names().get(name) or closest(name, self.list_commands(ctx))
            hint = f"did you mean `sluice {suggestion}`?" if suggestion else "`sluice --help` lists all commands"
            ctx.fail(f"there is no command `{name}`; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, lines in help_lines().items():
            with formatter.section(title.capitalize()):
                formatter.write_dl(list(lines.items()), col_max=12)

    def invoke(self, ctx: click.Context) -> Any:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        with ends_on_ctrl_c():
            try:
                return super().invoke(ctx)
            except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
                raise
            except Exception as error:
                _specs.echo(str(_named(ctx.invoked_subcommand or "sluice", error)), err=True)
                sys.exit(1)


def _named(command: str, error: Exception) -> SluiceError:
    from framework.core.spark import defects

    return _slim.named(error) or defects.as_sluice_error(command, error)


def help_lines() -> Mapping[str, Mapping[str, str]]:
    """Each command's help line by its name, in sections: for the help of `sluice` and the README's table."""
    files = COMMANDS.load_all()
    ordered = sorted(files, key=lambda name: files[name].ORDER)
    return {
        title: {_typed(name): _first_line(files[name].command) for name in ordered if title == files[name].SECTION}
        for title in SECTIONS
    }


def _first_line(command: click.Command) -> str:
    return (command.help or "").partition("\n")[0]


def _other_names() -> Mapping[str, str]:
    """Other tools' names for the commands; a command of a group is listed without the group's name."""
    files = COMMANDS.load_all()
    names = {alias: _typed(name) for name, file in files.items() for alias in getattr(file, "ALSO_CALLED", ())}
    return {**_inner_names(files), **names}


def _inner_names(files: Mapping[str, ModuleType]) -> Mapping[str, str]:
    groups = {_typed(name): file.command for name, file in files.items() if isinstance(file.command, click.Group)}
    return {inner: f"{name} {inner}" for name, group in groups.items() for inner in group.commands}


def _typed(name: str) -> str:
    """A module's name as a person types it."""
    return name.replace("_", "-")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sluice")
def main() -> None:
    """Kafka topics become Iceberg tables, declared in YAML.

    Exit status: 0 fine, 1 problems or a failed run, 2 wrong usage, 130 stopped by Ctrl-C.
    """
