"""The keys of a plan that are to be replaced, as alerts judge them: a look at the store of secrets counts for some minutes."""

from __future__ import annotations

import time
from collections.abc import Mapping

from framework.core.run.secret_digest import used_secrets
from framework.operations.keys.rotation import Rotation
from framework.operations.keys.standing import due
from framework.plan import Pipeline, Plan
from framework.systems import keyring

_FRESH = 300.0  # seconds for which a look counts
_looks: dict[tuple[str, str], tuple[float, float]] = {}  # by environment and name: when it was looked up, and when the key is due


def seconds_left(plan: Plan, pipeline: Pipeline, moment: float) -> Mapping[str, float]:
    """For how many seconds a key may still be used, by the name of its document: of those that the pipeline uses, and of those that no
    pipeline does. A key that is due has none left. Raises an error if the store of secrets does not answer."""
    own_secrets = {secret.name for secret in used_secrets(pipeline)}
    secrets_of_all = {secret.name for each in plan.pipelines for secret in used_secrets(each)}
    left: dict[str, float] = {}
    for document in plan.documents_of("keys"):
        secrets = set(document.value.secrets)
        if document.value.rotate_every is not None and (secrets & own_secrets or not secrets & secrets_of_all):
            left[document.name] = max(0.0, _due(plan, document.name) - moment)
    return left


def _due(plan: Plan, name: str) -> float:
    looked, moment = _looks.get((plan.environment, name), (0.0, 0.0))
    if time.monotonic() - looked > _FRESH or looked == 0.0:
        (keys,) = (document.value for document in plan.documents_of("keys") if document.name == name)
        moment = due(keys, keyring.current(Rotation(plan, keys).stored())) or 0.0
        _looks[plan.environment, name] = time.monotonic(), moment
    return moment
