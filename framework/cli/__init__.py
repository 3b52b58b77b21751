"""The command line: one file per command, found by its name."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from typing import Any

import click

from framework import __version__
from framework.cli._commands import ELSEWHERE, SECTIONS
from framework.cli._interrupted import ends_on_ctrl_c
from framework.errors import SluiceError


class Commands(click.Group):
    """Loads a command's module only when that command is asked for, so that each starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(
            module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")
        )

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from framework.spelling import closest

            meant = ELSEWHERE.get(name) or closest(name, self.list_commands(ctx))
            hint = f"did you mean `sluice {meant}`?" if meant else "`sluice --help` lists all commands"
            ctx.fail(f"there is no command `{name}`; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title.capitalize()):
                formatter.write_dl(list(commands.items()), col_max=12)

    def invoke(self, ctx: click.Context) -> Any:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        with ends_on_ctrl_c():
            try:
                return super().invoke(ctx)
            except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
                raise
            except Exception as error:
                click.echo(str(_told(ctx, error)), err=True)
                sys.exit(1)


def _told(ctx: click.Context, error: Exception) -> SluiceError:
    if isinstance(error, SluiceError):
        return error
    from framework.engine.spark import defects

    return defects.told(ctx.invoked_subcommand or "sluice", error)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sluice")
def main() -> None:
    """Kafka topics become Iceberg tables, declared in YAML.

    Exit status: 0 fine, 1 problems or a failed run, 2 wrong usage, 130 stopped by Ctrl-C.
    """
