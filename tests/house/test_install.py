"""The wheels that `make wheel` builds, installed where there is no clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from framework.machine.jvm import build
from framework.machine.services.ports import free_port

pytestmark = [pytest.mark.long, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of a copy of the sources, since this clone's tests would use a jar that was built next to its sources."""
    sources = tmp_path_factory.mktemp("sources")
    for name in ("framework", "pipelines", "sluice", "deploy", "pyproject.toml", "README.md", "LICENSE"):
        ignored = shutil.ignore_patterns("__pycache__", "built", "build")
        source = ROOT / name
        shutil.copytree(source, sources / name, ignore=ignored) if source.is_dir() else shutil.copy(source, sources)
    for command in (
        (sys.executable, "-m", "framework.machine.jvm.build"),
        (*PIP, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", ".", "./deploy/slim"),
    ):
        subprocess.run(command, cwd=sources, check=True, env={**os.environ, "PYTHONPATH": str(sources)})
    return sources / "dist"


@pytest.mark.parametrize("name", ["sluice", "sluice_slim"])
def test_a_wheel_has_the_decoders_compiled(wheels: Path, name: str) -> None:
    with zipfile.ZipFile(next(wheels.glob(f"{name}-*.whl"))) as archive:
        assert f"framework/machine/jvm/built/{build.jar(Path()).name}" in archive.namelist()
        assert any(file.endswith("/LICENSE") for file in archive.namelist())
        assert {"framework/machine/java/jars.lock", "sluice/dagster.py", "sluice/steps.py", "pipelines/definitions.py"} <= set(
            archive.namelist()
        )


@pytest.mark.parametrize(("name", "does"), [("sluice", "test"), ("sluice_slim", "check")])
def test_a_wheel_does_it_in_an_empty_folder(wheels: Path, tmp_path: Path, name: str, does: str) -> None:
    """Runs the command in another environment, which has the packages of this one but for Sluice."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"))
    wheel = next(wheels.glob(f"{name}-*.whl"))
    subprocess.run([*PIP, "--python", environment, "install", "--quiet", "--no-deps", wheel], check=True)
    (tmp_path / "shop").mkdir()
    variables = {
        variable: value for variable, value in os.environ.items() if not variable.startswith(("SLUICE_HOME", "PYTHONPATH"))
    }
    variables |= {"SLUICE_KAFKA_PORT": str(free_port(2))}

    def run(*command: str) -> str:
        ended = subprocess.run(
            [environment / "bin" / "sluice", *command], cwd=tmp_path / "shop", text=True, check=False,
            env=dict(variables),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout
        return ended.stdout

    assert "wrote .gitignore, specs/main.yaml, specs/orders.yaml" in run("init")
    assert {"check": "no problems", "test": "1 passed"}[does] in run(does)
    if name == "sluice":
        assert "Dagster materializes every table" in run("demo")
        assert "true" in run("query", "select count(*) > 9000 as many from shop.orders")


def test_the_wheel_resolves_beside_the_newest_dagster_and_its_private_names_mean_the_same(wheels: Path, tmp_path: Path) -> None:
    """Installs into an environment that sees the packages of this one; pip adds the newest Dagster that Sluice accepts."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"))
    install = (*PIP, "--python", environment, "install", "--quiet", "--upgrade")
    subprocess.run([*install, next(wheels.glob("sluice-*.whl")), "dagster>=1.13.27,<1.14", "dagster-webserver"], check=True)

    def run(*command: str) -> str:
        python = str(environment / "bin" / "python")
        ended: subprocess.CompletedProcess[str]
        ended = subprocess.run([python, *command], cwd=ROOT, check=True, text=True, capture_output=True)
        return ended.stdout

    names = ("dagster", "dagster-webserver", "dagster-pyspark", "dagster-aws")
    listed = run("-c", f"from importlib.metadata import version; print(*map(version, {names!r}))")
    releases = [version.split(".") for version in listed.split()]
    assert [release[:2] for release in releases] == [["1", "13"], ["1", "13"], ["0", "29"], ["0", "29"]]
    assert len({release[2] for release in releases}) == 1, "of one release"
    assert " passed" in run(
        "-m", "pytest", "-p", "no:cacheprovider", "tests/host/test_dagster_private.py", "tests/host/test_freshness_policies.py"
    )
