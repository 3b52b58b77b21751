"""The modules of Terraform whose providers are not here, held against what their published schemas have."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import hcl2
import pytest
from click.testing import CliRunner

from framework.base.errors import SpecError
from infra.deploy import settings
from infra.deploy.__main__ import main as deploy
from infra.deploy.terraform import Terraform
from tests.support.repository import ROOT

SCHEMAS = Path(__file__).parent / "schemas"
MODULES = ("confluent", "snowflake")
OF_TERRAFORM = {"count", "for_each", "depends_on", "lifecycle", "provider"}
_REFERENCE = re.compile(r"\b(data\.)?((?:confluent|snowflake)_\w+)\.(\w+)(\[[^\]]*\])?(?:\.(\w+))?")


def parts(module: str, kind: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The type, the name and the content of each block of a kind, such as `resource`."""
    for path in sorted((ROOT / "infra" / module).glob("*.tf")):
        with path.open(encoding="utf-8") as file:
            document = hcl2.load(file)
        for block in document.get(kind, ()):
            ((type_, named),) = ((name, value) for name, value in block.items() if name != "__is_block__")
            ((name, content),) = ((name, value) for name, value in named.items() if name != "__is_block__")
            yield type_.strip('"'), name.strip('"'), content


def schema(module: str) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads((SCHEMAS / f"{module}.json").read_text(encoding="utf-8"))
    return document


def wrong(place: str, content: Mapping[str, Any], declared: Mapping[str, Any]) -> Iterator[str]:
    """The arguments of a block that the schema does not have, and those that are missing."""
    names = {name.strip('"') for name in content} - {"__is_block__", "__comments__", "dynamic"} - OF_TERRAFORM
    dynamic = {
        name.strip('"'): block for item in content.get("dynamic", ()) for name, block in item.items() if isinstance(block, dict)
    }
    for name in sorted(names - {*declared["required"], *declared["optional"], *declared["blocks"]}):
        yield f"{place}: `{name}` is no argument"
    for name in sorted({*declared["required"]} - names - dynamic.keys()):
        yield f"{place}: `{name}` is missing"
    for name, block in dynamic.items():
        if name not in declared["blocks"]:
            yield f"{place}: `{name}` is no block"
        else:
            yield from wrong(f"{place}.{name}", block["content"][0], declared["blocks"][name])
    for name in names & declared["blocks"].keys():
        for block in content[name]:
            yield from wrong(f"{place}.{name}", block, declared["blocks"][name])


@pytest.mark.parametrize("module", MODULES)
def test_all_arguments_are_in_the_schema(module: str) -> None:
    declared = schema(module)
    blocks = [(kind, *part) for kind in ("resource", "data") for part in parts(module, kind)]
    problems = [
        problem
        for kind, type_, name, content in blocks
        for problem in wrong(f"{kind} {type_}.{name}", content, declared[f"{kind} {type_}"])
    ]
    assert blocks and problems == []
    text = (ROOT / "infra" / module / "versions.tf").read_text(encoding="utf-8")
    provider = declared["provider"]
    assert f'"{provider["source"]}"' in text and f'"{provider["version"]}"' in text, "the schema is that of the pinned version"


@pytest.mark.parametrize("module", MODULES)
def test_what_others_read_of_a_resource_is_there(module: str) -> None:
    declared, names = (
        schema(module),
        {(kind, type_): set[str]() for kind in ("resource", "data") for type_, _, _ in parts(module, kind)},
    )
    for kind in ("resource", "data"):
        for type_, name, _ in parts(module, kind):
            names[kind, type_].add(name)
    for path in sorted((ROOT / "infra" / module).glob("*.tf")):
        for data, type_, name, _, attribute in _REFERENCE.findall(path.read_text(encoding="utf-8")):
            kind = "data" if data else "resource"
            assert name in names[kind, type_], f"{path.name}: there is no {type_}.{name}"
            of_type = declared[f"{kind} {type_}"]
            assert not attribute or attribute in {*of_type["required"], *of_type["optional"], *of_type["read"]}, (
                f"{type_} has no {attribute}"
            )


