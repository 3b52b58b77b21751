"""`sluice init`: first specs, for a new project or for an existing topic."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from framework.base.amounts import counted
from framework.host.cli import _specs
from framework.host.cli._scalar import ScalarParameter

SECTION, ORDER = "write", 1
ALSO_CALLED = ("new", "create")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.option("--topic", metavar="NAME", help="Write a spec for this Kafka topic, from a sample of its messages.")
@click.option("--sample", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Read this many messages.")
@click.option(
    "--bootstrap",
    type=ScalarParameter("Addresses"),
    metavar="HOST:PORT",
    help="Read them from this Kafka; default: the specs' cluster.",
)
@click.option(
    "--registry", type=ScalarParameter("Url"), metavar="URL", help="Use this schema registry; default: the cluster's registry."
)
@click.option(
    "--from-infra", metavar="NAME", help="Write the environment that `infra/deploy.sh create --env NAME` made, or a file of its."
)
@_specs.with_environment
@click.pass_context
def command(
    ctx: click.Context,
    folder: Path,
    topic: str | None,
    sample: int,
    bootstrap: str | None,
    registry: str | None,
    from_infra: str | None,
    environment: str,
) -> None:
    """Create a project with a first spec, or a spec for a topic.

    Writes the project into FOLDER (default: here), and prints the next commands. Existing files stay as they are; only a .gitignore
    gets a line.

    With --topic, writes specs/NAME.yaml for an existing Kafka topic: columns inferred from its newest messages, with comments
    about the sample; no value of a message is written. No column is required: you know which of them every message has.

    If messages begin with the id of a schema in the registry, their format and columns come from the registry.

    With --from-infra, writes specs/environments/NAME/main.yaml: the catalog and the store of secrets that were made in the cloud.

    Example: sluice init --topic orders --bootstrap 127.0.0.1:19092
    """
    from framework.operations.init import project

    if from_infra is not None:
        if topic is not None:
            raise click.UsageError("--from-infra and --topic are two uses: give one of them")
        _refuse_without_topic(ctx)
        _environment(folder, from_infra)
        return
    if topic is None:
        _refuse_without_topic(ctx)
        _tell(folder, project.start(folder), project.commands())
        return
    from framework.host.components import all_components
    from framework.operations.init import topic as topics

    with all_components():
        added = topics.add(folder, environment, topic, sample, bootstrap, registry)
    columns = counted(added.spec.columns, "column")
    remarks = [
        f"{added.name}: {added.spec.value}, {columns}, from {counted(added.messages, 'message')}; into the table {added.table}"
    ]
    omissions = len(added.spec.left_out)
    remarks += (
        [f"{added.name}: {omissions:,} field{' is' if omissions == 1 else 's are'} left out, the spec says why"]
        if omissions
        else []
    )
    _tell(folder, added.files, topics.commands(added.name), remarks)


def _refuse_without_topic(ctx: click.Context) -> None:
    for param in ("sample", "bootstrap", "registry", "environment"):
        if ctx.get_parameter_source(param) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{'env' if param == 'environment' else param} has no effect without --topic")


def _environment(folder: Path, name: str) -> None:
    from framework.host.components import all_components
    from framework.operations.init import from_infra

    with all_components():
        written = from_infra.write(folder, name)
    environment = Path(written[0]).parent.name
    _tell(folder, written, (
        (f"sluice doctor --env {environment}", "tries what it names: the catalog, the bucket, the secrets"),
        (f"sluice run --env {environment}", "loads the messages into tables there"),
    ))  # fmt: skip


def _tell(folder: Path, files: tuple[str, ...], commands: tuple[tuple[str, str], ...], remarks: list[str] | None = None) -> None:
    import shlex

    click.echo("\n".join([f"wrote {', '.join(str(folder / name) for name in files)}", *(remarks or []), "next:"]))
    if folder.resolve() != Path.cwd():
        click.echo(f"  cd {shlex.quote(str(folder))}")
    width = max(len(line) for line, _ in commands)
    for line, purpose in commands:
        click.echo(f"  {line.ljust(width)}  # {purpose}")
