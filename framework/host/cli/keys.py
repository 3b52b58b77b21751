"""`sluice keys`: list, make, use and retire keys."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.base.errors import SluiceError
from framework.base.spelling import did_you_mean, the_names
from framework.host.cli import _complete, _keys, _specs

if TYPE_CHECKING:
    from framework.operations.keys.rotation import Rotation
    from framework.plan import Plan
    from framework.plan.keys import Keys

SECTION, ORDER = "run", 15
ALSO_CALLED = ("rotate", "credentials", "api-key")


@click.group()
def command() -> None:
    """List keys, make new ones, use them, and retire former ones.

    They are those of documents `keys`, such as the login to Kafka. A new key is made and tried; then it is used from the next login on;
    and a former one is retired when nobody uses it any longer. Until then each step can be taken back.

    `sluice stream` and Dagster's sensor replace keys that are due. For cron, where neither runs, there is `sluice keys rotate --due`.

    Example: sluice keys list
    """


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document only.")
@_specs.with_specs
def list_(as_json: bool, specs: Path, environment: str) -> None:
    """List the keys: number, state, age, and who uses them.

    Of a former key, the processes of this machine are listed that have logged in with it and not looked up the new one since.

    --json: {environment, keys}; each has name, of, secrets, due, overdue and keys, which have number, state, created, known_as and users.

    Exit status: 0 fine, 1 a store does not answer, 2 wrong usage.

    Example: sluice keys list --json
    """
    from framework.operations.keys.standing import standings

    plan = _specs.plan_without_registries(specs, environment)
    all_standings = list(standings(plan))
    if as_json:
        document = {"environment": environment, "keys": [_keys.document(standing) for standing in all_standings]}
        click.echo(json.dumps(_specs.hinted_in(document), indent=2, ensure_ascii=False))
    else:
        _keys.show(all_standings)
    sys.exit(1 if any(standing.error for standing in all_standings) else 0)


@command.command()
@_specs.with_specs
def status(specs: Path, environment: str) -> None:
    """Show which keys are due, and what waits for a person.

    Exit status: 0 nothing is due and nothing waits, 1 otherwise, 2 wrong usage.

    Example: sluice keys status
    """
    from framework.operations.keys.standing import standings

    plan = _specs.plan_without_registries(specs, environment)
    is_fine = True
    for standing in standings(plan):
        state, do = _keys.state_and_task(standing)
        is_fine = is_fine and not do
        _specs.echo(f"{standing.keys.name}: {state}{f'; {do}' if do else ''}")
    sys.exit(0 if is_fine else 1)


@command.command()
@click.argument("name", shell_complete=_complete.keys)
@click.option("--by-hand", is_flag=True, help="Ask for a key that was made elsewhere, such as an API key.")
@_specs.with_specs
def new(name: str, by_hand: bool, specs: Path, environment: str) -> None:
    """Make the next key and try it; nothing uses it yet.

    If there is a next key already, its making is brought to its end. `sluice keys retire` takes the step back.

    With --by-hand, its parts are asked for on the terminal, or read as lines of standard input.

    Example: sluice keys new kafka_login
    """
    from framework.systems import keyring

    rotation = _rotation(specs, environment, name)
    values = {part: _asked(part) for part in rotation.keys.secrets} if by_hand else None
    _keys.tell(rotation.keys, [rotation.new(values)])
    if keyring.following(rotation.stored()):
        _specs.echo(f"`{_keys.using(rotation.keys)}` uses it")


@command.command()
@click.argument("name", required=False, shell_complete=_complete.keys)
@click.option("--to", type=click.IntRange(min=1), help="Use the key of this number: a former one takes the last step back.")
@click.option("--placed", is_flag=True, help="Use the next key: what was left to you is done, such as Snowflake's SQL.")
@click.option("--due", is_flag=True, help="Replace all keys that are due, or NAME if it is.")
@_specs.with_specs
def rotate(name: str | None, to: int | None, placed: bool, due: bool, specs: Path, environment: str) -> None:
    """Use the next key, from the next login on; it is made if there is none.

    What runs takes it at its next login. Former keys beyond `retain` are retired, unless somebody uses them.

    A key that you have to put in its place is only made at first, and it is said what is left to you; --placed uses it then.

    Exit status: 0 done, 1 a key could not be replaced, 2 wrong usage.

    Example: sluice keys rotate kafka_login
    """
    if due and (to is not None or placed):
        raise click.UsageError("--due replaces keys by new ones: leave out --to and --placed")
    if not due and name is None:
        raise click.UsageError("name the keys, or write --due for those that are due")
    if not due and name is not None:
        rotation = _rotation(specs, environment, name)
        _keys.tell(rotation.keys, rotation.rotate(to, placed))
        return
    from framework.operations.keys.due import replace_due
    from framework.systems import secret_uses

    click.get_current_context().with_resource(secret_uses.unnoted())
    plan = _specs.plan_without_registries(specs, environment)
    replaced = replace_due(plan, [_chosen(plan, name).name] if name else [])
    for line in (*replaced.lines, *replaced.lasting) or (["no key is due"] if not replaced.failures else []):
        _specs.echo(line)
    for failure in replaced.failures:
        _specs.echo(str(failure), err=True)
    sys.exit(1 if replaced.failures else 0)


@command.command()
@click.argument("name", shell_complete=_complete.keys)
@click.argument("number", type=click.IntRange(min=1), required=False)
@click.option("--yes", is_flag=True, help="Retire a key that is used, too.")
@_specs.with_specs
def retire(name: str, number: int | None, yes: bool, specs: Path, environment: str) -> None:
    """Make a former key, or the next one, invalid, and forget it.

    Without NUMBER, it is the only one that there is. A key that somebody uses is not retired, and it is said who does.

    Example: sluice keys retire kafka_login 1
    """
    rotation = _rotation(specs, environment, name)
    _keys.tell(rotation.keys, [rotation.retire(number, also_used=yes)])


def _asked(part: str) -> str:
    """A part of a key: from the terminal without an echo, or the next line of standard input."""
    text = click.prompt(part, hide_input=True) if sys.stdin.isatty() else sys.stdin.readline().strip()
    if not text:
        raise SluiceError(
            "empty-key", f"there is no text for `{part}`", "write one line for each part: the name, then the secret"
        )
    return str(text)


def _rotation(specs: Path, environment: str, name: str) -> Rotation:
    from framework.operations.keys.rotation import Rotation
    from framework.systems import secret_uses

    click.get_current_context().with_resource(secret_uses.unnoted())
    plan = _specs.plan_without_registries(specs, environment)
    return Rotation(plan, _chosen(plan, name))


def _chosen(plan: Plan, name: str) -> Keys:
    by_name = {document.name: document.value for document in plan.documents_of("keys")}
    if name not in by_name:
        hint = the_names("document `keys`", by_name) if by_name else "write a document `keys: …`"
        raise SluiceError("unknown-keys", f"there is no document `keys: {name}`", did_you_mean(name, by_name, hint))
    keys: Keys = by_name[name]
    return keys
