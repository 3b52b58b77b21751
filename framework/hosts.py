"""Which addresses are this machine itself: only there may a login travel unencrypted, and only there no proxy is asked."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Of a host without its port. A name is looked up nowhere: what it means is for others to say."""
    host = host.strip("[]").lower()
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def url_is_loopback(url: str) -> bool:
    return is_loopback(urlsplit(url).hostname or "")


def others(addresses: str) -> tuple[str, ...]:
    """Those of Kafka's addresses (`host:port` with commas between) that are other machines."""
    hosts = (each.strip() for each in addresses.split(","))
    return tuple(each for each in hosts if not is_loopback(each.rpartition(":")[0]))
