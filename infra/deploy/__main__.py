"""The command line of `infra/deploy.sh`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import click

from framework.base.errors import SluiceError
from infra.deploy import loss, settings
from infra.deploy.loss import Loss
from infra.deploy.settings import ENVIRONMENTS, Settings
from infra.deploy.terraform import Terraform

_CHANGES = 2  # the exit status of `plan` if something would change
_ENV = click.option("--env", "name", required=True, metavar="NAME", help="The environment: infra/environments/NAME.yaml.")
_PROFILE = click.option("--profile", metavar="NAME", help="Log in to AWS with this profile of the machine's settings.")
_YES = click.option("--yes", is_flag=True, help="Do not ask.")


def _with_errors(command: Callable[..., None]) -> Callable[..., None]:
    @wraps(command)
    def run(**options: Any) -> None:
        try:
            command(**options)
        except SluiceError as error:
            click.echo(f"infra: {error}", err=True)
            sys.exit(1)

    return run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Plans, creates and deletes what an environment needs in the cloud: buckets, keys, roles, databases and secrets."""


@main.command()
@_ENV
@_PROFILE
@_with_errors
def plan(name: str, profile: str | None) -> None:
    """Shows what would change, and changes nothing. Exits with 2 if anything would."""
    chosen = settings.read(name, profile)
    changes = [module.module for module in _planned(_modules(chosen))]
    click.echo(f"{name}: {', '.join(changes)} would change" if changes else f"{name}: nothing would change")
    sys.exit(_CHANGES if changes else 0)


@main.command()
@_ENV
@_PROFILE
@_YES
@_with_errors
def create(name: str, profile: str | None, yes: bool) -> None:
    """Makes what is missing and changes what differs, after it has shown that. Doing it again changes nothing."""
    chosen = settings.read(name, profile)
    modules = _modules(chosen)
    changed = _planned(modules)
    if changed and not yes and not click.confirm(f"Make this in {name}?"):
        click.echo("nothing was made")
        return
    for module in changed:
        module.apply()
    _tell_made(name, {module.module: module.outputs() for module in modules}, bool(changed))


def _tell_made(name: str, outputs: Mapping[str, Mapping[str, Any]], changed: bool) -> None:
    """Writes what there is into a file, and prints what to do next."""
    path = ENVIRONMENTS / f"{name}.json"
    path.write_text(json.dumps(outputs, indent=2) + "\n", encoding="utf-8")
    click.echo(f"{name}: {'made' if changed else 'nothing has changed'}")
    click.echo(f"wrote infra/environments/{path.name}, which has no secrets\nnext:")
    aws = outputs.get("aws", {})
    for secret in aws.get("secrets", ()) if changed else ():
        click.echo(f"  aws secretsmanager put-secret-value --secret-id {aws['secrets_prefix']}{secret} --secret-string …")
    click.echo(f"  sluice init --from-infra {name}")


@main.command()
@_ENV
@_PROFILE
@click.option("--with-tables", is_flag=True, help="Delete tables and other files in the bucket, too.")
@_YES
@_with_errors
def delete(name: str, profile: str | None, with_tables: bool, yes: bool) -> None:
    """Deletes all that was made, after it has listed what is lost. Refused if the bucket has files, unless --with-tables is given."""
    chosen = settings.read(name, profile)
    modules = [module for module in reversed(_modules(chosen)) if module.made()]
    if not modules:
        click.echo(f"{name}: there is nothing to delete")
        return
    lost = _loss(modules)
    for line in lost.lines() if lost else ():
        click.echo(f"is lost: {line}")
    has_files = lost is not None and lost.files > 0
    if has_files and not with_tables:
        raise SluiceError("bucket-has-files", "nothing was deleted: the bucket has files", "to lose them, too: --with-tables")
    if (
        not yes
        and click.prompt(f"Type the name of the environment to delete it ({name})", default="", show_default=False) != name
    ):
        click.echo("nothing was deleted")
        return
    for module in modules:
        if has_files and module.module == "aws":
            loss.empty_buckets(module)
        module.destroy()
        module.forget()
    (ENVIRONMENTS / f"{name}.json").unlink(missing_ok=True)
    click.echo(f"{name}: deleted")


def _planned(modules: list[Terraform]) -> list[Terraform]:
    """The modules that would change, all of which are shown before anything is made."""
    return [module for module in modules if module.plan()]


def _modules(chosen: Settings) -> list[Terraform]:
    modules = [Terraform(chosen, module) for module in chosen.modules]
    for module in modules:
        module.init()
    return modules


def _loss(modules: list[Terraform]) -> Loss | None:
    return next((loss.of_aws(module) for module in modules if module.module == "aws"), None)


if __name__ == "__main__":
    main(prog_name="infra/deploy.sh")
