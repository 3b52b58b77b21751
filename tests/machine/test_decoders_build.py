"""The jar of our own decoders: built once for its sources, the same each time, by javac and by ECJ."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from framework.base.errors import SetupError
from framework.machine.jvm import build

ROOT = Path(__file__).resolve().parents[2]


def test_the_jars_name_changes_with_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.jar(tmp_path).name
    sources = tmp_path / "sources"
    sources.mkdir()
    for source in build.SOURCES.glob("*.java"):
        (sources / source.name).write_bytes(source.read_bytes())
    monkeypatch.setattr(build, "SOURCES", sources)  # they are a part of the package
    assert build.jar(tmp_path).name == before
    with open(sources / "Times.java", "a") as file:
        file.write("\n")
    assert build.jar(tmp_path).name != before


@pytest.mark.slow
@pytest.mark.long
def test_it_is_built_once_and_the_jar_of_other_sources_goes(tmp_path: Path, sluice_home: Path) -> None:
    old_jar = tmp_path / "sluice-decoders-0123456789abcdef.jar"
    old_jar.write_bytes(b"")
    jar = build.build(tmp_path)
    assert [path.name for path in tmp_path.glob("*.jar")] == [jar.name]
    before = jar.stat()
    assert build.build(tmp_path) == jar
    assert jar.stat() == before
    second_jar = build.build(tmp_path / "again")
    assert second_jar.read_bytes() == jar.read_bytes()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("building-")]


@pytest.mark.slow
def test_what_does_not_compile_is_a_named_error(tmp_path: Path, sluice_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Wrong.java").write_text("package sluice; final class Wrong { int x = ; }")
    monkeypatch.setattr(build, "SOURCES", tmp_path)  # they are a part of the package
    with pytest.raises(SetupError, match=r"the decoders do not compile: .*Wrong.java:1") as error:
        build.build(tmp_path / "out")
    assert error.value.code == "jar-build"
    assert list((tmp_path / "out").glob("*.jar")) == []


@pytest.mark.slow
def test_ecj_compiles_it_too(tmp_path: Path, sluice_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine's Java may have no compiler. The classes have other bytes than those that `make setup` compiled, and the same names."""
    by_javac = build.built()
    command = [*build.ecj(), f"-{build.RELEASE}", "-proc:none", "-nowarn"]
    monkeypatch.setattr(build, "compiler", lambda: command)  # this machine may have javac
    by_ecj = build.build(tmp_path)
    names = [
        {name.removesuffix(".class").split("$")[0] for name in zipfile.ZipFile(jar).namelist()} for jar in (by_javac, by_ecj)
    ]
    assert names[0] == names[1]
