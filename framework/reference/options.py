"""Declared options as tables: what each is, what it takes, its default and an example."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping

from framework.spec.bind import bind_part
from framework.spec.options import Bound, Option
from framework.spec.reader import read_text
from framework.spec.shapes import (
    NO_OPTION,
    AnyShape,
    EnumShape,
    FilesShape,
    ListShape,
    MapShape,
    RecordShape,
    ScalarShape,
    Shape,
    Slot,
    item_option,
)
from framework.spec.words import alternatives, either, quoted, written

HEAD = "| option | what it is | takes | default | example |\n| --- | --- | --- | --- | --- |"
NAME = "The name of the document."


def tables(shape: RecordShape, more: Mapping[str, str], path: str = "") -> list[str]:
    """The options of a record and of the records in it. `more` is what stands below the options of a path."""
    parts = [] if not path else [f"### `{path}`", inspect.getdoc(shape.cls) or ""]
    if shape.cls.exactly_one:
        parts.append("Exactly one of these:")
    parts.append("\n".join([HEAD, *(_row(shape, name, slot, path) for name, slot in shape.slots.items())]))
    if shape.cls.short:
        parts.append(f"Text in place of the options is the `{shape.cls.short}`.")
    if shape.later:
        parts.append(
            "Not in this version: " + ", ".join(f"`{name}` ({_later(said.doc)})" for name, said in shape.later.items()) + "."
        )
    if path in more:
        parts.append(more[path])
    for name, slot in shape.slots.items():
        for record in _records(slot.shape):
            parts += tables(record, more, _path(path, name))
    return parts


def _path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _later(doc: str) -> str:
    return doc[:1].lower() + doc[1:].rstrip(".")


def _records(shape: Shape) -> Iterator[RecordShape]:
    for each in alternatives(shape):
        if isinstance(each, RecordShape):
            yield each
        elif isinstance(each, ListShape):
            yield from _records(each.item)
        elif isinstance(each, MapShape):
            yield from _records(each.value)


def _row(shape: RecordShape, name: str, slot: Slot, path: str) -> str:
    what, _, default = slot.option.doc.partition("; default: ")
    what = what.rstrip(".") + "." if what else NAME
    default = default.rstrip(".") or _default(slot)
    if slot.required:
        default = "required"
    elif shape.cls.exactly_one:
        default = ""
    example = (
        f"`{slot.option.example}`" if slot.option.example else f"`{slot.shape.scalar.example}`" if name == shape.name else ""
    )
    cells = (f"`{name}`", what, takes(slot.shape, slot.option, _path(path, name)), default, example)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _default(slot: Slot) -> str:
    """The default as a spec would say it. A number of seconds or bytes is read back from the example, which must be it."""
    value = slot.default
    if value is None or value == () or (isinstance(value, Bound) and not _is_example(slot)):
        return ""
    plain = isinstance(slot.shape, ScalarShape) and slot.shape.json != "string"
    if isinstance(value, str) or isinstance(slot.shape, EnumShape) or plain:
        return f"`{written(value)}`"
    assert _is_example(slot), f"the default {value} of {slot.field} is not its example"
    return f"`{slot.option.example}`"


def _is_example(slot: Slot) -> bool:
    nodes = read_text(slot.option.example, "example", [])
    return bool(nodes) and bind_part(slot.shape, slot.option, nodes[0]) == slot.default


def takes(shape: Shape, option: Option = NO_OPTION, path: str = "") -> str:
    """What may stand there, in users' words."""
    parts = [_takes(each, option, path) for each in alternatives(shape)]
    later = f" (not in this version: {quoted(option.later)})" if option.later else ""
    return either(parts) + later


def _takes(shape: Shape, option: Option, path: str) -> str:
    inner = item_option(Option(option.doc))
    match shape:
        case AnyShape():
            return "a value"
        case ScalarShape(secret="must"):
            return "a secret, `${secret:NAME}`"
        case ScalarShape():
            return shape.scalar.noun + (" or a secret" if shape.secret == "may" else "") + _bounds(option)
        case EnumShape():
            return either([f"`{written(value)}`" for value in shape.values])
        case ListShape():
            return f"a list{f' of {shape.length}' if shape.length else ''}, each {takes(shape.item, inner, path)}"
        case MapShape():
            return f"a map, for each {_bare(shape.key.scalar.noun)} {takes(shape.value, inner, path)}"
        case FilesShape():
            return f"[a {shape.files.noun}](index.md#{shape.files.noun}s)"
        case RecordShape():
            short = f"{takes(shape.slots[shape.cls.short].shape)} or " if shape.cls.short else ""
            return f"{short}[options](#{anchor(path)})"
    raise AssertionError(f"a shape without words: {shape}")


def _bare(noun: str) -> str:
    return re.sub(r"^an? ", "", noun)


def _bounds(option: Option) -> str:
    least, most = option.at_least, option.at_most
    if least is not None and most is not None:
        return f", {least} to {most}"
    return f", {least} or more" if least is not None else ""


def anchor(heading: str) -> str:
    """As GitHub makes one of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
