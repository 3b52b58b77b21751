"""Topics in a plan, with the types of their columns and the decoding of their messages."""

from __future__ import annotations

from framework.documents.draft import Draft, only
from framework.documents.topic import plan as topics
from framework.documents.topic.written import Topic
from framework.language.kind import Kind
from framework.plan import Cluster, Security


def plan_topics(draft: Draft, documents: tuple[Topic, ...]) -> None:
    for topic in documents:
        problems_before = len(draft.problems)
        cluster = only(draft, draft.clusters, "cluster", topic.place()) or Cluster(name="", bootstrap="", security=Security())
        planned = topics.plan_topic(topic, cluster, draft.schemas, draft.problems)
        draft.topics[topic.name] = planned
        if topics.unclear(topic) or not all(part.columns_known for part in planned.registered):
            draft.unclear.add(topic.name)
        if len(draft.problems) > problems_before or topic.gaps or topic.name in draft.unclear:
            draft.broken.add(topic.name)


KIND = Kind(Topic, plan_topics, needs=("cluster", "secrets"), same_everywhere=True)
