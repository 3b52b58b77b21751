"""Checks whether the systems that specs name can be reached, with the rights that a run needs.

A small file is written into each object store and folder of tables, read, listed and deleted, if the login may. No table, topic or message
is changed, and no mail is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from framework.base.amounts import counted
from framework.base.errors import CatalogAway, KafkaForbids, NoTopic, SluiceError
from framework.base.patience import KAFKA_WATCHED
from framework.core.iceberg import metadata
from framework.core.kafka import acls
from framework.core.kafka.cluster import Kafka
from framework.core.run.secret_digest import used_secrets
from framework.features.export import bucket
from framework.features.notices import email
from framework.machine.java import ivy, jars
from framework.operations.prepare.doctor import Finding
from framework.plan import Catalog, Cluster, Plan, Storage, Topic
from framework.plan.notice import Mail
from framework.plan.secret import SecretRef
from framework.systems import catalogs, secrets

_STORAGE = "give the login this right, or correct `storage` and `warehouse` of the catalog"
_KEPT = "to delete is left to another login, with which `maintain`, `forget`, `drop` and `rebuild` are run"


@dataclass(frozen=True)
class _Check:
    """One thing to try: its name, and a function that tries it and returns what it found."""

    subject: str
    probe: Callable[[], str]

    def finding(self) -> Finding:
        try:
            return Finding(self.subject, self.probe())
        except SluiceError as error:
            return Finding(self.subject, error.message, error.hint or f"see the code `{error.code}` in docs/operations.md")
        except (OSError, catalogs.RequestFailed) as error:
            return Finding(self.subject, str(error), getattr(error, "hint", "") or _STORAGE)


def preflight(plan: Plan) -> Iterator[Finding]:
    """The findings for all systems that a plan's pipelines and exports need."""
    for check in _checks(plan):
        yield check.finding()


def _checks(plan: Plan) -> Iterator[_Check]:
    if names := sorted({secret.name for secret in used_secrets(plan)}):
        yield _Check("secrets", partial(_secrets, plan, names))
    topics = {topic.name: topic for pipeline in plan.pipelines for topic in pipeline.topics}
    senders = {follower.sends_to: follower for pipeline in plan.pipelines for follower in pipeline.also if follower.sends_to}
    clusters = {cluster.name: cluster for cluster in (*plan.clusters, *(target_cluster for target_cluster, _ in senders))}
    for cluster in clusters.values():
        own_topics = [topic for topic in topics.values() if topic.cluster == cluster]
        written_topics = {name: acls.writing(senders[target, name]) for target, name in senders if target == cluster}
        yield _Check(f"cluster {cluster.name}", partial(_kafka, plan, cluster, own_topics, written_topics))
        if registered_topics := [topic for topic in own_topics if topic.registered]:
            yield _Check(f"registry of {cluster.name}", partial(_registry, registered_topics))
    for catalog in plan.catalogs:
        yield _Check(f"catalog {catalog.name}", partial(_catalog, plan, catalog))
        yield _Check(f"files of {catalog.name}", partial(_files, plan, catalog))
    sets = [name for catalog in plan.catalogs for name in catalogs.client_of(catalog).jars()] if ivy.of_pyspark() else []
    for name in dict.fromkeys(sets):
        yield _Check(f"{name} jars", partial(_jars, name))
    for export in (document.value for document in plan.documents_of("export")):
        if export.storage is not None:
            yield _Check(f"files of {export.name}", partial(_exported, plan, export.to, export.storage))
    for document in plan.documents_of("mail"):
        yield _Check(f"mail {document.name}", partial(_mail, plan, document.value))


def _secrets(plan: Plan, names: list[str]) -> str:
    """Looks up each secret that the specs name. Raises an error that names each one that is missing."""
    errors = []
    for name in names:
        try:
            secrets.reveal(SecretRef(name), plan.secrets)
        except SluiceError as error:
            errors.append(error)
    if errors:
        message, hint = (
            "; ".join(dict.fromkeys(texts)) for texts in zip(*((error.message, error.hint) for error in errors), strict=True)
        )
        raise SluiceError(errors[0].code, message, hint)
    return f"{plan.secrets.type} has the {counted(len(names), 'secret')} of the specs"


