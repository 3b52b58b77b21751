"""Real servers on this machine, for demos and tests: one file per service, found by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from framework.base.components import components_in
from framework.base.errors import SetupError
from framework.base.home import home, private
from framework.machine.processes import memory
from framework.machine.services import process
from framework.machine.services.process import Process, Service

USUAL = "kafka"  # which starts where none is named


@dataclass(frozen=True, kw_only=True)
class ServiceState:
    """A service now. After `up` or `down`, `changed` says whether that call started or stopped it."""

    name: str
    state: str  # running | not answering | stopped
    pid: int | None = None
    address: str | None = None
    memory: int | None = None
    page: str | None = None
    changed: bool = False


def services() -> dict[str, Service]:
    """Every service by name: the modules of this package that define one."""
    modules = components_in(__name__).load_all().values()
    return {module.SERVICE.name: module.SERVICE for module in modules if hasattr(module, "SERVICE")}


def folder(name: str) -> Path:
    """The folder with a service's data, log and pid file."""
    return home() / "services" / name


def up(names: Iterable[str] = (), say: Callable[[str], object] = lambda _: None) -> tuple[ServiceState, ...]:
    """Start the named services that do not run yet; without names, Kafka.

    If one fails, the services that this call started are stopped.
    """
    states: list[ServiceState] = []
    try:
        for service in _named(tuple(names) or (USUAL,)):
            place = folder(service.name)
            if service.get is not None and process.running(place) is None:
                service.get(say)
            with process.turn(private("services", service.name)):
                running_server = process.running(place)
                server = running_server or process.start(service, place, service.ports())
            states.append(_state(service, server, changed=running_server is None))
    except BaseException:
        if started := [state.name for state in states if state.changed]:
            down(started)
        raise
    return tuple(states)


def down(names: Iterable[str] = ()) -> tuple[ServiceState, ...]:
    """Stop the named services, or all."""
    states = []
    for service in _named(names):
        place = folder(service.name)
        if not place.exists():
            states.append(ServiceState(name=service.name, state="stopped"))
            continue
        with process.turn(place):
            stopped_server = process.stop(place)
        states.append(
            ServiceState(
                name=service.name,
                state="stopped",
                pid=stopped_server.pid if stopped_server else None,
                changed=stopped_server is not None,
            )
        )
    return tuple(states)


def status(names: Iterable[str] = ()) -> tuple[ServiceState, ...]:
    """The state of the named services, or of all."""
    return tuple(_state(service, process.running(folder(service.name))) for service in _named(names))


def _named(names: Iterable[str]) -> tuple[Service, ...]:
    by_name = services()
    service_names = tuple(dict.fromkeys(names)) or tuple(by_name)
    for name in service_names:
        if name not in by_name:
            raise SetupError("unknown-service", f"there is no service named {name}", f"one of: {', '.join(by_name)}")
    return tuple(by_name[name] for name in service_names)


def _state(service: Service, server: Process | None, changed: bool = False) -> ServiceState:
    if server is None:
        return ServiceState(name=service.name, state="stopped", changed=changed)
    word = "running" if service.answers(server.ports[0]) else "not answering"
    page = service.page(server.ports) if service.page else None
    return ServiceState(
        name=service.name,
        state=word,
        pid=server.pid,
        address=server.address,
        memory=memory(server.pid),
        page=page,
        changed=changed,
    )
