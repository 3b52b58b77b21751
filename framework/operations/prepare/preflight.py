"""Checks whether the systems that specs name can be reached, with the rights that a run needs.

A small file is written into each object store and folder of tables, read, listed and deleted. No table, topic or message is changed, and no
mail is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from framework.base.amounts import counted
from framework.base.errors import CatalogAway, KafkaForbids, NoTopic, SluiceError
from framework.base.patience import KAFKA_WATCHED
from framework.core.iceberg import metadata
from framework.core.kafka import acls
from framework.core.kafka.cluster import Kafka
from framework.features.export import bucket
from framework.features.notices import email
from framework.machine.java import ivy, jars
from framework.operations.prepare.doctor import Finding
from framework.plan import Catalog, Cluster, Plan, Storage, Topic
from framework.plan.notice import Mail
from framework.systems import catalogs

_STORAGE = "give the login this right, or correct `storage` and `warehouse` of the catalog"


@dataclass(frozen=True)
class _Check:
    """One thing to try: what it is called, and what it says where it works."""

    subject: str
    tried: Callable[[], str]

    def finding(self) -> Finding:
        try:
            return Finding(self.subject, self.tried())
        except SluiceError as error:
            return Finding(self.subject, error.message, error.hint or f"see the code `{error.code}` in docs/operations.md")
        except (OSError, catalogs.RequestFailed) as error:
            return Finding(self.subject, str(error), getattr(error, "hint", "") or _STORAGE)


def preflight(plan: Plan) -> Iterator[Finding]:
    """The findings for all systems that a plan's pipelines and exports need."""
    for check in _checks(plan):
        yield check.finding()


def _checks(plan: Plan) -> Iterator[_Check]:
    topics = {topic.name: topic for pipeline in plan.pipelines for topic in pipeline.topics}
    sent = {each.sends_to for pipeline in plan.pipelines for each in pipeline.also if each.sends_to}
    clusters = {cluster.name: cluster for cluster in (*plan.clusters, *(of for of, _ in sent))}
    for cluster in clusters.values():
        own = [topic for topic in topics.values() if topic.cluster == cluster]
        written = sorted(name for of, name in sent if of == cluster)
        yield _Check(f"cluster {cluster.name}", partial(_kafka, plan, cluster, own, written))
        if registered := [topic for topic in own if topic.registered]:
            yield _Check(f"registry of {cluster.name}", partial(_registry, registered))
    for catalog in plan.catalogs:
        yield _Check(f"catalog {catalog.name}", partial(_catalog, plan, catalog))
        yield _Check(f"files of {catalog.name}", partial(_files, plan, catalog))
    sets = [name for catalog in plan.catalogs for name in catalogs.of(catalog).jars()] if ivy.of_pyspark() else []
    for name in dict.fromkeys(sets):
        yield _Check(f"{name} jars", partial(_jars, name))
    for export in (document.value for document in plan.documents_of("export")):
        if export.storage is not None:
            yield _Check(f"files of {export.name}", partial(_exported, plan, export.to, export.storage))
    for document in plan.documents_of("mail"):
        yield _Check(f"mail {document.name}", partial(_mail, plan, document.value))


def _kafka(plan: Plan, cluster: Cluster, topics: list[Topic], written: list[str]) -> str:
    """Asks what the login may do, and reads what a batch reads first, and some messages."""
    kafka = Kafka(cluster, plan.secrets, KAFKA_WATCHED)
    needed = [*((topic.kafka_name, acls.READING) for topic in topics), *((name, acls.WRITING) for name in written)]
    missing = [each for name, operations in needed for each in _missing(kafka, name, operations)]
    if written and not kafka.may_send():
        missing.append(("sending in turns", acls.sending(cluster, "--add", acls.principal(cluster))))
    if missing:
        message = f"the login lacks {counted(len(missing), 'right')}: {', '.join(lacking for lacking, _ in missing)}"
        raise SluiceError("kafka-refused", message, "an administrator allows it: " + "; ".join(command for _, command in missing))
    for topic in topics:
        state = kafka.topic_state(topic)
        kafka.message_size([(each, start) for each, start in state.starts.items() if start < state.ends[each]], most=1)
    reads = f"{counted(len(topics), 'topic')} can be read"
    return f"{cluster.bootstrap}, {reads}" + (f", {len(written)} written" if written else "")


def _missing(kafka: Kafka, topic: str, operations: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The rights on a topic that are missing, and the command that grants them. A topic that is not there needs to be created."""
    try:
        rights = kafka.rights(topic) | {"CREATE"}
    except NoTopic:  # rows that are sent create it, if that is allowed; one that is read is named next
        return
    except KafkaForbids:
        rights = frozenset()
    lacking = [each.lower() for each in operations if each not in rights]
    if lacking:
        command = acls.command(kafka.cluster, "--add", acls.principal(kafka.cluster), topic, operations)
        yield f"`{topic}` ({', '.join(lacking)})", command


def _registry(topics: list[Topic]) -> str:
    for each in (each for topic in topics for each in topic.registered):
        if each.trouble:
            raise each.trouble
    return f"has the schemas of {counted(len(topics), 'topic')}"


def _catalog(plan: Plan, catalog: Catalog) -> str:
    """The tables that are there, and whether those of the specs may be created and changed."""
    asked = catalogs.of(catalog)
    listed = [each.options for pipeline in plan.pipelines for each in pipeline.published]
    own = [pipeline.table.identifier for pipeline in plan.pipelines if pipeline.table.catalog == catalog]
    for identifier in (*own, *(each.identifier for each in listed if each.catalog == catalog)):
        metadata.probe(catalog, identifier)
    return f"{asked.where() or 'is created by the first run'}, {counted(len(metadata.names(catalog)), 'table')}"


def _files(plan: Plan, catalog: Catalog) -> str:
    asked = catalogs.of(catalog)
    own = [pipeline.table.identifier for pipeline in plan.pipelines if pipeline.table.catalog == catalog]
    if not own:
        return "no pipeline has its table here"
    table = None
    try:
        tables = (metadata.read(catalog, identifier) for identifier in own)
        table = next((table for table in tables if table is not None), None)
    except CatalogAway:  # which the catalog's own check names
        if not asked.files_of(own[0]).root:
            raise
    files = table.files if table else asked.files_of(own[0])
    folder = str(table.document["location"]) if table else files.root
    if not folder:
        return "the catalog alone knows where they will be: check again when it has a table"
    files.probe(folder)
    return f"{files.path(folder)}: a file can be written, read, listed and deleted"


def _exported(plan: Plan, to: str, storage: Storage) -> str:
    return bucket.probe(to.partition("{")[0], storage, plan.secrets)


def _jars(name: str) -> str:
    return f"{counted(len(jars.files(name)), 'jar')} for object stores"


def _mail(plan: Plan, mail: Mail) -> str:
    email.connect(mail, plan.secrets)
    return f"{mail.server} takes the login" if mail.username else f"{mail.server} answers"
