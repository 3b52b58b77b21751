"""Adding a topic to the specs of a project, from the topic's newest messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from framework.base.errors import SluiceError
from framework.core.kafka import newest_messages
from framework.documents.make import make
from framework.operations.init import files, project, registered, spec
from framework.operations.init.spec import Spec
from framework.plan import Cluster, Plan, SecretStore, Security


@dataclass(frozen=True, kw_only=True)
class Added:
    """The written files and their topic."""

    name: str
    table: str
    files: tuple[str, ...]
    messages: int
    spec: Spec


def add(
    folder: Path, environment: str, kafka_name: str, message_limit: int, bootstrap: str | None, registry: str | None = None
) -> Added:
    """Reads at most `message_limit` messages and writes the topic's spec; a cluster and a catalog, too, if the specs have
    none."""
    specs = folder / "specs"
    plan = make(specs, environment) if any(specs.rglob("*.yaml")) else None
    cluster = _with_registry(_cluster(plan, bootstrap), plan, registry)
    name = spec.name_of(kafka_name)
    table = f"{spec.NAMESPACE}.{name}"
    if plan:
        _refuse_taken(plan, name, table)
    catalogs = plan.catalogs if plan else ()
    missing_parts = not (plan and plan.clusters), not catalogs
    texts = (
        {"specs/main.yaml": project.main(cluster.bootstrap, *missing_parts, engine=plan is None, registry=cluster.registry)}
        if any(missing_parts)
        else {}
    )
    spec_file = f"specs/{name if name != 'main' else 'topic_main'}.yaml"
    texts[spec_file] = ""
    files.refuse(folder, texts)
    secrets = plan.secrets if plan else SecretStore()
    sample = newest_messages.read_newest(cluster, secrets, kafka_name, message_limit)
    registry_schemas = registered.find(kafka_name, sample, cluster, secrets)
    new_spec = spec.write(kafka_name, sample, catalogs[0].name if len(catalogs) > 1 else None, registry_schemas)
    texts[spec_file] = new_spec.text
    files.put(folder, texts)
    ignore_files = () if plan else files.ignore(folder)
    return Added(name=name, table=table, files=(*ignore_files, *texts), messages=len(sample.messages), spec=new_spec)


def commands(name: str) -> tuple[tuple[str, str], ...]:
    """The next commands, each with what it does."""
    return (
        ("sluice check", "checks the specs"),
        (f"sluice preview {name}", "shows some messages and their rows"),
        (f"sluice run {name}", "loads the messages into the table"),
    )


def _cluster(plan: Plan | None, bootstrap: str | None) -> Cluster:
    clusters = plan.clusters if plan else ()
    if len(clusters) > 1:
        names = ", ".join(f"`{cluster.name}`" for cluster in clusters)
        raise SluiceError(
            "several-clusters", f"the specs have several clusters: {names}", "keep one: topics cannot name theirs yet"
        )
    if bootstrap and not any(cluster.bootstrap == bootstrap for cluster in clusters):
        return Cluster(name="main", bootstrap=bootstrap, security=Security())
    if not clusters:
        raise SluiceError("no-cluster", "the specs have no cluster to read from", "name it: `--bootstrap host:port`")
    return clusters[0]


def _with_registry(cluster: Cluster, plan: Plan | None, registry: str | None) -> Cluster:
    """Refuse a registry that differs from the one of the specs' cluster: the new spec runs with the cluster's."""
    spec_cluster = plan.clusters[0] if plan and plan.clusters else None
    if spec_cluster is None:
        return replace(cluster, registry=registry)
    if registry and registry.rstrip("/") != (spec_cluster.registry or "").rstrip("/"):
        registry_text = f"names another registry, {spec_cluster.registry}" if spec_cluster.registry else "names no registry"
        hint = "write it there: `registry: URL` of the cluster; then leave the option out"
        raise SluiceError("other-registry", f"the specs' cluster `{spec_cluster.name}` {registry_text}", hint)
    return replace(cluster, registry=spec_cluster.registry, registry_auth=spec_cluster.registry_auth)


def _refuse_taken(plan: Plan, name: str, table: str) -> None:
    for document, where in _taken(plan, name, table):
        raise SluiceError(
            "name-taken", f"the specs have {document} already, at {where}", "nothing was written; rename that one first"
        )


def _taken(plan: Plan, name: str, table: str) -> Iterator[tuple[str, object]]:
    for topic in plan.topics:
        if topic.name == name:
            yield f"the topic `{name}`", topic.where
    for pipeline in plan.pipelines:
        if pipeline.name == name:
            yield f"the pipeline `{name}`", pipeline.where
        if {pipeline.table.identifier, pipeline.table.bad_rows} & {table, f"{table}__bad_rows"}:
            yield f"a pipeline into `{table}`", pipeline.where
