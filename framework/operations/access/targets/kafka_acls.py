"""Allow Sluice to read the topics of a pipeline, and to write those that `also` names, in a Kafka with ACLs."""

from __future__ import annotations

from collections.abc import Iterator

from framework.core.kafka import acls
from framework.operations.access.about import AccessSubject
from framework.operations.access.steps import SHELL, ScriptStep, Warned, check, shared

OF = "table"


def steps(about: AccessSubject) -> Iterator[ScriptStep | Warned]:
    pipeline = about.pipeline
    if any(topic.cluster.security.protocol != "PLAINTEXT" for topic in pipeline.topics):
        yield Warned(f"{acls.ADMIN} holds an administrator's login to Kafka: `security.protocol` and what belongs to it")
    needed_rights = [(topic.cluster, topic.kafka_name, acls.READING, "read") for topic in pipeline.topics]
    needed_rights += [(*follower.sends_to, acls.writing(follower), "write") for follower in pipeline.also if follower.sends_to]
    if not needed_rights:
        yield Warned(f"the pipeline `{pipeline.name}` reads a table and sends no rows to Kafka: it needs no rights there")
    for cluster, topic, operations, verb in needed_rights:
        principal = acls.principal(cluster)
        yield shared(
            SHELL, f"Let {principal} {verb} the topic {topic}. No group needs a right: Sluice keeps its offsets in the table.",
            acls.command(cluster, "--add", principal, topic, operations),
            acls.command(cluster, "--remove", principal, topic, operations) + " --force",
        )  # fmt: skip
    for cluster in {follower.sends_to[0].name: follower.sends_to[0] for follower in pipeline.also if follower.sends_to}.values():
        principal = acls.principal(cluster)
        yield shared(
            SHELL, f"Let {principal} take turns in sending, by transactional ids that begin with {acls.TRANSACTIONS}.",
            acls.sending(cluster, "--add", principal), f"{acls.sending(cluster, '--remove', principal)} --force",
        )  # fmt: skip
    for cluster, topic, _, _ in needed_rights:
        yield check(SHELL, f"Who may do what with {topic}.", acls.listing(cluster, topic))
