"""The clients of readers by the keys of the specs: each key that is valid is one."""

from __future__ import annotations

import logging
import threading
import time

from framework.operations.keys.standing import stored_keys
from framework.plan import Plan
from framework.plan.keys import Keys

_SHORT, _PATIENCE = 5.0, 10.0  # seconds: a look that has to be as young as the first waits for another one's
_log = logging.getLogger(__name__)


def serve_keys(plan: Plan) -> list[Keys]:
    return [document.value for document in plan.documents_of("keys") if document.value.type == "serve"]


class KeyClients:
    """The ids and secrets of clients, as the store of secrets has them. While it does not answer, those of the last look count."""

    def __init__(self, plan: Plan) -> None:
        """Raises an error if the store cannot be read."""
        self._plan = plan
        self._turn = threading.Lock()
        self._clients = self._looked_up()
        self._looked = time.monotonic()

    def __call__(self, age: float) -> frozenset[tuple[str, str]]:
        """The clients by a look that is at most so many seconds old."""
        is_due = time.monotonic() - self._looked > age
        if is_due and self._turn.acquire(timeout=_PATIENCE if age < _SHORT else 0):  # else nobody waits for another one's look
            try:
                if time.monotonic() - self._looked > age:
                    self._clients = self._looked_up()
            except Exception as error:  # readers go on with the clients of the last look
                _log.warning("%s", error)
            finally:
                self._looked = time.monotonic()
                self._turn.release()
        return self._clients

    def _looked_up(self) -> frozenset[tuple[str, str]]:
        stored = (key for keys in serve_keys(self._plan) for key in stored_keys(self._plan, keys))
        return frozenset((client, secret) for client, secret in (key.values.values() for key in stored))
