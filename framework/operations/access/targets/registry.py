"""Allow Sluice to read the schemas of a pipeline's topics in a Confluent schema registry with rights."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from framework.operations.access.about import AccessSubject
from framework.operations.access.asked import without_secret
from framework.operations.access.steps import SHELL, ScriptStep, Warned, check, shared

OF = "table"
_SCOPE = ("--environment", "<environment>", "--schema-registry-cluster", "<registry>")


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    topics = [topic for topic in about.pipeline.topics if topic.registered]
    if not topics:
        yield Warned(f"no topic of `{about.pipeline.name}` has a schema in a registry: it needs no rights there")
        return
    yield Warned("the commands are those of Confluent Cloud; in Apicurio the role `sr-readonly` is enough, for all subjects")
    yield Warned("a right is of the account that owns an API key, such as `sa-…`: `confluent api-key list` names it")
    for topic in topics:
        login = topic.cluster.registry_auth
        owner = f" The login is the API key {without_secret(login.username)}." if login else ""
        for schema in topic.registered:
            binding = [
                "--principal",
                "User:<account>",
                "--role",
                "DeveloperRead",
                "--resource",
                f"Subject:{schema.subject}",
                *_SCOPE,
            ]
            yield shared(
                SHELL, f"Let the account read the schemas of the subject {schema.subject}.{owner}",
                _command("create", binding), _command("delete", [*binding, "--force"]),
            )  # fmt: skip
            url = (topic.cluster.registry or "").rstrip("/")
            user_options = ["--user", f"{without_secret(login.username)}:{without_secret(login.password)}"] if login else []
            request = shlex.join(["curl", *user_options])
            yield check(
                SHELL, "Which versions it can read.", f"{request} {shlex.quote(f'{url}/subjects/{schema.subject}/versions')}"
            )


def _command(verb: str, binding: list[str]) -> str:
    return shlex.join(["confluent", "iam", "rbac", "role-binding", verb, *binding])
