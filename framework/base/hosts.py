"""Addresses of this machine itself: only to these may a login travel unencrypted, and only these are reached without a proxy."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether a host, without its port, is this machine. Names are not resolved."""
    host = host.strip("[]").lower()
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def url_is_loopback(url: str) -> bool:
    return is_loopback(urlsplit(url).hostname or "")


def port_here(address: str) -> int | None:
    """The port of an address, `host:port` or a URL, on this machine; None for another machine's and for text that is no address."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        return parts.port if is_loopback(parts.hostname or "") else None
    except ValueError:
        return None


def is_open(url: str | None) -> bool:
    """Whether others on the network can read what is sent to this address."""
    return url is not None and url.startswith("http:") and not url_is_loopback(url)


def remote_addresses(addresses: str) -> tuple[str, ...]:
    """The Kafka addresses (`host:port` with commas between) of other machines."""
    hosts = (address.strip() for address in addresses.split(","))
    return tuple(address for address in hosts if not is_loopback(address.rpartition(":")[0]))
