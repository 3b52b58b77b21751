"""The kinds of documents: one file each."""

from __future__ import annotations

from framework.spec.kinds.catalog import Catalog
from framework.spec.kinds.cluster import Cluster, Security
from framework.spec.kinds.engine import Engine
from framework.spec.kinds.pipeline import Batch, Deletes, Expectation, From, Into, Maintain, Pipeline, Run
from framework.spec.kinds.secrets import Secrets
from framework.spec.kinds.tests import BadRow, GivenMessage, Message, Test
from framework.spec.kinds.topic import Column, Generate, Generated, Key, Topic
from framework.spec.kinds.variables import Variables
from framework.spec.options import Kind

KINDS: dict[str, type[Kind]] = {
    "cluster": Cluster,
    "catalog": Catalog,
    "engine": Engine,
    "secrets": Secrets,
    "variables": Variables,
    "topic": Topic,
    "pipeline": Pipeline,
}
LATER_KINDS = ("mail", "export")
SAME_EVERYWHERE = ("topic", "pipeline", "export")

__all__ = [
    "KINDS", "LATER_KINDS", "SAME_EVERYWHERE", "BadRow", "Batch", "Catalog", "Cluster", "Column", "Deletes", "Engine", "Expectation",
    "From", "Generate", "Generated", "GivenMessage", "Into", "Key", "Kind", "Maintain", "Message", "Pipeline", "Run", "Secrets", "Security",
    "Test", "Topic", "Variables",
]  # fmt: skip