@pytest.mark.parametrize("module", MODULES)
def test_the_schema_finds_mistakes(module: str) -> None:
    kind, declared = next(item for item in schema(module).items() if item[0] != "provider")
    content: dict[str, Any] = {name: [{}] if name in declared["blocks"] else "x" for name in declared["required"]} | {
        "colour": "red"
    }
    assert f"{kind}: `colour` is no argument" in set(wrong(kind, content, declared))
    assert list(wrong(kind, {}, declared)) == [f"{kind}: `{name}` is missing" for name in sorted(declared["required"])]


@pytest.mark.parametrize("module", ["aws", *MODULES])
def test_all_variables_are_declared_and_explained(module: str) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "infra" / module).glob("*.tf"))
    used, declared = set(re.findall(r"\bvar\.(\w+)", text)), {*settings.declared(module), settings.ENVIRONMENT}
    assert used == declared
    assert text.count("\n  description = ") >= len(declared)


def test_a_mistake_in_any_module_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Environments are files of the clone.
    monkeypatch.setattr(settings, "ENVIRONMENTS", tmp_path)
    (tmp_path / "prod.yaml").write_text("confluent: {topic: [orders]}\nsnowflake: {schema: [SHOP]}\n")
    with pytest.raises(SpecError) as refused:
        settings.read("prod")
    assert {problem.hint for problem in refused.value.problems} == {"did you mean `topics`?", "did you mean `schemas`?"}
    (tmp_path / "prod.yaml").write_text("confluent: {topics: [orders]}\n")
    assert settings.read("prod", profile="work").modules == {"confluent": {"topics": ["orders"]}}, "a profile is one of AWS"


def test_what_may_have_data_is_not_deleted_unasked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    destroyed: list[str] = []

    class Made(Terraform):
        """A module in whose state is a cluster. Terraform itself would need the provider, which is not here."""

        def init(self) -> None:
            pass

        def made(self, type_: str = "") -> list[Mapping[str, Any]]:
            return [{"display_name": "sluice-prod"}] if type_ in ("", "confluent_kafka_cluster") else []

        def destroy(self) -> None:
            destroyed.append(self.module)

    for module in (settings, importlib.import_module("infra.deploy.__main__")):
        # Environments are files of the clone.
        monkeypatch.setattr(module, "ENVIRONMENTS", tmp_path)
    # A provider that is not here cannot be asked what it has made.
    monkeypatch.setattr("infra.deploy.__main__.Terraform", Made)
    (tmp_path / "prod.yaml").write_text("confluent: {topics: [orders]}\n")
    refused = CliRunner().invoke(deploy, ["delete", "--env", "prod", "--yes"])
    assert refused.exit_code == 1 and "is lost: the cluster of Kafka, with its topics: sluice-prod" in refused.output
    assert "may-have-data" in refused.output and "--with-tables" in refused.output and not destroyed
    assert CliRunner().invoke(deploy, ["delete", "--env", "prod", "--yes", "--with-tables"]).exit_code == 0
    assert destroyed == ["confluent"]
    (tmp_path / "prod.json").write_text('{"confluent": {"name": "prod"}, "snowflake": {"name": "prod"}}')
    refused = CliRunner().invoke(deploy, ["delete", "--env", "prod", "--yes", "--with-tables"])
    assert refused.exit_code == 1 and "module-left" in refused.output and "--only snowflake" in refused.output
    (tmp_path / "prod.yaml").write_text("confluent: {topics: [orders]}\nsnowflake: {schemas: [SHOP]}\n")
    deleted = CliRunner().invoke(deploy, ["delete", "--env", "prod", "--yes", "--with-tables", "--only", "confluent"])
    assert deleted.exit_code == 0 and destroyed == ["confluent", "confluent"]
    assert json.loads((tmp_path / "prod.json").read_text()) == {"snowflake": {"name": "prod"}}
