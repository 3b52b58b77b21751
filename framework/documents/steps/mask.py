"""Hides personal data: the table gets a hash, a part or nothing of a value, and nothing that Sluice writes has the plain one.

Bad rows of the pipeline keep their messages encrypted by the same key, reasons have no values, previews show rows from this step on, and
the table has no statistics of the columns. `sluice reveal` decrypts what `encrypt` made.

| method | what becomes of a value |
| --- | --- |
| `hmac` | a keyed hash: equal values stay equal, in all columns and tables of the key, so that they can be counted and joined |
| `encrypt` | a text that holders of the key can reveal; equal values of a column give equal texts |
| `redact` | `***` |
| `partial` | `***` and the last or first characters; a text that is not longer is `***` |
| `generalize` | the beginning of a time's year, month, day or hour; the lower end of a number's range; an address's network |
| `"null"` | null |
| `drop` | no column |

Before a hash or an encryption, texts are brought to Unicode's form NFC, and 1, 1.0 and 1.00 are one number. Bring a mail address to lower
case by a step before, if that does not matter. A null stays null. `sluice test` needs no secret: it masks by a key of its own, always the
same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from framework.base.errors import Problem, Where
from framework.base.spelling import the_names
from framework.base.types import VOID, Array, Struct, Type
from framework.documents.pipeline.landing import Landing
from framework.documents.rows import Resolved, Rows
from framework.documents.steps import _masks
from framework.language.options import OptionGroup, StepDocument, option
from framework.language.scalars import FieldPath, Name
from framework.plan import ColumnSql, Joined, MaskKey, Masks, SecretRef
from framework.sql.quote import identifier

EXAMPLE = """\
columns: {email: string, phone: string, born: date, amount: double}
steps:
  - mask: {key: "${secret:pii}", columns: {email: redact, phone: {partial: {keep_last: 4}}, born: {generalize: year}}}
given:
  - {email: ann@example.com, phone: "+49 30 1234567", born: 1985-07-03, amount: 12.5}
expect:
  - {email: "***", phone: "***4567", born: 1985-01-01, amount: 12.5}
"""

ADDS = ""
HIDES = True  # reasons of the pipeline's bad rows have no values
_JOINED = ("hmac", "encrypt")  # by which values stay equal or different


@dataclass(frozen=True)
class Key(OptionGroup):
    """A key: encrypted values name it by its id."""

    id: Name = option("The key's id.", example="k2", aka=["name"])
    secret: SecretRef = option("The secret.", example='"${secret:pii_2}"', aka=["value", "key"])


@dataclass(frozen=True)
class Keys(OptionGroup):
    """Several keys, while a newer one replaces an older one."""

    now: Key = option("The key that masks.", example='{id: k2, secret: "${secret:pii_2}"}', aka=["new", "current"])
    old: tuple[Key, ...] = option("Keys that only reveal what they encrypted.", default=(), example="[]")


@dataclass(frozen=True)
class Written(OptionGroup):
    """The key, and what becomes of each column."""

    columns: dict[FieldPath, _masks.Plain | _masks.Method] = option(
        "The columns, or fields of structs such as `customer.email`, also in lists; and what becomes of each.",
        example="{email: hmac}", aka=["fields"], at_least=1,
    )  # fmt: skip
    key: SecretRef | None = option(
        "The secret that hashes and encrypts, at least 16 characters, such as 32 random ones.", default=None, example='"${secret:pii}"',
        aka=["secret"],
    )  # fmt: skip
    keys: Keys | None = option(
        "Several keys by their ids, in place of `key`.", default=None, example='{now: {id: k2, secret: "${secret:pii_2}"}}'
    )

    def problems(self) -> Iterable[Problem]:
        if not {"key", "keys"} & self.gaps and (self.key is None) == (self.keys is None):
            message, hint = "`key` and `keys` are both given", "remove `key`, or remove `keys`"
            if self.key is None:
                message, hint = "`mask` needs a key: a hash without one can be guessed", 'write `key: "${secret:pii}"`'
            yield Problem(self.place(), "mask-needs-key", message, hint)


def resolve(step: StepDocument, rows: Rows) -> Resolved:
    written: Written = step.value
    keys = _keys(written)
    columns = {column.name: column for column in rows.columns}
    assign: dict[str, str] = {}
    paths = []
    for path, method in written.columns.items():
        root, *rest = path.split(".")
        if outer_path := next((candidate for candidate in written.columns if path.startswith(f"{candidate}.")), None):
            message, hint = f"`{path}` is in `{outer_path}`, which is masked as a whole", "name only one of them"
            rows.problems.append(Problem(written.key_place("columns", path), "mask-twice", message, hint))
            continue
        column = columns.get(root) or rows.column(root, written.key_place("columns", path))
        if column is None or column.type == VOID or not _is_there(column.type, rest, path, written, rows):
            continue
        masked_column = _masks.at_path(
            assign.get(root, identifier(root)), column.type, rest, _leaf(method, keys, path.split("."))
        )
        if masked_column is None:
            del columns[root]
            continue
        if masked_column.wrong:
            rows.problems.append(
                Problem(written.place("columns", path), "mask-type", f"`{path}` {masked_column.wrong}", masked_column.hint)
            )
        assign[root] = masked_column.sql
        columns[root] = replace(column, type=masked_column.type)
        paths.append(tuple(_leaf_path(column.type, path.split("."))))
    encrypted = tuple(tuple(path.split(".")) for path, method in written.columns.items() if method == "encrypt")
    return Resolved(
        tuple(columns.values()),
        assign=tuple((name, ColumnSql(sql, (name,))) for name, sql in assign.items() if name in columns),
        says=tuple(f"{path}: {_says(method)}" for path, method in written.columns.items()),
        landing=lambda landing: _of_keys(written, landing),
        effect=Masks(keys, tuple(paths), encrypted, tuple(_joined(written, rows))),
    )  # fmt: skip


def _joined(written: Written, rows: Rows) -> Iterator[Joined]:
    for column in rows.columns:
        method = written.columns.get(column.name)
        if isinstance(method, str) and method in _JOINED and not isinstance(column.type, Array):
            yield Joined(column.name, method, _masks.is_number(column.type))


def _leaf(method: str | _masks.Method, keys: tuple[MaskKey, ...], path: list[str]) -> Any:
    return lambda value, type_: None if method == "drop" else _masks.masked(method, value, type_, keys, path)


def _keys(written: Written) -> tuple[MaskKey, ...]:
    """The keys of a step. The id of an only key is its secret's name."""
    if written.keys is not None:
        return tuple(MaskKey(key.id, key.secret) for key in (written.keys.now, *written.keys.old))
    return (MaskKey(written.key.name, written.key),) if written.key is not None else ()


