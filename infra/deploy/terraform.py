"""Terraform, run in a folder of its own for each module of an environment, which has a copy of the module's files.

*Guarantee* What is made is what was shown: the plan that is applied is the one that was printed. Ctrl-C reaches Terraform alone, which ends
after the request that is under way and keeps what it made in its state.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.base.errors import SetupError, SluiceError
from framework.base.home import home
from infra.deploy.settings import INFRA, STATES, Settings

_CHANGES = 2  # the status of a plan that is not empty
_PLAN, _ERRORED = "plan", "errored.tfstate"
LASTING = {
    "aws_s3_bucket": "bucket", "aws_kms_key": "key", "aws_glue_catalog_database": "database of Glue", "aws_secretsmanager_secret": "secret",
    "confluent_environment": "environment of Confluent, with its schemas", "confluent_kafka_cluster": "cluster of Kafka, with its topics",
    "snowflake_database": "database of Snowflake, with its tables", "snowflake_schema": "schema of Snowflake, with its tables",
}  # fmt: skip
"""The types of what nobody can bring back once it is deleted, in words."""
_HINT = "correct what it says, and give the same command again: what is done already is not done twice"


@dataclass(frozen=True)
class Terraform:
    """A module of an environment."""

    settings: Settings
    module: str

    def init(self) -> None:
        """Copies the module's files and gets its providers."""
        if shutil.which("terraform") is None:
            hint = "install Terraform 1.11 or later: https://developer.hashicorp.com/terraform/install"
            raise SetupError("no-terraform", "Terraform is not on this machine", hint)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.settings.state is None:
            self._state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (self._folder / _ERRORED).exists():
            hint = f"`terraform -chdir={self._folder} state push {_ERRORED}`, then delete that file"
            raise SluiceError("terraform-failed", f"{self.module}: the last state could not be kept, and is in {_ERRORED}", hint)
        for former in (*self._folder.glob("*.tf"), *self._folder.glob("*.tf.json"), self._folder / _PLAN):
            former.unlink(missing_ok=True)
        for path in (INFRA / self.module).glob("*.tf"):
            shutil.copy(path, self._folder)
        (self._folder / "backend_override.tf.json").write_text(json.dumps({"terraform": {"backend": self._backend()}}))
        (self._folder / "terraform.tfvars.json").write_text(json.dumps(self.settings.variables(self.module), default=str))
        self._done("init", "-migrate-state", "-force-copy", quiet=True)
        self._leave_former_state()

    def _leave_former_state(self) -> None:
        """Puts a state on this machine aside that has moved to S3. Raises if it has not: all would be made a second time."""
        former_ids = _ids(self._state.read_text(encoding="utf-8") if self._state.exists() else "")
        if self.settings.state is None or not former_ids:
            return
        if former_ids <= _ids(self._answer("state", "pull")):
            self._state.rename(f"{self._state}.moved")
            return
        message = f"{self.module}: what was made is in {self._state}, not in {self.settings.state}"
        hint = f"`terraform -chdir={self._folder} state push {self._state}`, then delete that file"
        raise SluiceError("state-elsewhere", message, hint)

    def plan(self) -> bool:
        """Prints what would change, and keeps that plan for `apply`. Whether there is anything to change."""
        status = self._run("plan", "-detailed-exitcode", f"-out={_PLAN}")
        if status not in (0, _CHANGES):
            raise self._failed("plan")
        return status == _CHANGES

    def losses(self) -> list[str]:
        """The addresses of what the plan deletes and nobody can bring back: buckets, databases, clusters and others."""
        changes = json.loads(self._answer("show", "-json", _PLAN)).get("resource_changes", ())
        return [item["address"] for item in changes if "delete" in item["change"]["actions"] and item["type"] in LASTING]

    def apply(self) -> None:
        """Makes what the plan shows."""
        self._done("apply", _PLAN)

    def destroy(self) -> None:
        self._done("destroy", "-auto-approve")

    def outputs(self) -> Mapping[str, Any]:
        """The module's output `environment`; empty if nothing was made."""
        return dict(json.loads(self._answer("output", "-json")).get("environment", {}).get("value", {}))

    def made(self, type_: str = "") -> list[Mapping[str, Any]]:
        """The attributes of the resources of a type that were made, by the state; without a type, of all."""
        resources = json.loads(self._answer("show", "-json")).get("values", {}).get("root_module", {}).get("resources", ())
        return [item["values"] for item in resources if item["mode"] == "managed" and type_ in ("", item["type"])]

    def forget(self) -> None:
        """Removes the copy and the state of what is deleted."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self.settings.state is None:
            for path in self._state.parent.glob(f"{self._state.name}*"):
                path.unlink()

    @property
    def _folder(self) -> Path:
        return home().resolve() / "infra" / self.settings.name / self.module

    @property
    def _state(self) -> Path:
        return STATES / self.settings.name / f"{self.module}.tfstate"

    def _backend(self) -> Mapping[str, Mapping[str, object]]:
        if self.settings.state is None:
            return {"local": {"path": str(self._state)}}
        variables = self.settings.modules.get("aws", {})
        bucket, _, prefix = self.settings.state.removeprefix("s3://").partition("/")
        key = f"{prefix.strip('/')}/{self.settings.name}/{self.module}.tfstate".lstrip("/")
        region = self.settings.state_region or variables.get("region")
        place = {"bucket": bucket, "key": key, "region": region, "profile": variables.get("profile")}
        endpoint = variables.get("endpoint")
        local = {"endpoints": {"s3": endpoint, "sts": endpoint, "iam": endpoint}, "use_path_style": True} if endpoint else {}
        return {"s3": {**{name: value for name, value in place.items() if value}, **local, "use_lockfile": True, "encrypt": True}}

    def _done(self, *arguments: str, quiet: bool = False) -> None:
        if self._run(*arguments, quiet=quiet):
            raise self._failed(arguments[0])

    def _failed(self, command: str) -> SluiceError:
        return SluiceError("terraform-failed", f"{self.module}: `terraform {command}` failed, and says why above", _HINT)

    def _run(self, *arguments: str, quiet: bool = False) -> int:
        """Runs Terraform with its output, or only with its errors, and returns its status."""
        process = subprocess.Popen(
            self._command(*arguments), env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL if quiet else None
        )
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # Terraform has it, too, and ends in order
                continue

    def _answer(self, *arguments: str) -> str:
        result = subprocess.run(self._command(*arguments), env=_environment(), capture_output=True, text=True, check=False)
        if result.returncode:
            raise SluiceError(
                "terraform-failed", f"{self.module}: `terraform {arguments[0]}` failed: {result.stderr.strip()}", _HINT
            )
        return result.stdout

    def _command(self, command: str, *arguments: str) -> list[str]:
        plain = () if sys.stdout.isatty() or command == "state" else ("-no-color",)
        return ["terraform", f"-chdir={self._folder}", command, *plain, *arguments]


def _ids(state: str) -> set[tuple[str, str]]:
    """The types and ids of all that was made, by the text of a state."""
    resources = json.loads(state or "{}").get("resources", ())
    return {
        (resource["type"], str(instance["attributes"].get("id")))
        for resource in resources
        if resource["mode"] == "managed"
        for instance in resource["instances"]
    }


def _environment() -> Mapping[str, str]:
    """The environment of Terraform, which neither asks anything nor looks for newer versions of itself."""
    plugins = home().resolve() / "infra" / "plugins"  # half a gigabyte, once for all modules
    plugins.mkdir(parents=True, exist_ok=True)
    defaults = {"TF_PLUGIN_CACHE_DIR": str(plugins), "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE": "1"}
    return {**defaults, **os.environ, "TF_INPUT": "0", "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}
