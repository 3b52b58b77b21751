"""The documents of an environment, from the file in which `infra/deploy.sh` says what it made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from framework import language
from framework.base.errors import SluiceError
from framework.operations.init import files

_HEAD = """\
# The cloud side of `{environment}`, as `infra/deploy.sh` made it. `--env {environment}` selects it.
"""
_ROLES = """\
# Its roles: what writes tables takes the role below. Who deletes files and tables, too, takes another one, as in
#   SLUICE_VAR_ROLE={maintain} sluice maintain --env {environment}
"""
_PLAIN = re.compile(r"[A-Za-z$][A-Za-z0-9_./:${}-]*[A-Za-z0-9_/}]")
_KEYS = {
    "aws": {"name", "region", "endpoint", "warehouse", "kms_key", "external_id", "secrets_prefix", "roles"},
    "confluent": {"name", "bootstrap", "registry"},
}
_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
_MAPS = ("storage", "security", "registry_auth")
_ROLE = "${{var:ROLE:-{ingest}}}"


def write(folder: Path, name: str) -> tuple[str, ...]:
    """Writes specs/environments/NAME/main.yaml and returns its name. `name` is an environment of `infra/`, or the path of its file."""
    outputs = _outputs(folder, name)
    environment = str(next(iter(outputs.values()))["name"])
    specs = folder / "specs"
    documents = language.load(specs).names if specs.is_dir() else frozenset()
    file = f"specs/environments/{environment}/main.yaml"
    files.put(folder, {file: text(outputs, documents)})
    return (file,)


def text(outputs: Mapping[str, Any], documents: frozenset[tuple[str, str]]) -> str:
    """The documents by the outputs of each module, as YAML. They replace those of the same kind, so they have their names."""
    aws, confluent = outputs.get("aws"), outputs.get("confluent")
    head = _HEAD.format(environment=(aws or confluent or {})["name"])
    groups = []
    if aws is not None:
        head += _ROLES.format(environment=aws["name"], maintain=aws["roles"]["maintain"])
        groups += [_catalog(aws, documents), _secrets(aws, documents)]
    if confluent is not None:
        groups.append(_cluster(confluent, documents))
    return head + "---\n".join(map(_lines, groups))


def _cluster(outputs: Mapping[str, Any], documents: frozenset[tuple[str, str]]) -> Iterator[tuple[str, object]]:
    yield "cluster", _only(documents, "cluster", "main")
    yield "bootstrap", outputs["bootstrap"]
    yield "security", None
    yield "  protocol", "SASL_SSL"
    yield "  mechanism", "PLAIN"
    yield "  username", "${secret:kafka.key}"
    yield "  password", "${secret:kafka.secret}"
    if outputs["registry"]:
        yield "registry", outputs["registry"]
        yield "registry_auth", None
        yield "  username", "${secret:registry.key}"
        yield "  password", "${secret:registry.secret}"


def _catalog(outputs: Mapping[str, Any], documents: frozenset[tuple[str, str]]) -> Iterator[tuple[str, object]]:
    yield "catalog", _only(documents, "catalog", "lake")
    yield "type", "glue"
    yield "endpoint", outputs["endpoint"]
    yield "warehouse", outputs["warehouse"]
    yield "storage", None
    yield "  endpoint", outputs["endpoint"]
    yield "  region", outputs["region"]
    yield "  role", _ROLE.format(ingest=outputs["roles"]["ingest"])
    yield "  external_id", outputs["external_id"]
    yield "  kms_key", outputs["kms_key"]


def _secrets(outputs: Mapping[str, Any], documents: frozenset[tuple[str, str]]) -> Iterator[tuple[str, object]]:
    yield "secrets", _only(documents, "secrets", "main")
    yield "store", "aws_secrets_manager"
    yield "prefix", outputs["secrets_prefix"]
    yield "endpoint", outputs["endpoint"]
    yield "region", outputs["region"]
    yield "role", _ROLE.format(ingest=outputs["roles"]["ingest"])
    yield "external_id", outputs["external_id"]


def _lines(options: Iterator[tuple[str, object]]) -> str:
    """The options as lines; those without a value are left out, but for the heads of maps."""
    return "".join(
        f"{key}:{'' if value is None else f' {_scalar(str(value))}'}\n"
        for key, value in options
        if value is not None or key in _MAPS
    )


def _scalar(text: str) -> str:
    """The text in YAML, in quotes if it could be read as anything else."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _only(documents: frozenset[tuple[str, str]], kind: str, otherwise: str) -> str:
    """The name of the specs' document of a kind."""
    names = sorted(name for document_kind, name in documents if document_kind == kind)
    if len(names) > 1:
        hint = f"write specs/environments/NAME/main.yaml yourself: `sluice docs` has the options of a `{kind}`"
        raise SluiceError("several-documents", f"the specs have several {kind}s, and one was made: {', '.join(names)}", hint)
    return names[0] if names else otherwise


def _outputs(folder: Path, name: str) -> Mapping[str, Any]:
    path = Path(name) if name.endswith(".json") else folder / "infra" / "environments" / f"{name}.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "make it by `infra/deploy.sh create`, or name the file that this wrote on another machine"
        raise SluiceError("no-infra", f"there is no {path}, in which `infra/deploy.sh` says what it made", hint) from None
    except (OSError, ValueError) as error:
        raise SluiceError("no-infra", f"{path} cannot be read: {error}", "write it again by `infra/deploy.sh create`") from None
    outputs = {name: document[name] for name in _KEYS if name in document} if isinstance(document, dict) else {}
    if not outputs or not all(_is_whole(name, of_module) for name, of_module in outputs.items()):
        hint = "write it again by `infra/deploy.sh create`"
        raise SluiceError("no-infra", f"{path} is not what the modules `aws` and `confluent` write", hint)
    return outputs


def _is_whole(name: str, outputs: object) -> bool:
    if not isinstance(outputs, dict) or not _KEYS[name] <= outputs.keys() or not _NAME.fullmatch(str(outputs["name"])):
        return False
    return name != "aws" or (isinstance(outputs["roles"], dict) and {"ingest", "maintain"} <= outputs["roles"].keys())
