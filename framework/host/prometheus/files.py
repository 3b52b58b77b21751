"""The files that Prometheus reads on this machine."""

from __future__ import annotations

from collections.abc import Collection

from framework.base.home import private, put
from framework.host.prometheus import rules
from framework.machine.services.prometheus import RULES, SERVICE


def provide(names: Collection[str]) -> None:
    """Gives the rules to the Prometheus of `sluice services`, if that is among the services to start."""
    if SERVICE.name in names:
        put(private("services", SERVICE.name, RULES) / "sluice.yml", rules.text())
