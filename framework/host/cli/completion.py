"""`sluice completion`: the shell-completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SECTION, ORDER = "try and tidy", 7


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell-completion script.

    The shell then completes commands, options, and the names of pipelines and topics.

    For bash, put this line into ~/.bashrc: eval "$(sluice completion bash)"; for zsh the same with zsh into ~/.zshrc. For fish:
    sluice completion fish > ~/.config/fish/completions/sluice.fish

    Example: eval "$(sluice completion bash)"
    """
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    click.echo(shell_class(ctx.find_root().command, {}, "sluice", "_SLUICE_COMPLETE").source())
