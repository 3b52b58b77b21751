"""Declared options as tables: each with its description, its values and its default."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from framework.language import shapes
from framework.language.bind import bind_part
from framework.language.options import Option
from framework.language.reader import read_text
from framework.language.words import alternatives, either, in_quotes, written

HEAD = ("option", "what it is", "takes", "default")
NAME = "The name of the document."
LINKS = {"an SQL expression": "expressions.md", "a type": "index.md#values"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables(shape: shapes.RecordShape, extra_texts: Mapping[str, str], path: str = "") -> Iterator[str]:
    """The options of a record and of the records in it. `extra_texts` has text to print below the options of a path."""
    if path:
        yield f"### `{path}`"
        yield inspect.getdoc(shape.cls) or ""
    if shape.cls.exactly_one:
        extra_options = [f"`{name}`" for name in shape.cls.besides]
        yield f"Exactly one of these, and {', '.join(extra_options)} if you want:" if extra_options else "Exactly one of these:"
    if shape.slots:
        yield table(HEAD, (_row(shape, name, slot, _path(path, name)) for name, slot in shape.slots.items()))
    if shape.cls.short:
        yield f"Text in place of the options is the `{shape.cls.short}`."
    if shape.later:
        later_options = (f"`{name}` ({note.doc[:1].lower()}{note.doc[1:].rstrip('.')})" for name, note in shape.later.items())
        yield f"Not in this version: {', '.join(later_options)}."
    if path in extra_texts:
        yield extra_texts[path]
    for name, slot in shape.slots.items():
        for record in dict.fromkeys(_records(slot.shape)):
            yield from tables(record, extra_texts, _of_known(record, _path(path, name)))
    if shape.chosen:
        for name, record in shape.chosen.records.items():
            yield from tables(record, extra_texts, f"{shape.chosen.by}: {name}")


def _of_known(record: shapes.RecordShape, path: str) -> str:
    return f"{path}: {record.cls.known_by}" if record.cls.known_by else path


def _path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _records(shape: shapes.Shape) -> Iterator[shapes.RecordShape]:
    for alternative in alternatives(shape):
        if isinstance(alternative, shapes.RecordShape):
            yield alternative
        elif isinstance(alternative, shapes.ListShape):
            yield from _records(alternative.item)
        elif isinstance(alternative, shapes.MapShape):
            yield from _records(alternative.value)


def _row(shape: shapes.RecordShape, name: str, slot: shapes.Slot, path: str) -> tuple[str, ...]:
    description, _, stated_default = slot.option.doc.partition("; default: ")
    default = (
        "required"
        if slot.required
        else ""
        if shape.cls.exactly_one and name not in shape.cls.besides
        else stated_default.rstrip(".") or _default(slot)
    )
    sample = f", such as `{slot.option.example}`" if slot.option.example else ""
    if isinstance(slot.shape, shapes.EnumShape) or default == f"`{slot.option.example}`":
        sample = ""
    return (
        f"`{name}`",
        f"{description.rstrip('.')}." if description else NAME,
        takes(slot.shape, slot.option, path) + sample,
        default,
    )


def _default(slot: shapes.Slot) -> str:
    """The default as a spec would write it. A value that is parsed to another type, such as seconds, is written as its example."""
    nodes = read_text(slot.option.example, "example", [])
    if nodes and bind_part(slot.shape, slot.option, nodes[0]) == slot.default:
        return f"`{slot.option.example}`"
    return f"`{written(slot.default)}`" if isinstance(slot.default, str | int) else ""


def takes(shape: shapes.Shape, option: Option = shapes.NO_OPTION, path: str = "") -> str:
    """The allowed values, in users' words."""
    later_text = f" (not in this version: {in_quotes(option.later)})" if option.later else ""
    every = alternatives(shape)
    lists = [one for one in every if isinstance(one, shapes.ListShape)]
    others = [one for one in every if one not in lists]
    if len(lists) == 1 and len(others) == len(alternatives(lists[0].item)):  # one of these, or a list of such
        return f"{either([_takes(alternative, option, path) for alternative in others])}; or a list of these{later_text}"
    return either([_takes(alternative, option, path) for alternative in every]) + later_text


def _takes(shape: shapes.Shape, option: Option, path: str) -> str:
    inner = shapes.item_option(Option(doc=option.doc))
    match shape:
        case shapes.AnyShape():
            return "a value"
        case shapes.ScalarShape(secret="must"):
            return "a secret"
        case shapes.ScalarShape():
            noun = shape.scalar.noun
            link_text = f"[{noun}]({LINKS[noun]})" if noun in LINKS else noun
            return link_text + (" or a secret" if shape.secret == "may" else "") + _bounds(option)
        case shapes.EnumShape():
            return either([f"`{written(value)}`" for value in shape.values])
        case shapes.ListShape():
            return f"a list{f' of {shape.length}' if shape.length else ''}, each {takes(shape.item, inner, path)}"
        case shapes.MapShape():
            return f"a map from {shape.key.scalar.noun} to {takes(shape.value, inner, path)}"
        case shapes.FilesShape():
            return f"[a {shape.files.noun}](index.md#{shape.files.noun}s)"
        case shapes.RecordShape():
            short_text = f"{takes(shape.slots[shape.cls.short].shape)} or " if shape.cls.short else ""
            label = f"`{shape.cls.known_by}` with options" if shape.cls.known_by else "options"
            return f"{short_text}[{label}](#{anchor(_of_known(shape, path))})"
    raise AssertionError(f"a shape without words: {shape}")


def _bounds(option: Option) -> str:
    if option.at_least is None or option.at_most is None:
        return "" if option.at_least is None else f", {option.at_least} or more"
    return f", {option.at_least} to {option.at_most}"


def anchor(heading: str) -> str:
    """The anchor that GitHub makes from a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
