"""Specs with keys, and a file with their secrets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from framework.host.plans import make
from framework.plan import Plan

_STORE = "secrets: main\nstore: file\npath: .sluice/secrets\n---\n"


def write(specs: str, secrets: Mapping[str, str]) -> Plan:
    """Writes the specs and the secrets into the current folder, and plans them."""
    Path("specs").mkdir(exist_ok=True)
    Path("specs/a.yaml").write_text(_STORE + specs, encoding="utf-8")
    path = Path(".sluice/secrets")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text("# of the shop\n" + "".join(f"{name}={text}\n" for name, text in secrets.items()) + "other=stays\n")
    path.chmod(0o600)
    return make(Path("specs"))
