"""From written documents to a plan: plain functions in one tuple, each adding things to the draft or problems to the list."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

from framework.errors import MOST_PROBLEMS, Problem, SpecError
from framework.model import Catalog, Cluster, Engine, Login, Pipeline, Plan, Replanned, SecretStore, Security
from framework.plan import pipelines, topics
from framework.plan.draft import Draft, only
from framework.plan.registered import Also, Schemas
from framework.plan.runnable import sound
from framework.spec import Written, extensions, kinds, load, without_collection
from framework.spec.options import Kind


def make(folder: Path, environment: str = "local") -> Plan:
    """The plan of the specs in a folder, or all their problems at once."""
    plan, problems = draft(folder, environment)
    if problems:
        raise SpecError(problems)
    return plan


def draft(folder: Path, environment: str = "local", logins: bool = True) -> tuple[Plan, tuple[Problem, ...]]:
    """What can be planned, and all problems. Without `logins` no registry is asked that wants one."""
    return parts(folder, environment, logins)[:2]


def parts(
    folder: Path, environment: str = "local", logins: bool = True
) -> tuple[Plan, tuple[Problem, ...], tuple[Pipeline, ...]]:
    """As `draft`, and the pipelines that can run whatever is wrong elsewhere."""
    with without_collection(), extensions.project(folder.absolute().parent):
        written = load(folder, environment)
        here = copy_context()  # planned again, own steps are those that were found the first time
        plan, problems, known = _parts(environment, written, {}, logins)

    def again(also: Also) -> Replanned:
        plan, problems, runnable = here.run(_parts, environment, written, also)
        return Replanned(replace(plan, again=again), problems, runnable)

    return replace(plan, again=again), problems, known


def _parts(
    environment: str, written: Written, also: Also, logins: bool = True
) -> tuple[Plan, tuple[Problem, ...], tuple[Pipeline, ...]]:
    made = Draft(written=written, problems=list(written.problems), schemas=Schemas(also=also, logins=logins))
    for do in PASSES:
        made = do(made)
    plan = Plan(
        environment=environment,
        engine=made.engine,
        secrets=made.secrets,
        clusters=tuple(made.clusters.values()),
        catalogs=tuple(made.catalogs.values()),
        topics=tuple(topic for topic in made.topics.values() if topic.name not in made.broken),
        pipelines=made.pipelines,
    )
    known = [] if len(made.problems) > MOST_PROBLEMS else made.pipelines  # of more, not all has been looked at
    return plan, SpecError(made.problems).problems, sound(made.written, known, made.problems)


def settings(made: Draft) -> Draft:
    """The engine and the secret store; there is at most one of each."""
    engines = made.written.of(kinds.Engine)
    stores = made.written.of(kinds.Secrets)
    for documents in (engines, stores, made.written.of(kinds.Variables)):
        made.problems.extend(
            Problem(extra.place(), "one-only", f"there is a second `{_kind(extra)}`", f"the first is at {documents[0].place()}")
            for extra in documents[1:]
        )
    if engines:
        said = engines[0]
        made = replace(made, engine=Engine(said.master, said.memory, tuple(sorted(said.conf.items()))))
    if not stores:
        return made
    secrets = SecretStore(stores[0].store, stores[0].path)
    return replace(made, secrets=secrets, schemas=Schemas(secrets, made.schemas.also, made.schemas.logins))


def clusters(made: Draft) -> Draft:
    return replace(made, clusters={said.name: _cluster(said) for said in made.written.of(kinds.Cluster)})


def _cluster(said: kinds.Cluster) -> Cluster:
    asked = said.security
    security = Security(asked.protocol, asked.mechanism, asked.username, asked.password) if asked else Security()
    login = Login(said.registry_auth.username, said.registry_auth.password) if said.registry_auth else None
    return Cluster(name=said.name, bootstrap=said.bootstrap, security=security, registry=said.registry, registry_auth=login)


def catalogs(made: Draft) -> Draft:
    found = {said.name: Catalog(said.name, said.type, said.uri, said.warehouse) for said in made.written.of(kinds.Catalog)}
    for said in made.written.of(kinds.Catalog):
        if not said.uri.startswith("sqlite:///"):
            hint = "write `sqlite:///` and the path of a file, such as `sqlite:///.sluice/lake.db`"
            made.problems.append(Problem(said.place("uri"), "bad-catalog-uri", f"`{said.uri}` is no SQLite database", hint))
        if "://" in said.warehouse and not said.warehouse.startswith("file://"):
            hint = "a warehouse is a folder in this version, such as `.sluice/warehouse`"
            made.problems.append(Problem(said.place("warehouse"), "not-in-this-version", "object stores come later", hint))
    return replace(made, catalogs=found)


def read_topics(made: Draft) -> Draft:
    """Each topic with the types of its columns and how its messages are decoded."""
    found = {}
    broken = set()
    unclear = set()
    for said in made.written.of(kinds.Topic):
        before = len(made.problems)
        cluster = only(made, made.clusters, "cluster", said.place()) or Cluster(name="", bootstrap="", security=Security())
        found[said.name] = topics.resolve(said, cluster, made.schemas, made.problems)
        if len(made.problems) > before or said.gaps:
            broken.add(said.name)
        if topics.unclear(said) or not all(each.known for each in found[said.name].registered):
            unclear.add(said.name)
    return replace(made, topics=found, broken=frozenset(broken), unclear=frozenset(unclear))


def one_writer(made: Draft) -> Draft:
    """Two pipelines never write one table, nor does one write another's bad rows."""
    taken: dict[tuple[str, str], Pipeline] = {}
    for pipeline in made.pipelines:
        for name in (pipeline.table.identifier, pipeline.table.bad_rows):
            first = taken.setdefault((pipeline.table.catalog.name, name), pipeline)
            if first is not pipeline:
                here, there = (each.table.places["table"] for each in (pipeline, first))
                message = f"`{pipeline.name}` and `{first.name}` both write the table `{name}`"
                hint = f"the other is at {there}: give one of them another table"
                made.problems.append(Problem(here, "two-writers", message, hint))
                break  # of two that write one table, the bad rows' table is the same, too
    return made


PASSES: tuple[Callable[[Draft], Draft], ...] = (settings, clusters, catalogs, read_topics, pipelines.resolve, one_writer)


def _kind(document: Kind) -> str:
    return type(document).__name__.lower()
