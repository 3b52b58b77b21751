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

_OPTIONS_KEY = "sluice.options"  # of the command's options in click's context


def keep_option(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    ctx.meta.setdefault(_OPTIONS_KEY, {})[param.name] = value
    return value


SPECS = click.option(
    "--specs",
    type=click.Path(path_type=Path),
    default=Path("specs"),
    show_default=True,
    callback=keep_option,
    help="The folder with the specs.",
)
_ENV = click.option(
    "--env",
    "environment",
    default="local",
    show_default=True,
    envvar="SLUICE_ENV",
    show_envvar=True,
    callback=keep_option,
    help="The environment, a folder of specs/environments.",
)


def _cold(_ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        os.environ["SLUICE_COLD"] = "1"


def set_up(plan: Plan | None = None) -> None:
    """Downloads the jars of Spark and of the plan's catalogs, unless another folder of this user has them."""
    from framework.base.home import home
    from framework.core.spark import session
    from framework.host.cli import setup

    _slim.needs("pyspark")
    jar_sets = session.more_sets(plan) if plan else ()
    if not setup.is_done(jar_sets):
        click.echo("some of what Spark needs is not here yet; this is done once for each user", err=True)
        with redirect_stdout(sys.stderr):
            setup.get(jar_sets)
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
    """The text, in which each command gets the options `--specs` and `--env` of the current command."""
    context = click.get_current_context(silent=True)
    own_options = context.meta.get(_OPTIONS_KEY) if context else None
    if not own_options:
        return text
    return hints.with_options(
        text, hints.options(own_options.get("environment") or "local", own_options.get("specs", Path("specs")))
    )


def echo(text: str, err: bool = False) -> None:
    """Prints a text, in which each command gets the options `--specs` and `--env` of the current command."""
    click.echo(hinted(text), err=err)


def hinted_in(document: Any) -> Any:
    """Like `hinted()`, for the hints in a JSON document."""
    if isinstance(document, list | tuple):
        return [hinted_in(item) for item in document]
    if isinstance(document, dict):
        return {
            name: hinted(value) if name in ("hint", "do") and isinstance(value, str) else hinted_in(value)
            for name, value in document.items()
        }
    return document


def with_environment(command: Callable[..., Any]) -> Callable[..., Any]:
    return _ENV(command)


def plan(specs: Path, environment: str, tables: bool = True) -> Plan:
    """The plan. For a command that may need Spark, the jars are downloaded, too; with `tables` also those of the catalogs."""
    from framework.host.plans import make

    planned = make(specs, environment)
    context = click.get_current_context(silent=True)
    if context and context.meta.get(_NEEDS_SPARK):
        set_up(planned if tables else None)
    return planned


def plan_without_registries(specs: Path, environment: str, *names: str) -> Plan:
    """The plan of a command that needs no schema. The registries are asked all the same if a pipeline of `names` cannot be
    planned without them, since it reads the table of another one."""
    from framework.host.plans import make_without_registries

    planned = make_without_registries(specs, environment)
    planned_names = {name for pipeline in planned.pipelines for name in (pipeline.name, pipeline.table.identifier)}
    return planned if planned_names.issuperset(names) else plan(specs, environment)


@contextmanager
def opened(specs: Path, environment: str, name: str) -> Iterator[tuple[Context, Pipeline]]:
    """The pipeline of this name, and the context that reads and writes its table until the command ends."""
    from framework.host import session

    with session.opened(plan(specs, environment), name) as opened_pipeline:
        yield opened_pipeline


def recorded(specs: Path, environment: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """The names of pipelines, each with the name of its record. If other specs have problems, the names are enough."""
    from framework.base.errors import SpecError

    try:
        return [(pipeline.name, pipeline.journal_name) for pipeline in chosen(plan(specs, environment), names)]
    except SpecError as error:
        from framework.host.plans import load
        from framework.plan.pipeline import journal_name

        existing_names = {name for kind, name in load(specs, environment).names if kind == "pipeline"}
        if not existing_names.issuperset(names) or any(problem.code == "unknown-environment" for problem in error.problems):
            raise
        return [(name, journal_name(environment, name)) for name in names]


def chosen(plan: Plan, names: Sequence[str]) -> tuple[Pipeline, ...]:
    from framework.plan import chosen

    return chosen.chosen(plan, names)


def still_chosen(names: Sequence[str], plan: Plan) -> Sequence[Pipeline]:
    """The pipelines of these names that a later plan has, or of these tables; all of them without names."""
    all_names = {name for pipeline in plan.pipelines for name in (pipeline.name, pipeline.table.identifier)}
    existing_names = [name for name in names if name in all_names]
    return chosen(plan, existing_names) if existing_names or not names else ()
