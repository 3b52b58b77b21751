"""The command line of `infra/deploy.sh`."""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from framework.base.errors import SluiceError
from framework.base.home import private
from infra.deploy import loss, settings, values
from infra.deploy.settings import AWS, ENVIRONMENTS, Settings
from infra.deploy.terraform import Terraform

_CHANGES = 3  # the exit status of `plan` if something would change
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
    """Plans, creates and deletes what an environment needs in the cloud, at AWS, Confluent and Snowflake."""


@main.command()
@_ENV
@_PROFILE
@_with_errors
def plan(name: str, profile: str | None) -> None:
    """Shows what would change, and changes nothing. Exits with 3 if anything would."""
    with _alone(name):
        changes = [module.module for module in _planned(_modules(settings.read(name, profile)))]
    click.echo(f"{name}: {', '.join(changes)} would change" if changes else f"{name}: nothing would change")
    sys.exit(_CHANGES if changes else 0)


@main.command()
@_ENV
@_PROFILE
@click.option("--with-losses", is_flag=True, help="Let a change delete buckets, keys, databases or secrets, too.")
@_YES
@_with_errors
def create(name: str, profile: str | None, with_losses: bool, yes: bool) -> None:
    """Makes what is missing and changes what differs, after it has shown that. Doing it again changes nothing."""
    with _alone(name):
        modules = _modules(settings.read(name, profile))
        changed = _planned(modules)
        losses = [address for module in changed for address in module.losses()]
        if losses and not with_losses:
            hint = "undo the change in the environment's file; to lose them: infra/deploy.sh create … --with-losses"
            raise SluiceError("would-be-lost", f"nothing was made: the change deletes {', '.join(losses)}", hint)
        if changed and not yes and not click.confirm(f"Make this in {name}?"):
            click.echo("nothing was made")
            return
        for module in changed:
            module.apply()
        outputs = {module.module: dict(module.outputs()) for module in modules}
        to_do = [line for module in modules if module.module == AWS for line in _put_values(module, outputs[AWS])]
        to_do += [line for of_module in outputs.values() for line in of_module.pop("next", ())]
        path = ENVIRONMENTS / f"{name}.json"
        path.write_text(json.dumps(outputs, indent=2) + "\n", encoding="utf-8")
    click.echo(
        f"{name}: {'made' if changed else 'nothing has changed'}\nwrote infra/environments/{path.name}, which has no secrets\nnext:"
    )
    for line in (*to_do, f"sluice init --from-infra {name}"):
        click.echo(f"  {line}")


def _put_values(aws: Terraform, outputs: Mapping[str, Any]) -> list[str]:
    """Makes the random values of secrets; returns the commands that put in the others that are missing."""
    variables, prefix = aws.settings.variables(aws.module), outputs["secrets_prefix"]
    values.make_random(variables, [f"{prefix}{name}" for name in outputs["random_secrets"]])
    missing = values.without_value(variables, [f"{prefix}{name}" for name in outputs["secrets"]])
    region = outputs["region"]
    return [f"aws secretsmanager put-secret-value --region {region} --secret-id {name} --secret-string …" for name in missing]


@main.command()
@_ENV
@_PROFILE
@click.option("--with-tables", is_flag=True, help="Delete tables and other files in the bucket, topics and databases, too.")
@click.option("--only", type=click.Choice(settings.MODULES), help="Delete what this module made.")
@_YES
@_with_errors
def delete(name: str, profile: str | None, with_tables: bool, only: str | None, yes: bool) -> None:
    """Deletes all that was made, after it has listed what is lost. Refused if the bucket has files, or a cluster or a database was made,
    unless --with-tables is given."""
    with _alone(name):
        all_modules = _modules(settings.read(name, profile))
        modules = [module for module in reversed(all_modules) if only in (None, module.module) and module.made()]
        if not modules:
            click.echo(f"{name}: there is nothing to delete")
            return
        lost = next((loss.of_aws(module) for module in modules if module.module == AWS), None)
        others = [line for module in modules if module.module != AWS for line in loss.of_other(module)]
        for line in (*(lost.lines() if lost else ()), *others):
            click.echo(f"is lost: {line}")
        if lost and lost.files and not with_tables:
            raise SluiceError("bucket-has-files", "nothing was deleted: the bucket has files", "to lose them, too: --with-tables")
        if others and not with_tables:
            message = f"nothing was deleted: {others[0].partition(':')[0]} may have data, and nobody has looked into it"
            raise SluiceError("may-have-data", message, "to lose it, too: --with-tables")
        question = f"Type the name of the environment to delete it ({name})"
        if not yes and click.prompt(question, default="", show_default=False) != name:
            click.echo("nothing was deleted")
            return
        for module in modules:
            if module.module == AWS:
                loss.empty_buckets(module, with_files=with_tables)
            module.destroy()
            module.forget()
        _forget(name, {module.module for module in modules})
    click.echo(f"{name}: deleted{f' what {only} made' if only else ''}")


def _forget(name: str, modules: Set[str]) -> None:
    """Takes what was deleted out of the file that says what was made."""
    outputs = {module: of_module for module, of_module in _made(name).items() if module not in modules}
    path = ENVIRONMENTS / f"{name}.json"
    if outputs:
        path.write_text(json.dumps(outputs, indent=2) + "\n", encoding="utf-8")
    else:
        path.unlink(missing_ok=True)


def _made(name: str) -> Mapping[str, Any]:
    """The outputs of each module of an environment, as `create` wrote them last."""
    try:
        return dict(json.loads((ENVIRONMENTS / f"{name}.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return {}


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Lets no other command on this machine change the environment, or the plan that a person is shown."""
    with (private("infra") / f"{name.replace('/', '_')}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SluiceError("busy", f"another command is at work on `{name}`", "wait until it has ended") from None
        yield


def _planned(modules: list[Terraform]) -> list[Terraform]:
    """The modules that would change, all of which are shown before anything is made."""
    return [module for module in modules if module.plan()]


def _modules(chosen: Settings) -> list[Terraform]:
    """The modules of an environment. One that was made and is not in its file any more would be forgotten."""
    if left := sorted(_made(chosen.name).keys() - chosen.modules.keys()):
        message = f"infra/environments/{chosen.name}.yaml has no `{left[0]}` any more, and what it made is still there"
        hint = f"put it back; `infra/deploy.sh delete --env {chosen.name} --only {left[0]}` deletes that"
        raise SluiceError("module-left", message, hint)
    modules = [Terraform(chosen, module) for module in chosen.modules]
    for module in modules:
        module.init()
    return modules


if __name__ == "__main__":
    main(prog_name="infra/deploy.sh")
