"""Checks whether the systems that specs name can be reached, with the rights that a run needs.

A small file is written into each object store and folder of tables, read, listed and deleted. No table, topic or message is changed, and no
mail is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from framework import catalogs, jars
from framework.amounts import counted
from framework.doctor import Finding
from framework.engine.iceberg import metadata
from framework.engine.kafka.cluster import Kafka
from framework.errors import SluiceError
from framework.model import Catalog, Cluster, Plan, Topic
from framework.model.notice import Mail
from framework.notices import email
from framework.patience import KAFKA_WATCHED


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
        except (OSError, catalogs.Refused) as error:
            return Finding(
                self.subject, str(error), "give the login this right, or correct `storage` and `warehouse` of the catalog"
            )


def preflight(plan: Plan) -> Iterator[Finding]:
    """The findings for all systems that a plan's pipelines and exports need."""
    for check in _checks(plan):
        yield check.finding()


def _checks(plan: Plan) -> Iterator[_Check]:
    topics = {topic.name: topic for pipeline in plan.pipelines for topic in pipeline.topics}
    clusters = {topic.cluster.name: topic.cluster for topic in topics.values()}
    for cluster in clusters.values():
        own = [topic for topic in topics.values() if topic.cluster == cluster]
        yield _Check(f"cluster {cluster.name}", partial(_kafka, plan, cluster, own))
        if registered := [topic for topic in own if topic.registered]:
            yield _Check(f"registry of {cluster.name}", partial(_registry, registered))
    for catalog in plan.catalogs:
        yield _Check(f"catalog {catalog.name}", partial(_catalog, catalog))
        yield _Check(f"files of {catalog.name}", partial(_files, plan, catalog))
    for name in dict.fromkeys(name for catalog in plan.catalogs for name in catalogs.of(catalog).jars()):
        yield _Check(f"{name} jars", partial(_jars, name))
    for document in plan.documents_of("mail"):
        yield _Check(f"mail {document.name}", partial(_mail, plan, document.value))


def _kafka(plan: Plan, cluster: Cluster, topics: list[Topic]) -> str:
    """Reads what a batch reads first, and some messages."""
    kafka = Kafka(cluster, plan.secrets, KAFKA_WATCHED)
    for topic in topics:
        state = kafka.topic_state(topic)
        kafka.message_size([(each, start) for each, start in state.starts.items() if start < state.ends[each]], most=1)
    return f"{cluster.bootstrap}, {counted(len(topics), 'topic')} can be read"


def _registry(topics: list[Topic]) -> str:
    for each in (each for topic in topics for each in topic.registered):
        if each.trouble:
            raise each.trouble
    return f"has the schemas of {counted(len(topics), 'topic')}"


def _catalog(catalog: Catalog) -> str:
    return f"{catalogs.of(catalog).where() or 'is created by the first run'}, {counted(len(metadata.names(catalog)), 'table')}"


def _files(plan: Plan, catalog: Catalog) -> str:
    asked = catalogs.of(catalog)
    own = [pipeline.table.identifier for pipeline in plan.pipelines if pipeline.table.catalog == catalog]
    if not own:
        return "no pipeline has its table here"
    tables = (metadata.read(catalog, identifier) for identifier in own)
    table = next((table for table in tables if table is not None), None)
    files = table.files if table else asked.files_of(own[0])
    folder = str(table.document["location"]) if table else files.root
    if not folder:
        return "the catalog alone knows where they will be: check again when it has a table"
    files.probe(folder)
    return f"{files.path(folder)}: a file can be written, read, listed and deleted"


def _jars(name: str) -> str:
    return f"{counted(len(jars.files(name)), 'jar')} for object stores"


def _mail(plan: Plan, mail: Mail) -> str:
    email.connect(mail, plan.secrets)
    return f"{mail.server} takes the login" if mail.username else f"{mail.server} answers"
