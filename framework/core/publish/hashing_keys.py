"""The keys that hash a table's masked columns: the table remembers a digest of each, and no other key hashes its rows.

*Guarantee* Equal values have equal hashes in all rows of a table, whatever becomes of its secrets. A rebuild hashes all rows by new keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

from framework.base.errors import SetupError
from framework.core.context.context import Context
from framework.plan import Pipeline

PROPERTY = "sluice.hashing_keys"


def properties(context: Context, pipeline: Pipeline, earlier: Mapping[str, str] | None = None) -> dict[str, str]:
    """The property of a new table, or of one that has these `earlier` properties; none if nothing is masked. Raises a SetupError if rows of
    the table were hashed by another key of one of the secrets."""
    recorded, digests = _read(earlier or {}), context.hashing(pipeline)
    for name, digest in digests.items():
        if recorded.get(name, digest) != digest:
            message = f"the oldest key of the secret `{name}` is not the one by which {pipeline.table.identifier} was masked"
            hint = f"put that one back, since equal values would get other hashes; `sluice rebuild {pipeline.name}` masks all rows again"
            raise SetupError("mask-key-changed", message, hint)
    return {PROPERTY: json.dumps({**recorded, **digests}, sort_keys=True)} if recorded or digests else {}


def _read(table_properties: Mapping[str, str]) -> dict[str, str]:
    """The digests by the names of their secrets. Another program may have changed the property."""
    with suppress(ValueError, TypeError, AttributeError):
        return {str(name): str(digest) for name, digest in json.loads(table_properties.get(PROPERTY) or "{}").items()}
    return {}
