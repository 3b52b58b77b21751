"""Keys whose rows were deleted for good, by `sluice forget`: a property of the table has their hashes, so that no batch brings a row back.

A hash covers the values of a key's columns as text, with a salt of the table. Limit: whoever reads the property can try values that are
easily guessed, such as small numbers.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from framework.base.errors import RefusedError
from framework.sql.quote import identifier, literal

PROPERTY = "sluice.forgotten"
FORGETS = "sluice.forgets"  # in the summary of each snapshot of `sluice forget`; the last one has a digest of all keys
DELETING = "deleting"  # the value of `FORGETS` in those before the last one
_DIGITS = 32  # of a hash

Columns = tuple[str, ...]


@dataclass(frozen=True)
class Forgotten:
    """The hashes of a table, by the columns of the keys."""

    salt: str = field(default_factory=lambda: secrets.token_hex(16))
    hashes: Mapping[Columns, frozenset[str]] = field(default_factory=dict)

    def hash(self, values: Sequence[str]) -> str:
        text = self.salt + "".join(f" {len(value)} {value}" for value in values)
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]

    def and_also(self, columns: Columns, keys: Iterable[Sequence[str]]) -> Forgotten:
        hashes = self.hashes.get(columns, frozenset()) | {self.hash(values) for values in keys}
        return replace(self, hashes={**self.hashes, columns: hashes})

    def text(self) -> str:
        keys = [{"columns": list(columns), "hashes": sorted(hashes)} for columns, hashes in sorted(self.hashes.items())]
        return json.dumps({"salt": self.salt, "keys": keys}, separators=(",", ":"))

    def renamed(self, names: Mapping[str, str]) -> Forgotten:
        """Renames the columns of the keys."""
        return replace(
            self, hashes={tuple(names.get(name, name) for name in columns): hashes for columns, hashes in self.hashes.items()}
        )

    def missing(self, row_columns: Collection[str]) -> list[str]:
        """The columns of keys that a row lacks, without which it cannot be recognised."""
        return sorted({name for columns in self.hashes for name in columns} - set(row_columns))

    def condition(self, row_columns: Collection[str]) -> str | None:
        """SQL of whether a row with these columns is of a forgotten key; None where no key has only these columns."""
        conditions = [
            self.is_one_of(columns, hashes) for columns, hashes in self.hashes.items() if set(columns) <= set(row_columns)
        ]
        return " OR ".join(conditions) or None

    def is_one_of(self, columns: Columns, hashes: Iterable[str]) -> str:
        """SQL of whether a row is of one of these keys. A null is none."""
        texts = [f"CAST({identifier(name)} AS STRING)" for name in columns]
        text = ", ".join([literal(self.salt), *(f"' ', char_length({value}), ' ', {value}" for value in texts)])
        return f"coalesce(left(sha2(concat({text}), 256), {_DIGITS}) IN ({', '.join(map(literal, sorted(hashes)))}), false)"


def after_renaming(properties: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """The property of a table whose columns get other names; empty where nothing was forgotten."""
    keys = read(properties)
    return {PROPERTY: keys.renamed(names).text()} if keys else {}


def read(properties: Mapping[str, str]) -> Forgotten | None:
    """The forgotten keys in a table's properties; None where nothing was forgotten."""
    text = properties.get(PROPERTY)
    if text is None:
        return None
    try:
        fields = json.loads(text)
        return Forgotten(str(fields["salt"]), {tuple(entry["columns"]): frozenset(entry["hashes"]) for entry in fields["keys"]})
    except (ValueError, KeyError, TypeError) as error:
        message = f"a table's property `{PROPERTY}` cannot be read: {error}"
        raise RefusedError("position-unreadable", message, "another program changed it: restore the table's metadata") from None
