"""Topics in a plan, with the types of their columns and the decoding of their messages."""

from __future__ import annotations

from framework.model import Cluster, Security
from framework.plan import topics
from framework.plan.draft import Draft, only
from framework.spec.kinds import DocumentKind, Topic


def resolve(draft: Draft, documents: tuple[Topic, ...]) -> None:
    for topic in documents:
        before = len(draft.problems)
        cluster = only(draft, draft.clusters, "cluster", topic.place()) or Cluster(name="", bootstrap="", security=Security())
        planned = topics.resolve(topic, cluster, draft.schemas, draft.problems)
        draft.topics[topic.name] = planned
        if topics.unclear(topic) or not all(each.columns_known for each in planned.registered):
            draft.unclear.add(topic.name)
        if len(draft.problems) > before or topic.gaps or topic.name in draft.unclear:
            draft.broken.add(topic.name)


KIND = DocumentKind(Topic, resolve, needs=("cluster", "secrets"), same_everywhere=True)
