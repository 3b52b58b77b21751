"""Telling incidents at one tick of a sensor: each receiver what it has yet to be told, in a time that Dagster grants.

*Guarantee* A receiver that fails holds up no other, and rests, each time for longer. A tick sends nothing after twenty seconds: Dagster
ends one that takes a minute, and what it has noted is lost.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping

from framework.base.clock import utc_now
from framework.base.errors import SluiceError
from framework.base.pauses import Pauses, note_failure, rests
from framework.host.assets.incidents import DagsterIncident

_LONGEST = 20.0  # seconds in which a tick begins to send
_FIRST_PAUSE, _LONGEST_PAUSE = 25.0, 3600.0  # seconds before a receiver that failed is tried again

Tell = Callable[[DagsterIncident], object]


class Telling:
    """The receivers at one tick. `pauses` are changed."""

    def __init__(self, receivers: Mapping[str, Tell], pauses: Pauses, log: logging.Logger) -> None:
        self._receivers, self._pauses, self._log = receivers, pauses, log
        self._begin = time.monotonic()
        self.sent = 0
        self.failed = 0
        for name in pauses.keys() - receivers.keys():
            del pauses[name]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._receivers)

    def tell(self, incident: DagsterIncident, names: Collection[str]) -> list[str]:
        """Tells an incident to these receivers. Returns those that were told."""
        return [name for name in sorted(self.names & set(names)) if not self._rests(name) and self._tells(name, incident)]

    def _rests(self, name: str) -> bool:
        is_late = time.monotonic() - self._begin > _LONGEST
        return is_late or rests(self._pauses, name, utc_now().timestamp(), _LONGEST_PAUSE)

    def _tells(self, name: str, incident: DagsterIncident) -> bool:
        try:
            self._receivers[name](incident)
        except Exception as error:  # of the project's own function, too
            self._log.error(f"{incident.title}: {error}", exc_info=not isinstance(error, SluiceError))
            note_failure(self._pauses, name, utc_now().timestamp(), _FIRST_PAUSE, _LONGEST_PAUSE)
            self.failed += 1
            return False
        self._pauses.pop(name, None)
        self.sent += 1
        return True
