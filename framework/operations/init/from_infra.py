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
# Its roles: what writes tables takes the role below. Who deletes files and tables, too, takes another one, as in
#   SLUICE_VAR_ROLE={maintain} sluice maintain --env {environment}
"""
_PLAIN = re.compile(r"[A-Za-z$][A-Za-z0-9_./:${}-]*[A-Za-z0-9_/}]")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
_ROLE = "${{var:ROLE:-{ingest}}}"


def write(folder: Path, name: str) -> tuple[str, ...]:
    """Writes specs/environments/NAME/main.yaml and returns its name. `name` is an environment of `infra/`, or the path of its file."""
    outputs = _outputs(folder, name)
    environment = str(outputs["name"])
    specs = folder / "specs"
    documents = language.load(specs).names if specs.is_dir() else frozenset()
    file = f"specs/environments/{environment}/main.yaml"
    files.put(folder, {file: text(outputs, documents)})
    return (file,)


def text(outputs: Mapping[str, Any], documents: frozenset[tuple[str, str]]) -> str:
    """The documents, as YAML. They replace those of the same kind, so they have their names."""
    head = _HEAD.format(environment=outputs["name"], maintain=outputs["roles"]["maintain"])
    return head + "---\n".join(_lines(group) for group in (_catalog(outputs, documents), _secrets(outputs, documents)))


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
        if value is not None or key == "storage"
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
    outputs = document.get("aws") if isinstance(document, dict) else None
    if not isinstance(outputs, dict) or not _is_whole(outputs):
        raise SluiceError("no-infra", f"{path} is not what the module `aws` writes", "write it again by `infra/deploy.sh create`")
    return outputs


def _is_whole(outputs: Mapping[str, Any]) -> bool:
    keys = {"name", "region", "endpoint", "warehouse", "kms_key", "external_id", "secrets_prefix", "roles"}
    return keys <= outputs.keys() and {"ingest", "maintain"} <= set(outputs["roles"]) and bool(_NAME.fullmatch(outputs["name"]))
