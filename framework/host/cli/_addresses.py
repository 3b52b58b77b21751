"""The ports of this machine's services: those that the specs name, so that what is started is what the specs use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from framework.base.hosts import is_loopback

if TYPE_CHECKING:
    from framework.machine.services import ServiceState


_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class NamedAddress:
    """An address that a document of the specs names for a service."""

    service: str
    document: str
    host: str
    port: int

    @property
    def is_here(self) -> bool:
        return is_loopback(self.host)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


def named(specs: Path, environment: str) -> tuple[NamedAddress, ...]:
    """The addresses of the specs; none where there are no specs. Nothing is asked of a registry, which may not run yet."""
    from framework.base.errors import SpecError
    from framework.documents.draft import Draft
    from framework.host.plans import load, plan_documents

    if not specs.is_dir():
        return ()
    written = load(specs, environment)
    unknown = [problem for problem in written.problems if problem.code == "unknown-environment"]
    if unknown:
        raise SpecError(unknown)
    draft = plan_documents(Draft(written=written, problems=[]), "cluster", "catalog")
    addresses = [address for cluster in draft.clusters.values() for address in _of_cluster(cluster)]
    return (*addresses, *(address for catalog in draft.catalogs.values() for address in _of_catalog(catalog)))


@contextmanager
def used(addresses: Sequence[NamedAddress]) -> Iterator[None]:
    """Let services start at the ports that the specs name on this machine. A port that the user set stays."""
    from framework.machine.services import services

    ports = {address.service: str(address.port) for address in reversed(addresses) if address.is_here}
    new_variables = {
        services()[name].variable: port for name, port in ports.items() if not os.environ.get(services()[name].variable)
    }
    os.environ.update(new_variables)
    try:
        yield
    finally:
        for variable in new_variables:
            del os.environ[variable]


def remarks(addresses: Sequence[NamedAddress], state: ServiceState) -> Iterator[str]:
    """Remarks about a started service that is not at the address of the specs."""
    named_addresses = [address for address in addresses if address.service == state.name]
    if (
        state.address is None
        or not named_addresses
        or any(_port(state.address) == address.port for address in named_addresses if address.is_here)
    ):
        return
    address = named_addresses[0]
    yield f"{state.name}: {address.document} names {address.address}, {_why(address, state)}"


def _why(address: NamedAddress, state: ServiceState) -> str:
    from framework.machine.services import services

    if not address.is_here:
        return "which is another machine: pipelines of these specs do not use what was started here"
    if state.changed:
        return f"and {services()[state.name].variable} chose this port: pipelines of these specs do not use it"
    return f"and it runs at another port: `sluice services down {state.name}`, then start it again"


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _of_cluster(cluster: Any) -> Iterator[NamedAddress]:
    document = f"the cluster `{cluster.name}`"
    for address in cluster.bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if port.isdecimal():
            yield NamedAddress("kafka", document, host, int(port))
    yield from _of_url("registry", document, cluster.registry)


def _of_catalog(catalog: Any) -> Iterator[NamedAddress]:
    """The addresses of a catalog: `endpoint` of Glue, `uri` of a server with Iceberg's protocol, and its object store's in `storage`."""
    document, options = f"the catalog `{catalog.name}`", catalog.options
    glue = getattr(options, "endpoint", None)
    yield from _of_url("aws", document, glue)
    yield from _of_url("catalog", document, getattr(options, "uri", None))
    store = getattr(getattr(options, "storage", None), "endpoint", None)
    if store != glue:
        yield from _of_url("s3", document, store)


def _of_url(service: str, document: str, url: str | None) -> Iterator[NamedAddress]:
    parts = urlsplit(url or "")
    if parts.scheme in _PORTS and parts.hostname:
        yield NamedAddress(service, document, parts.hostname, parts.port or _PORTS[parts.scheme])
