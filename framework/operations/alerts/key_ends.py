"""The keys of a plan that are to be replaced, as alerts judge them: a look at the store of secrets counts for some minutes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from functools import cached_property

from framework.core.run.secret_digest import used_secrets
from framework.operations.keys.standing import due, stored_keys
from framework.plan import Pipeline, Plan
from framework.plan.keys import Keys
from framework.systems import keyring

_FRESH = 300.0  # seconds for which a look counts
_looks: dict[tuple[str, str], tuple[float, float]] = {}  # by environment and name: when it was looked up, and when the key is due


class KeyEnds:
    """The ends of a plan's keys, for one look at all tables."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def seconds_left(self, pipeline: Pipeline, moment: float) -> Mapping[str, float]:
        """For how many seconds a key may still be used, by the name of its document: of those that the pipeline uses, and of those that
        no pipeline does. A key that is due has none left. Raises an error if the store of secrets does not answer."""
        own_secrets = self._secrets[pipeline.name]
        return {
            keys.name: max(0.0, _due(self._plan, keys) - moment)
            for keys in self._ending
            if own_secrets & set(keys.secrets) or not self._all_secrets & set(keys.secrets)
        }

    @cached_property
    def _ending(self) -> list[Keys]:
        return [document.value for document in self._plan.documents_of("keys") if document.value.rotate_every is not None]

    @cached_property
    def _secrets(self) -> Mapping[str, Set[str]]:
        """The secrets of each pipeline."""
        return {pipeline.name: {secret.name for secret in used_secrets(pipeline)} for pipeline in self._plan.pipelines}

    @cached_property
    def _all_secrets(self) -> Set[str]:
        return set().union(*self._secrets.values())


def _due(plan: Plan, keys: Keys) -> float:
    place = plan.environment, keys.name
    looked, moment = _looks.get(place, (float("-inf"), 0.0))
    if time.monotonic() - looked > _FRESH:
        moment = due(keys, keyring.current(stored_keys(plan, keys))) or 0.0
        _looks[place] = time.monotonic(), moment
    return moment
