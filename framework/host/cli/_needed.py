"""The services of this machine that specs need."""

from __future__ import annotations

import os
from pathlib import Path

from framework.base.hosts import port_here
from framework.machine import services


def name_ports() -> None:
    """Let `${var:REGISTRY}` and `${var:MAIL_PORT}` of the shipped specs be the ports of this machine's services, unless they are set."""
    from framework.machine.services import mail, registry

    os.environ.setdefault("SLUICE_VAR_REGISTRY", f"http://127.0.0.1:{registry.ports()[0]}{registry.API}")
    os.environ.setdefault("SLUICE_VAR_MAIL_PORT", str(mail.ports()[0]))


def services_of(specs: Path, environment: str) -> tuple[str, ...]:
    """The names of Kafka and of each service at whose address the specs look for a server. Documents with problems are left out."""
    from framework.host.plans import load

    documents = load(specs, environment).documents if specs.is_dir() else ()
    values = (document.value for document in documents if document.value is not None)
    ports = {port_here(address) for value in values for address in value.servers() if address}
    named = (service.name for service in services.services().values() if service.ports()[0] in ports)
    return tuple(dict.fromkeys((services.USUAL, *named)))
