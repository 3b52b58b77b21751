"""Plans of folders of specs: `framework.documents.make` with all components."""

from __future__ import annotations

from framework import language
from framework.documents import make as documents
from framework.host.components import all_components

load = all_components()(language.load)
make = all_components()(documents.make)
make_without_registries = all_components()(documents.make_without_registries)
draft = all_components()(documents.draft)
parts = all_components()(documents.parts)
plan_documents = all_components()(documents.plan_documents)
