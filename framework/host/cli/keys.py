"""`sluice keys`: list, make, use and retire keys."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from framework.base import iso_times
from framework.base.amounts import counted, span
from framework.base.errors import SluiceError
from framework.base.spelling import did_you_mean, the_names
from framework.host.cli import _complete, _specs

if TYPE_CHECKING:
    from framework.operations.keys.rotation import Rotation, Step
    from framework.operations.keys.standing import KeysStanding
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
        document = {"environment": environment, "keys": [_document(standing) for standing in all_standings]}
        click.echo(json.dumps(_specs.hinted_in(document), indent=2, ensure_ascii=False))
    else:
        _print(all_standings)
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
        state, do = _state(standing)
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
    _tell(rotation.keys, [rotation.new(values)])
    if keyring.following(rotation.stored()):
        _specs.echo(f"`{_using(rotation.keys)}` uses it")


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
        _tell(rotation.keys, rotation.rotate(to, placed))
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
    _tell(rotation.keys, [rotation.retire(number, also_used=yes)])


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


def _tell(keys: Keys, steps: Sequence[Step]) -> None:
    for step in steps:
        _specs.echo(f"{keys.name}: {step.says}")
        if step.left:
            click.echo("left to you:")
        for line in step.left:
            click.echo(f"  {line}")


def _print(all_standings: Sequence[KeysStanding]) -> None:
    if not all_standings:
        click.echo("there are no keys: a document `keys: NAME` has some")
    for standing in all_standings:
        every = f", a new one every {span(standing.keys.rotate_every)}" if standing.keys.rotate_every else ""
        click.echo(f"{standing.keys.name}: {standing.keys.type}{every}")
        if standing.error:
            _specs.echo(f"  {standing.error}", err=True)
        elif not standing.all:
            _specs.echo(f"  there is none yet: `sluice keys new {standing.keys.name}` makes one")
        for key in standing.all:
            age = "of unknown age" if key.created is None else f"of {iso_times.of_seconds(key.created)}"
            users = f", used by {', '.join(key.users)}" if key.users else ""
            click.echo(f"  {key.number or 'no number yet'}: {key.state}, {key.known_as}, {age}{users}")


def _using(keys: Keys) -> str:
    """The command that uses the next key."""
    return f"sluice keys rotate {keys.name}{' --placed' if keys.lock.needs_person else ''}"


def _state(standing: KeysStanding) -> tuple[str, str]:
    """How the keys are, and what a person is to do; empty if nothing."""
    keys = standing.keys
    rotate, by_hand = f"`sluice keys rotate {keys.name}`", f"`sluice keys new {keys.name} --by-hand`"
    former = [key for key in standing.all if key.state == "former"]
    if standing.error:
        return f"unknown, {standing.error.message}", standing.error.hint or "see to it"
    if any(key.state == "next" for key in standing.all):
        left = (
            f"{rotate} says what is left to you, `{_using(keys)}` then uses it" if keys.lock.needs_person else f"{rotate} uses it"
        )
        return "a new key waits to be used", left
    if standing.current is None:
        return "there is no current key", f"{by_hand} takes one" if keys.lock.by_hand(keys) else f"{rotate} makes one"
    if keys.lock.slots and len(standing.all) >= keys.lock.slots and standing.overdue:
        return "due", f"`sluice keys retire {keys.name} {former[-1].number}` makes room for a new one"
    if standing.taken_back:
        return f"key {standing.current.number} was taken back, so that nothing is replaced by itself", f"{rotate} makes a new one"
    if standing.overdue:
        return "due", f"{by_hand} takes a new one" if keys.lock.by_hand(keys) else f"{rotate} replaces it"
    if keys.lock.by_hand(keys) and len(former) > keys.retain:
        return "a former key is still valid", f"`sluice keys retire {keys.name} {former[-1].number}` says how it ends"
    kept = f", {counted(len(former), 'former key')} {'is' if len(former) == 1 else 'are'} still valid" if former else ""
    when = f"replaced after {iso_times.of_seconds(standing.due)}" if standing.due else "replaced by hand"
    return f"{when}{kept}", ""


def _document(standing: KeysStanding) -> dict[str, Any]:
    error = standing.error
    return {
        "name": standing.keys.name, "of": standing.keys.type, "secrets": list(standing.keys.secrets),
        "due": iso_times.of_seconds(standing.due) if standing.due else None, "overdue": standing.overdue,
        "keys": [
            {
                "number": key.number, "state": key.state, "known_as": key.known_as, "users": list(key.users),
                "created": iso_times.of_seconds(key.created) if key.created is not None else None,
            }
            for key in standing.all
        ],
        "error": {"code": error.code, "message": error.message, "hint": error.hint} if error else None,
    }  # fmt: skip
