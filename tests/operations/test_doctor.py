"""Doctor and the search for Java, on machines that lack something."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from framework.base.errors import SetupError
from framework.host.cli import main
from framework.host.plans import make
from framework.machine.java import java
from framework.machine.services.ports import free_port
from framework.operations.prepare import doctor
from framework.operations.prepare.preflight import preflight
from framework.systems.catalogs import PROBE
from tests.support.fake_java import fake_java
from tests.support.mail_server import mail_server
from tests.support.rest_catalog import DOCUMENT, STORAGE, login


@pytest.mark.parametrize(
    ("says", "status", "code", "part"),
    [
        ('openjdk version "11.0.2" 2019-01-15', 0, "java-version", "11.0.2"),
        ('java version "1.8.0_392"', 0, "java-version", "1.8.0_392"),
        ('openjdk version "25" 2025-09-16', 0, "java-version", "version 25"),
        ("Unable to locate a Java Runtime.", 1, "java-missing", "Unable to locate"),
    ],
)
def test_an_unsupported_java_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, status: int, code: str, part: str
) -> None:
    home = fake_java(tmp_path / "jdk", says, status)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(SetupError) as error:
        java.java()
    assert error.value.code == code and error.value.hint
    assert part in error.value.message and f"JAVA_HOME ({home})" in error.value.message


def test_java_home_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = 'Picked up JAVA_TOOL_OPTIONS: -Dx="1.2"\nopenjdk version "21.0.5" 2024-10-15'
    home = fake_java(tmp_path / "jdk", says)
    fake_java(tmp_path / "old", 'openjdk version "11.0.2"')
    monkeypatch.setenv("PATH", str(tmp_path / "old" / "bin"), prepend=":")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert (java.java(), java.installed().home, java.installed().version) == (home / "bin" / "java", home, "21.0.5")
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(SetupError, match=r"11\.0\.2"):
        java.java()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="no Java found"):
        java.java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="no bin/java in it"):
        java.java()


def test_doctor_lists_every_problem_with_a_hint_and_downloads_nothing(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", 'openjdk version "11.0.2" 2019-01-15')
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        environment = {
            "JAVA_HOME": str(home),
            "SLUICE_HOME": str(tmp_path / "home"),
            "SLUICE_KAFKA_PORT": str(port - 1),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        }
        result = CliRunner().invoke(main, ["doctor"], env=environment)
    assert result.exit_code == 1
    lines = result.output.splitlines()
    for start, part in (
        ("ok       Python", ""),
        ("problem  Java", "11.0.2"),
        ("problem  spark jars", "iceberg-spark-runtime"),
        ("problem  kafka jars", "and 45 more"),
        ("problem  decoders", "not on this machine"),
        ("problem  kafka ports", f"{port} by process"),
        ("ok       memory", "GiB"),
    ):
        (line,) = (line for line in lines if line.startswith(start))
        assert part in line
        assert not line.startswith("problem") or "hint: " in lines[lines.index(line) + 1]
        assert " jars" not in line or "hint: `sluice setup` downloads them" in lines[lines.index(line) + 1]
    assert lines[-1].endswith("problems") and not (tmp_path / "home").exists()
    assert "\x1b" not in result.output


def test_a_package_of_another_version_is_a_problem() -> None:
    click_version = metadata.version("click")
    match = doctor.packages([f"click=={click_version}", "pyyaml>=6", 'dagster-aws==0.0.1; extra == "aws"'])
    assert match.ok and match.state == f"click {click_version}"
    assert doctor.packages(["dagster<1.14,>=1.13.27", "dagster-pyspark<0.30,>=0.29.27", "click>=8,<100"]).ok
    outside = doctor.packages(["dagster<2.7,>=2.6", "click<8.1,>=8", "nosuchpackage<2,>=1"])
    assert not outside.ok
    assert outside.state.startswith(f"dagster is {metadata.version('dagster')}, <2.7,>=2.6 is needed; click is {click_version}, ")
    assert outside.state.endswith("; nosuchpackage is missing, <2,>=1 is needed")
    mismatch = doctor.packages(["click==0.1", "nosuchpackage[some,more]==1.0"])
    assert mismatch.state == f"click is {click_version}, 0.1 is needed; nosuchpackage is missing, 1.0 is needed"
    assert not mismatch.ok


def test_free_ports_are_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    port = free_port(2)
    monkeypatch.setenv("SLUICE_KAFKA_PORT", str(port))
    assert [finding.state for finding in doctor.check_ports()] == [f"{port}, {port + 1} free"]


def test_the_ports_are_those_that_the_specs_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SLUICE_KAFKA_PORT", raising=False)
    Path("specs/environments/prod").mkdir(parents=True)
    port = free_port(2)
    Path("specs/main.yaml").write_text(f"cluster: main\nbootstrap: 127.0.0.1:{port}\n")
    Path("specs/environments/prod/main.yaml").write_text("cluster: main\nbootstrap: kafka.example.com:9092\n")
    assert re.search(rf"ok +kafka ports +{port}, {port + 1} free", CliRunner().invoke(main, ["doctor"]).output)
    with socket.create_server(("127.0.0.1", port)):
        assert re.search(rf"problem +kafka ports .*\b{port} by process", CliRunner().invoke(main, ["doctor"]).output)
    monkeypatch.setenv("SLUICE_ENV", "nowhere")
    assert "kafka ports" in CliRunner().invoke(main, ["doctor"]).output


SPEC = """
cluster: main
bootstrap: {kafka}
---
{rest}---
catalog: local
type: sql
uri: sqlite:///.sluice/lake.db
warehouse: .sluice/warehouse
---
catalog: bucket
type: sql
uri: sqlite:///.sluice/bucket.db
warehouse: s3://sluice/doctor
{storage}
---
mail: main
host: 127.0.0.1
port: {mail}
from: sluice@example.com
tls: none
---
topic: preflight
value: json
columns: {{id: bigint}}
---
pipeline: preflight
from: {{topic: preflight}}
into: {{table: shop.preflight, catalog: bucket}}
"""


@pytest.mark.kafka
@pytest.mark.long
def test_what_the_specs_name_is_tried(
    kafka: str, rest_catalog: str, quick_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    login(monkeypatch)
    Path("specs").mkdir()

    def findings(**replacements: str) -> dict[str, str]:
        with mail_server() as (_, port):
            addresses = {"kafka": kafka, "catalog": rest_catalog, "store": quick_store, "mail": str(port), **replacements}
            rest = DOCUMENT.format(name="lake", uri=addresses["catalog"], store=addresses["store"])
            spec = SPEC.format(
                kafka=addresses["kafka"], mail=addresses["mail"], rest=rest, storage=STORAGE.format(store=addresses["store"])
            )
            Path("specs/a.yaml").write_text(spec)
            return {
                finding.subject: finding.state
                for finding in preflight(make(Path("specs")))
                if bool(finding.hint) is bool(replacements)
            }

    assert "no topic `preflight`" in findings(kafka=kafka)["cluster main"]
    subprocess.run([Path(sys.executable).with_name("sluice"), "topics", "create", "preflight"], check=True, capture_output=True)
    fine = findings()
    assert fine["cluster main"] == f"{kafka}, 1 topic can be read"
    assert fine["catalog lake"].startswith(rest_catalog)
    assert fine["catalog local"] == "is created by the first run, 0 tables"
    assert fine["files of bucket"] == "s3://sluice/doctor: a file can be written, read, listed and deleted"
    assert fine["files of local"] == "no pipeline has its table here"
    assert fine["files of lake"] == "no pipeline has its table here"
    assert fine["aws jars"] == "1 jar for object stores"
    assert fine["mail main"].endswith("answers")
    assert [path.name for path in tmp_path.rglob("*") if path.name.startswith(PROBE)] == []
    assert "does not answer" in findings(kafka="127.0.0.1:1")["cluster main"]
    assert "does not answer" in findings(catalog="http://127.0.0.1:1/api")["catalog lake"]
    assert (
        "s3:PutObject: the object store at http://127.0.0.1:1 does not answer"
        in findings(store="http://127.0.0.1:1")["files of bucket"]
    )
    assert "did not take it" in findings(mail="1")["mail main"]
    monkeypatch.setenv("SLUICE_SECRET_OC_SECRET", "another")
    assert "401" in findings(kafka=kafka)["catalog lake"]
