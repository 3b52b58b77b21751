"""`sluice metrics`: the numbers of tables for Prometheus."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from framework.host.cli import _complete, _specs
from framework.host.cli._interrupted import until_interrupted

if TYPE_CHECKING:
    from framework.host.spec_changes import SpecChanges
    from framework.plan import Plan

SECTION, ORDER = "see", 11
ALSO_CALLED = ("prometheus", "stats")


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete.pipelines)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=None,
    help="Answer `/metrics` there until it is stopped; default: print them once. Sluice's own port for this is 18185.",
)
@click.option("--rules", is_flag=True, help="Print rules for Prometheus instead: rates, and alerts.")
@click.option("--dashboard", is_flag=True, help="Print a dashboard for Grafana instead.")
@_specs.with_specs
def command(names: tuple[str, ...], port: int | None, rules: bool, dashboard: bool, specs: Path, environment: str) -> None:
    """Show the metrics of tables, as Prometheus reads them.

    Has those of all tables, or of NAME, a pipeline or its table; docs/metrics.md lists them. Reads Kafka and the catalogs; starts nothing
    and changes nothing. For those whose tables Dagster or a timer keeps up to date: `sluice stream` answers `/metrics` itself.

    With --port it answers on this machine alone, http://127.0.0.1:18185/metrics, and follows changes of the specs. Numbers are held for
    five seconds, however many ask.

    Exit status: 0; 1 if the specs have problems; 2 wrong usage.

    Example: sluice metrics --port 18185
    """
    if rules or dashboard:
        _print_file(names, port, rules, dashboard)
        return
    from framework.host.answers import answering
    from framework.host.prometheus.page import Page
    from framework.host.spec_changes import SpecChanges

    changes = SpecChanges(specs, environment)  # before the plan is made: nothing is missed
    plan = _specs.plan(specs, environment, tables=False)
    _specs.chosen(plan, names)
    page = Page(_LatestPlan(plan, changes).plan, partial(_specs.still_chosen, names))
    if port is None:
        click.echo(page.answer().body, nl=False)
        return
    with until_interrupted() as stop, answering(port, {"/metrics": page.answer}) as address:
        click.echo(f"{address}/metrics: the metrics of {len(_specs.still_chosen(names, plan))} tables. Ctrl-C stops it")
        stop.wait()


def _print_file(names: tuple[str, ...], port: int | None, rules: bool, dashboard: bool) -> None:
    """Prints a file for Prometheus or Grafana, for which no specs are needed."""
    from framework.host.prometheus import dashboard as dashboard_file, rules as rules_file

    if names or port or (rules and dashboard):
        raise click.UsageError("--rules and --dashboard each stand alone: they print a file that is the same for all tables")
    click.echo((rules_file if rules else dashboard_file).text(), nl=False)


class _LatestPlan:
    """The plan of specs that may change. Those with problems are not taken over, which is said once."""

    def __init__(self, plan: Plan, changes: SpecChanges) -> None:
        self._plan, self._changes = plan, changes

    def plan(self) -> Plan:
        from framework.base.errors import SpecError

        changed = self._changes.plan()
        if isinstance(changed, SpecError):
            _specs.echo(f"the specs changed, and have problems; the metrics are those of the specs before: {changed}", err=True)
        elif changed is not None:
            self._plan = changed
        return self._plan
