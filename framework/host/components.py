"""The components of Sluice: the folders whose files a spec names. Nothing else knows where they are."""

from __future__ import annotations

from functools import partial

from framework.base.components import components_in
from framework.language.components import Components, using

COMPONENTS = Components(
    catalogs=components_in("framework.systems.catalogs"),
    conditions=components_in("framework.features.conditions"),
    followers=components_in("framework.features.followers"),
    formats=components_in("framework.messages.formats"),
    key_types=components_in("framework.features.key_types"),
    kinds=components_in("framework.documents.kinds", "framework.features.*.document"),
    notices=components_in("framework.features.notices"),
    secrets=components_in("framework.systems.secrets"),
    steps=components_in("framework.documents.steps"),
    writes=components_in("framework.features.writes"),
)
# `with all_components():` reads and plans specs with them, as does a function that `@all_components()` decorates.
all_components = partial(using, COMPONENTS)
