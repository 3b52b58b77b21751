"""Options and functions for the commands that read specs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from framework.base import hints
from framework.host.cli import _slim

if TYPE_CHECKING:
    from framework.core.context.context import Context
    from framework.plan import Pipeline, Plan

_GIVEN = "sluice.options"  # to this command


def given(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    ctx.meta.setdefault(_GIVEN, {})[param.name] = value
    return value


SPECS = click.option(
    "--specs",
    type=click.Path(path_type=Path),
    default=Path("specs"),
    show_default=True,
    callback=given,
    help="The folder with the specs.",
)
_ENV = click.option(
    "--env",
    "environment",
    default="local",
    show_default=True,
    envvar="SLUICE_ENV",
    show_envvar=True,
    callback=given,
    help="The environment, a folder of specs/environments.",
)


def _cold(_ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        os.environ["SLUICE_COLD"] = "1"


def set_up(plan: Plan | None = None) -> None:
    """Downloads the jars of Spark, and those of the plan's catalogs, where no other folder of this user has them."""
    from framework.base.home import home
    from framework.core.spark import session
    from framework.host.cli import setup

    _slim.needs("pyspark")
    more = session.more_sets(plan) if plan else ()
    if not setup.is_done(more):
        click.echo("some of what Spark needs is not here yet; this is done once for each user", err=True)
        with redirect_stdout(sys.stderr):
            setup.get(more)
    elif home().exists():  # a preview in a new folder writes nothing
        setup.folders()


_NEEDS_SPARK = "sluice.needs_spark"


def _with_jars(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        _slim.needs("pyspark")
        click.get_current_context().meta[_NEEDS_SPARK] = True
        return command(*arguments, **options)

    return run


_COLD = click.option(
    "--cold",
    is_flag=True,
    expose_value=False,
    callback=_cold,
    help="Start a Spark for this command alone, and do not use or leave behind one that waits for the next command.",
)


def with_specs(command: Callable[..., Any]) -> Callable[..., Any]:
    return SPECS(with_environment(command))


def with_spark(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that may need a Spark."""
    return with_specs(_COLD(_with_jars(command)))


def hinted(text: str) -> str:
    """A text whose commands have the options `--specs` and `--env` of this one."""
    context = click.get_current_context(silent=True)
    mine = context.meta.get(_GIVEN) if context else None
    if not mine:
        return text
    return hints.with_options(text, hints.options(mine.get("environment") or "local", mine.get("specs", Path("specs"))))


def echo(text: str, err: bool = False) -> None:
    """Prints a text whose commands need these options."""
    click.echo(hinted(text), err=err)


def hinted_in(document: Any) -> Any:
    """The same for the hints in a document of JSON."""
    if isinstance(document, list | tuple):
        return [hinted_in(each) for each in document]
    if isinstance(document, dict):
        return {
            name: hinted(value) if name in ("hint", "do") and isinstance(value, str) else hinted_in(value)
            for name, value in document.items()
        }
    return document


def with_environment(command: Callable[..., Any]) -> Callable[..., Any]:
    return _ENV(command)


def plan(specs: Path, environment: str, tables: bool = True) -> Plan:
    """The plan; for a command that may need a Spark, it has its jars, and with `tables` also those of the catalogs."""
    from framework.host.plans import make

    planned = make(specs, environment)
    context = click.get_current_context(silent=True)
    if context and context.meta.get(_NEEDS_SPARK):
        set_up(planned if tables else None)
    return planned


def plan_without_registries(specs: Path, environment: str, *names: str) -> Plan:
    """The plan of a command that needs no schema. A pipeline of `names` that cannot be planned so, since it reads the table of another
    one, needs the registry all the same."""
    from framework.host.plans import make_without_registries

    planned = make_without_registries(specs, environment)
    planned_names = {name for pipeline in planned.pipelines for name in (pipeline.name, pipeline.table.identifier)}
    return planned if planned_names.issuperset(names) else plan(specs, environment)


@contextmanager
def opened(specs: Path, environment: str, name: str) -> Iterator[tuple[Context, Pipeline]]:
    """The pipeline of this name, and what reads and writes its table until the command ends."""
    from framework.host import session

    with session.opened(plan(specs, environment), name) as opened_pipeline:
        yield opened_pipeline


def recorded(specs: Path, environment: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Pipelines, each with the name of its record; by their names alone where other specs have problems."""
    from framework.base.errors import SpecError

    try:
        return [(each.name, each.recorded_as) for each in chosen(plan(specs, environment), names)]
    except SpecError as error:
        from framework.host.plans import load
        from framework.plan.pipeline import recorded_as

        there = {name for kind, name in load(specs, environment).names if kind == "pipeline"}
        if not there.issuperset(names) or any(problem.code == "unknown-environment" for problem in error.problems):
            raise
        return [(name, recorded_as(environment, name)) for name in names]


def chosen(plan: Plan, names: Sequence[str]) -> tuple[Pipeline, ...]:
    from framework.plan import chosen

    return chosen.chosen(plan, names)