def _kafka(plan: Plan, cluster: Cluster, topics: list[Topic], written_topics: Mapping[str, tuple[str, ...]]) -> str:
    """Asks for the login's rights, and reads the topics' state and some messages, as a batch does."""
    kafka = Kafka(cluster, plan.secrets, KAFKA_WATCHED)
    needed_rights = [*((topic.kafka_name, acls.READING) for topic in topics), *sorted(written_topics.items())]
    missing_rights = [right for name, operations in needed_rights for right in _missing(kafka, name, operations)]
    if written_topics and not kafka.may_send():
        missing_rights.append(("sending in turns", acls.sending(cluster, "--add", acls.principal(cluster))))
    if missing_rights:
        message = f"the login lacks {counted(len(missing_rights), 'right')}: {', '.join(right_text for right_text, _ in missing_rights)}"
        raise SluiceError(
            "kafka-refused", message, "an administrator allows it: " + "; ".join(command for _, command in missing_rights)
        )
    for topic in topics:
        state = kafka.topic_state(topic)
        kafka.message_size(
            [(partition, start) for partition, start in state.starts.items() if start < state.ends[partition]], most=1
        )
    topics_text = f"{counted(len(topics), 'topic')} can be read"
    return f"{cluster.bootstrap}, {topics_text}" + (f", {len(written_topics)} written" if written_topics else "")


def _missing(kafka: Kafka, topic: str, operations: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The missing rights on a topic, and the command that grants them. A topic that does not exist has none missing."""
    try:
        rights = kafka.rights(topic) | {"CREATE"}
    except NoTopic:  # rows that are sent create it, if that is allowed; a topic that is read is checked next
        return
    except KafkaForbids:
        rights = frozenset()
    missing_operations = [operation.lower() for operation in operations if operation not in rights]
    if missing_operations:
        command = acls.command(kafka.cluster, "--add", acls.principal(kafka.cluster), topic, operations)
        yield f"`{topic}` ({', '.join(missing_operations)})", command


def _registry(topics: list[Topic]) -> str:
    for schema in (schema for topic in topics for schema in topic.registered):
        if schema.trouble:
            raise schema.trouble
    return f"has the schemas of {counted(len(topics), 'topic')}"


def _catalog(plan: Plan, catalog: Catalog) -> str:
    """Tries whether the tables of the specs may be created and changed, and counts the catalog's tables."""
    catalog_api = catalogs.client_of(catalog)
    listings = [listing.options for pipeline in plan.pipelines for listing in pipeline.published]
    own_names = [pipeline.table.identifier for pipeline in plan.pipelines if pipeline.table.catalog == catalog]
    for identifier in (*own_names, *(options.identifier for options in listings if options.catalog == catalog)):
        metadata.probe(catalog, identifier)
    return f"{catalog_api.where() or 'is created by the first run'}, {counted(len(metadata.names(catalog)), 'table')}"


def _files(plan: Plan, catalog: Catalog) -> str:
    catalog_api = catalogs.client_of(catalog)
    own_names = [pipeline.table.identifier for pipeline in plan.pipelines if pipeline.table.catalog == catalog]
    if not own_names:
        return "no pipeline has its table here"
    table = None
    try:
        tables = (metadata.read(catalog, identifier) for identifier in own_names)
        table = next((table for table in tables if table is not None), None)
    except CatalogAway:  # which the catalog's own check names
        if not catalog_api.files_of(own_names[0]).root:
            raise
    files = table.files if table else catalog_api.files_of(own_names[0])
    folder = str(table.document["location"]) if table else files.root
    if not folder:
        return "the catalog alone knows where they will be: check again when it has a table"
    if files.probe(folder):
        return f"{files.path(folder)}: a file can be written, read, listed and deleted"
    return f"{files.path(folder)}: a file can be written, read and listed; {_KEPT}"


def _exported(plan: Plan, target: str, storage: Storage) -> str:
    return bucket.probe(target.partition("{")[0], storage, plan.secrets)


def _jars(name: str) -> str:
    return f"{counted(len(jars.files(name)), 'jar')} for object stores"


def _mail(plan: Plan, mail: Mail) -> str:
    email.connect(mail, plan.secrets)
    return f"{mail.server} takes the login" if mail.username else f"{mail.server} answers"
