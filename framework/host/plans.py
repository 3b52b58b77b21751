"""Plans of folders of specs: `framework.documents.make` with all components."""

from __future__ import annotations

from framework import language
from framework.documents import make as documents
from framework.host.components import known

load = known()(language.load)
make = known()(documents.make)
make_without_registries = known()(documents.make_without_registries)
draft = known()(documents.draft)
parts = known()(documents.parts)
resolve = known()(documents.resolve)
