"""The keys of `sluice keys` as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from framework.base import iso_times
from framework.base.amounts import counted, span
from framework.host.cli import _specs

if TYPE_CHECKING:
    from framework.operations.keys.rotation import Step
    from framework.operations.keys.standing import KeysStanding
    from framework.plan.keys import Keys


def tell(keys: Keys, steps: Sequence[Step]) -> None:
    for step in steps:
        _specs.echo(f"{keys.name}: {step.says}")
        if step.left:
            click.echo("left to you:")
        for line in step.left:
            click.echo(f"  {line}")


def show(all_standings: Sequence[KeysStanding]) -> None:
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


def using(keys: Keys) -> str:
    """The command that uses the next key."""
    return f"sluice keys rotate {keys.name}{' --placed' if keys.lock.needs_person else ''}"


def state_and_task(standing: KeysStanding) -> tuple[str, str]:
    """How the keys are, and what a person is to do; empty if nothing."""
    keys = standing.keys
    rotate, by_hand = f"`sluice keys rotate {keys.name}`", f"`sluice keys new {keys.name} --by-hand`"
    former = [key for key in standing.all if key.state == "former"]
    if standing.error:
        return f"unknown, {standing.error.message}", standing.error.hint or "see to it"
    if any(key.state == "next" for key in standing.all):
        left = (
            f"{rotate} says what is left to you, `{using(keys)}` then uses it" if keys.lock.needs_person else f"{rotate} uses it"
        )
        return "a new key waits to be used", left
    if standing.current is None:
        return "there is no current key", f"{by_hand} takes one" if keys.lock.by_hand(keys) else f"{rotate} makes one"
    slots = keys.lock.slots(keys) if keys.lock.needs_person else None
    if slots and len(standing.all) >= slots and standing.overdue:
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


def document(standing: KeysStanding) -> dict[str, Any]:
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
