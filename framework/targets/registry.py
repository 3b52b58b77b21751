"""Allow Sluice to read the schemas of a pipeline's topics in a Confluent schema registry with rights."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from framework.access.about import About, secret
from framework.access.steps import SHELL, Step, Warned, check, shared

OF = "table"
_WHERE = ("--environment", "<environment>", "--schema-registry-cluster", "<registry>")


def steps(about: About) -> Iterator[Step | Warned]:
    topics = [topic for topic in about.pipeline.topics if topic.registered]
    if not topics:
        yield Warned(f"no topic of `{about.pipeline.name}` has a schema in a registry: it needs no rights there")
        return
    yield Warned("the commands are those of Confluent Cloud; in Apicurio the role `sr-readonly` is enough, for all subjects")
    for topic in topics:
        login = topic.cluster.registry_auth
        user = f"User:{secret(login.username)}" if login else "User:<user>"
        for each in topic.registered:
            binding = ["--principal", user, "--role", "DeveloperRead", "--resource", f"Subject:{each.subject}", *_WHERE]
            yield shared(
                SHELL, f"Let {user} read the schemas of the subject {each.subject}.",
                _command("create", binding), _command("delete", [*binding, "--force"]),
            )  # fmt: skip
            url = (topic.cluster.registry or "").rstrip("/")
            asked = shlex.join(["curl", *(["--user", f"{secret(login.username)}:{secret(login.password)}"] if login else [])])
            yield check(SHELL, "Which versions it can read.", f"{asked} {shlex.quote(f'{url}/subjects/{each.subject}/versions')}")


def _command(does: str, binding: list[str]) -> str:
    return shlex.join(["confluent", "iam", "rbac", "role-binding", does, *binding])
