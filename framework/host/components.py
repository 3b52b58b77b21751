"""The components of Sluice: the folders whose files a spec names. Nothing else knows where they are."""

from __future__ import annotations

from contextlib import _GeneratorContextManager

from framework.base.components import components_in
from framework.language.components import Components, using

COMPONENTS = Components(
    catalogs=components_in("framework.systems.catalogs"),
    followers=components_in("framework.features.followers"),
    formats=components_in("framework.messages.formats"),
    kinds=components_in("framework.documents.kinds", "framework.features.*.document"),
    notices=components_in("framework.features.notices"),
    steps=components_in("framework.documents.steps"),
    writes=components_in("framework.features.writes"),
)


def known() -> _GeneratorContextManager[None]:
    """Specs are read and planned with all components inside the `with` block, or inside the function that this decorates."""
    return using(COMPONENTS)