def _is_there(type_: Type, rest: list[str], path: str, written: Written, rows: Rows) -> bool:
    for name in rest:
        while isinstance(type_, Array):
            type_ = type_.element
        field = type_.field(name) if isinstance(type_, Struct) else None
        if field is None or field.name != name:  # in another case it would not be found where it is masked
            names = [struct_field.name for struct_field in type_.fields] if isinstance(type_, Struct) else []
            hint = the_names("field", names) if names else f"it is {type_}, which has no fields"
            rows.problems.append(Problem(written.key_place("columns", path), "unknown-column", f"there is no `{path}`", hint))
            return False
        type_ = field.type
    return True


def _leaf_path(type_: Type, path: list[str]) -> Iterator[str]:
    """The path as Iceberg names it: the items of a list are its `element`."""
    yield path[0]
    for name in (*path[1:], None):
        while isinstance(type_, Array):
            yield "element"
            type_ = type_.element
        if name is not None:
            assert isinstance(type_, Struct)
            yield name
            type_ = next(field.type for field in type_.fields if field.name == name)


def _says(method: str | _masks.Method) -> str:
    if isinstance(method, str):
        return method
    if method.partial is not None:
        part = method.partial
        return f"the last {part.keep_last} characters" if part.keep_last else f"the first {part.keep_first} characters"
    generalize = method.generalize
    if isinstance(generalize, str):
        return f"its {generalize}"
    assert generalize is not None
    return f"its network of {generalize.ip_prefix} bits" if generalize.ip_prefix else f"its range of {generalize.range}"


def _of_keys(written: Written, landing: Landing) -> Iterator[Problem]:
    """The problems of masks on columns by which the table tells rows apart or orders them."""
    for path, method in written.columns.items():
        if method == "drop" and not landing.holds_time(path):
            continue
        where, names = written.place("columns", path), landing.names_of(path)
        key = next((name for name in landing.into.keys if name in names), None)
        if key is not None and method not in _JOINED:
            message = f"`{key}` is a key of `write: {landing.into.write}`, and rows that differ in it would become one"
            yield Problem(where, "mask-of-key", message, "mask it by `hmac`, which keeps keys apart")
        if landing.into.order_by in names and method != "drop":
            message = f"`{landing.into.order_by}` is the `order_by` of the table, and its masked values have another order"
            yield Problem(where, "mask-of-key", message, "order by another column, such as `order_by: _kafka_timestamp`")
        if landing.orders_by_event_time and landing.holds_time(path):
            yield _kept_time(path, where, landing)


def _kept_time(path: str, where: Where, landing: Landing) -> Problem:
    """Return the problem of a time that the table would keep as it is to put rows in order."""
    message = f"`{path}` is the topic's `event_time`, which the table would keep unmasked to tell which row is newer"
    hint = "write `order_by: _kafka_timestamp`, which orders rows by Kafka's time, or leave it unmasked"
    if landing.mode.groups:
        message = (
            f"`{path}` is the topic's `event_time`, which the table would keep unmasked to tell which value is first or last"
        )
        hint = "remove the measures `first` and `last`, or leave it unmasked"
    return Problem(where, "mask-of-time", message, hint)
