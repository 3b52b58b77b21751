"""Texts of planned objects in fixed words, for digests that outlive a process.

A digest is kept in a table's position, in the name of a tag, in the record of an export or of a failed run. Another one computes a table
again, or sends a mail again. So a text names classes and fields by the words of `WORDS`, not by the names that they have in Python. To
rename a class of the model, change its key in `WORDS`. To rename a field, write `word=attribute` there; the attribute may be a property,
where a field becomes a part of another one. A word never changes.

A new class needs an entry, and a new field of it a decision: `always`, `if_set` or `never`. `tests/plan/test_digests.py` names what has
none. Options of a catalog that are a class of their own have their words in `in_digest`, since a catalog is one file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from framework import plan as model
from framework.base import types
from framework.plan import notice, totals as accumulated


@dataclass(frozen=True)
class Words:
    """The words for a class, `name`, and for its fields. Fields in `always` are in the text, in this order, and those in `if_set`
    behind them where they are not their default: a digest stays the same although the class got such a field. Fields in `never`
    do not change what the digest stands for. `spread` is a field whose value is written as if its fields that are not None were
    the class's own."""

    name: str
    always: str = ""
    _: KW_ONLY
    if_set: str = ""
    never: str = ""
    spread: str = ""


WORDS: Mapping[type, Words] = {
    # Rows and their columns
    types.Atom: Words("Atom", "name"),
    types.Decimal: Words("Decimal", "precision scale"),
    types.Array: Words("Array", "element"),
    types.Map: Words("Map", "key value"),
    types.Struct: Words("Struct", "fields"),
    types.Field: Words("Field", "name type"),
    model.Column: Words("Column", "name type doc", never="where renamed"),
    model.Fault: Words("Fault", "stage code message when why cause"),
    model.Decoding: Words("Decoding", "columns faults structs keep schema_id unknown"),
    # Tables that are read
    model.TableChanges: Words(
        "TableSource",
        "pipeline catalog identifier columns kafka reads rows_change by_value keys versions event_time partitions old",
    ),
    model.SelectSource: Words(
        "SelectSource", "says sql names tables columns origins apart by_partition kafka reads event_time old"
    ),
    model.Lookup: Words("Join", "source on take within"),
    # Steps
    model.Step: Words(
        "Step", "name says attempts assign keep faults columns each of_tombstones memory masks join bounds", never="where effect"
    ),
    model.Explode: Words("Each", "list into"),
    model.Remember: Words("Memory", "columns state", never="admit"),
    model.Measure: Words("Measure", "bounds"),
    model.State: Words("State", "name columns says keep_for outlives_rebuild"),
    model.Masks: Words("Masks", "keys paths encrypted joined"),
    model.MaskKey: Words("MaskKey", "id secret"),
    model.Joined: Words("Joined", "column does number"),
    model.Bounds: Words("Bounds", "name column per deviations quantiles over rows at_least"),
    model.Expectation: Words("Expectation", "name says holds otherwise", never="where"),
    # Tables that are written
    model.Table: Words(
        "Table",
        "catalog namespace name columns write=write_name partition_by sort_by format_version doc masked keyed"
        " accumulated=totals step_states",
        never="adopt schema_changes places write rule",
    ),
    model.PartitionField: Words("PartitionField", "transform column width"),
    model.Keyed: Words("Keyed", "keys order versions deletes ends truncates remember says stands_in unsent", if_set="partition"),
    accumulated.Totals: Words("Accumulated", "by window measures order nth rows hidden before takes_off"),
    accumulated.Measure: Words("Measure", "name text function type argument"),
    accumulated.Window: Words("Window", "column every size late_after"),
    model.SchemaChanges: Words("SchemaChanges", "add widen drop rename narrow"),
    # What is logged in to, and by which secrets
    model.Catalog: Words("Catalog", "name type", spread="options", never="secrets publish"),
    model.Cluster: Words("Cluster", "name bootstrap security registry registry_auth"),
    model.Security: Words("Security", "protocol mechanism username password", if_set="oauth tls"),
    model.OAuth: Words("OAuth", "token_endpoint scope extensions"),
    model.Certificates: Words("Certificates", "ca certificate key key_password"),
    model.Login: Words("Login", "username password"),
    model.SecretStore: Words("SecretStore", "store=type", spread="options", never="rotated masking"),
    model.SecretRef: Words("SecretRef", "name"),
    model.Engine: Words("Engine", "master memory conf"),
    notice.Mail: Words("Mail", "host port from_ tls username password"),
}
_PLAIN = (str, int, float, bytes, Decimal, date, datetime, time, timedelta, type(None))  # whose `repr` is Python's own


def text(value: object) -> str:
    """The text of a planned object, or of plain data with such objects. Raises a TypeError for anything else."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(text, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{text(key)}: {text(item)}' for key, item in value.items())}}}"
    return written(value, _required_words(type(value)))


def written(value: Any, words: Words) -> str:
    """The text of an object by these words for its class."""
    items = [(word, getattr(value, attribute)) for word, attribute in _pairs(words.always)]
    for word, attribute in _pairs(words.if_set):
        item = getattr(value, attribute)
        if item != _defaults(type(value))[attribute]:
            items.append((word, item))
    options = getattr(value, words.spread) if words.spread else None
    if options is not None:
        option_items = ((field.name, getattr(options, field.name)) for field in fields(options) if field.repr)
        items += [(word, item) for word, item in option_items if item is not None]
    return f"{words.name}({', '.join(f'{word}={text(item)}' for word, item in items)})"


def short(value: object) -> str:
    """The digest of the text, in 16 letters and digits."""
    return hashlib.sha256(text(value).encode()).hexdigest()[:16]


def notice_id(planned_notice: notice.Notice) -> str:
    """The id of a notice in the record of an export. It changes with the notice's options, which hold secrets by name only."""
    return short((planned_notice.type, planned_notice.options))


def words_of(cls: type[Any]) -> Words | None:
    """The words for a class; None if it has none. A class of options has its words in `in_digest`, with the word for its name
    first."""
    if cls in WORDS:
        return WORDS[cls]
    name, *always = getattr(cls, "in_digest", "").split() or [""]
    if not name:
        return None
    attributes = dict(_pairs(" ".join(always)))
    field_names = [field.name for field in fields(cls) if field.repr]
    return Words(
        name,
        " ".join(always),
        if_set=" ".join(field for field in field_names if field not in attributes),
        never=" ".join(field for field in field_names if attributes.get(field, field) != field),
    )


def _required_words(cls: type[Any]) -> Words:
    words = words_of(cls)
    if words is None:
        raise TypeError(f"a plan cannot hold a {cls.__module__}.{cls.__qualname__}: it has no words in a digest")
    return words


@cache
def _pairs(names: str) -> tuple[tuple[str, str], ...]:
    """Words with the attributes that they stand for."""
    return tuple((word, attribute or word) for word, _, attribute in (name.partition("=") for name in names.split()))


def _defaults(cls: type[Any]) -> Mapping[str, object]:
    return {
        field.name: field.default_factory() if field.default_factory is not MISSING else field.default for field in fields(cls)
    }
