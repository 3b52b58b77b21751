"""Functions whose type no signature can express: it depends on a literal, on digits of decimals, or on all arguments together."""

from __future__ import annotations

from framework.sql.special import choice, formats, nested, numbers, times

TABLE = {**choice.TABLE, **formats.TABLE, **nested.TABLE, **numbers.TABLE, **times.TABLE}
