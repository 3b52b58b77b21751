"""The file of an environment, `infra/environments/NAME.yaml`: variables for each module of Terraform, and the place of its state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from framework.base.errors import Problem, SluiceError, SpecError, Where
from framework.base.spelling import did_you_mean, the_names

INFRA = Path(__file__).resolve().parent.parent
ENVIRONMENTS, STATES = INFRA / "environments", INFRA / "state"
MODULES = ("aws", "confluent", "snowflake")  # in the order in which they are made
AWS = "aws"
ENVIRONMENT = "environment"  # the variable that deploy itself sets
_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
_STATE = re.compile(r"s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/[A-Za-z0-9_./-]+)?")
_VARIABLE = re.compile(r'^variable "(\w+)"', re.MULTILINE)
_KEYS = (*MODULES, "state", "state_region")
_EXAMPLE = "aws: {region: eu-central-1, bucket: my-lake, databases: [shop]}"


@dataclass(frozen=True)
class Settings:
    """An environment: the variables of each of its modules, and where its state is."""

    name: str
    modules: Mapping[str, Mapping[str, Any]]
    state: str | None = None  # s3://bucket/path; None: a folder of infra/state
    state_region: str | None = None  # None: that of the module `aws`

    def variables(self, module: str) -> Mapping[str, Any]:
        return {**self.modules[module], ENVIRONMENT: self.name}


def read(name: str, profile: str | None = None) -> Settings:
    """The settings of an environment. Raises all problems of its file at once."""
    if not _NAME.fullmatch(name):
        raise SluiceError(
            "bad-name",
            f"`{name}` cannot be an environment's name",
            "write a small letter, then up to 19 small letters, digits, hyphens",
        )
    path = ENVIRONMENTS / f"{name}.yaml"
    shown_path = f"infra/environments/{path.name}"
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SluiceError("no-environment", f"there is no {shown_path}", f"write one, such as `{_EXAMPLE}`") from None
    except (yaml.YAMLError, OSError, ValueError) as error:
        raise SluiceError("bad-yaml", f"{shown_path} cannot be read: {' '.join(str(error).split())}", "correct it") from None
    problems = list(_problems(document, shown_path))
    if problems:
        raise SpecError(problems)
    modules = {module: dict(document[module]) for module in MODULES if module in document}
    if profile is not None and AWS in modules:
        modules[AWS]["profile"] = profile
    return Settings(name, modules, document.get("state"), document.get("state_region"))


def declared(module: str) -> Sequence[str]:
    """The variables that a module's files declare, without the one that deploy itself sets."""
    names = _VARIABLE.findall((INFRA / module / "variables.tf").read_text(encoding="utf-8"))
    return [name for name in names if name != ENVIRONMENT]


def _problems(document: object, path: str) -> Iterator[Problem]:
    """Problems that Terraform would not name, or only in a warning. It checks the values itself."""
    place = Where(path, 0, 0)
    if not isinstance(document, dict) or not document:
        yield Problem(place, "wrong-type", "the file must be a map with the variables of each module", f"write `{_EXAMPLE}`")
        return
    for key, value in document.items():
        if key == "state":
            if not isinstance(value, str) or not _STATE.fullmatch(value):
                yield Problem(
                    place, "bad-location", f"`state` is {value!r}, which is no place in S3", "write `state: s3://bucket/path`"
                )
        elif key == "state_region":
            if not isinstance(value, str):
                yield Problem(place, "wrong-type", "`state_region` must be a region", "write `state_region: eu-central-1`")
        elif key not in MODULES:
            hint = did_you_mean(str(key), _KEYS, the_names("key", _KEYS))
            yield Problem(place, "unknown-key", f"`{key}` is no module", hint)
        elif not isinstance(value, dict):
            yield Problem(place, "wrong-type", f"`{key}` must be a map with the module's variables", f"write `{_EXAMPLE}`")
        else:
            names = declared(key)
            for name in value:
                if name not in names:
                    hint = did_you_mean(str(name), names, f"infra/{key}/variables.tf has all of them")
                    yield Problem(place, "unknown-key", f"`{name}` is no variable of `{key}`", hint)
    aws, state = document.get("aws"), document.get("state")
    if isinstance(aws, dict) and isinstance(state, str) and state.split("/")[2:3] == [str(aws.get("bucket"))]:
        message = "`state` is in the bucket of the environment, with which it would be deleted"
        yield Problem(place, "bad-location", message, "name another bucket")
    if isinstance(state, str) and not isinstance(aws, dict) and not document.get("state_region"):
        yield Problem(
            place, "missing-key", "`state` is in S3, and nothing says in which region", "add `state_region: eu-central-1`"
        )
    if not any(module in document for module in MODULES):
        yield Problem(place, "missing-key", f"the file has none of the modules {', '.join(MODULES)}", f"write `{_EXAMPLE}`")
