"""Which services `sluice services up` starts where none is named: those at whose addresses the specs look for a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.host.cli._needed import name_ports, services_of

SHIPPED = Path(__file__).resolve().parents[2] / "specs"


@pytest.mark.parametrize(
    ("environment", "names"),
    [
        ("local", {"kafka", "mail", "registry"}),
        ("rest", {"kafka", "mail", "registry", "catalog", "s3"}),
        ("glue", {"kafka", "mail", "registry", "aws"}),
    ],
)
def test_the_shipped_specs_name_their_services(environment: str, names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("KAFKA", "REGISTRY", "MAIL_PORT"):
        monkeypatch.delenv(f"SLUICE_VAR_{variable}", raising=False)
    needed = services_of(SHIPPED, environment)
    assert (needed[0], set(needed)) == ("kafka", names)


def specs(folder: Path, text: str) -> Path:
    (folder / "specs").mkdir()
    (folder / "specs" / "main.yaml").write_text(text, encoding="utf-8")
    return folder / "specs"


def test_servers_of_other_machines_start_nothing_here(tmp_path: Path) -> None:
    text = "cluster: main\nbootstrap: kafka.example.com:19092\nregistry: https://registry.example.com:18081\n"
    mail = "---\nmail: main\nhost: smtp.example.com\nport: 1025\nfrom: a@example.com\n"
    assert services_of(specs(tmp_path, text + mail), "local") == ("kafka",)
    assert services_of(tmp_path / "none", "local") == ("kafka",)


def test_a_mistake_in_one_document_hides_no_service_of_another(tmp_path: Path) -> None:
    text = "cluster: main\nbootstrap: 127.0.0.1:19092\n---\nmail: main\nhost: localhost\nport: 1025\nfrom: a@example.com\ntls: none\n"
    assert services_of(specs(tmp_path, text + "---\ntopic: orders\nvalue: jsn\n---\nquite wrong\n"), "local") == ("kafka", "mail")


def test_the_store_of_an_export_is_a_service(tmp_path: Path) -> None:
    text = """\
export: weekly
from: {table: shop.orders}
file: {format: csv, to: "s3://sluice/weekly.csv"}
storage: {endpoint: "http://127.0.0.1:19100", region: us-east-1}
"""
    assert services_of(specs(tmp_path, text), "local") == ("kafka", "s3")


def test_ports_that_the_environment_chooses_are_those_of_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SLUICE_MAIL_PORT": "21025", "SLUICE_REGISTRY_PORT": "28081"}.items():
        monkeypatch.setenv(name, value)
    for variable in ("REGISTRY", "MAIL_PORT"):
        monkeypatch.setenv(f"SLUICE_VAR_{variable}", "")  # so that it is deleted again
        monkeypatch.delenv(f"SLUICE_VAR_{variable}")
    name_ports()
    assert set(services_of(SHIPPED, "local")) == {"kafka", "mail", "registry"}
