"""What is said when a document does not fit its options, and what to type instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from framework.errors import Problem
from framework.spec.node import Node
from framework.spec.options import Option
from framework.spec.shapes import (
    EnumShape,
    FilesShape,
    ListShape,
    MapShape,
    RecordShape,
    ScalarShape,
    Shape,
    Slot,
    UnionShape,
)
from framework.spec.syntax import SECRET_NAME, quote

_TRUTHS = {"yes": "true", "on": "true", "y": "true", "1": "true", "no": "false", "off": "false", "n": "false", "0": "false"}


@dataclass(frozen=True)
class Failure:
    """A part of a document that a keyword of its schema refuses."""

    keyword: str
    node: Node
    shape: Shape
    option: Option
    path: list[str | int]
    is_key: bool

    @property
    def label(self) -> str:
        """What the value is called: its key, or its number in the list."""
        if self.path and isinstance(self.path[-1], int):
            key = next((part for part in reversed(self.path) if isinstance(part, str)), "")
            return f"item {self.path[-1] + 1} of `{key}`"
        if self.path:
            return f"`{self.path[-1]}`"
        name = self.shape.name if isinstance(self.shape, RecordShape) else ""
        return f"the {name}" if name else "this"

    @property
    def key(self) -> str:
        return str(self.path[-1]) if self.path and isinstance(self.path[-1], str) else ""

    @property
    def said(self) -> str:
        """The value, unless it could be a secret."""
        hidden = isinstance(self.shape, ScalarShape) and self.shape.secret != "no"
        if hidden or any(SECRET_NAME.search(part) for part in self.path if isinstance(part, str)):
            return "something else"
        text = " ".join(self.node.text.split())
        return f"`{text if len(text) <= 60 else text[:57] + '…'}`"

    def problem(self, code: str, message: str, hint: str) -> Problem:
        return Problem(self.node.where, code, message, hint)


def problems_of(failure: Failure) -> Iterator[Problem]:
    node, shape = failure.node, failure.shape
    if node.unknown or (node.secret is not None and not isinstance(shape, ListShape | MapShape | RecordShape | FilesShape)):
        return
    if node.is_null and failure.keyword in ("type", "enum", "anyOf"):
        yield _missing_value(failure)
    elif failure.keyword == "additionalProperties":
        yield from _unknown_keys(failure)
    elif failure.keyword == "required":
        yield from _missing_keys(failure)
    elif failure.keyword in ("minItems", "maxItems", "minProperties", "maxProperties"):
        yield from _wrong_count(failure)
    elif failure.keyword in ("minimum", "maximum"):
        yield out_of_range(failure)
    elif failure.keyword == "pattern":
        assert isinstance(shape, ScalarShape)
        yield bad_text(failure, shape)
    elif node.kind == "scalar" and isinstance(shape, EnumShape | UnionShape) and "scalar" in _forms(shape):
        yield _unknown_value(failure)
    else:
        yield failure.problem("wrong-type", _must_be(failure), _type_hint(failure))


def _quoted(names: Iterable[object]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _either(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " or " + parts[-1]


def written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def closest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    known = list(names)
    plain = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    found = difflib.get_close_matches(plain, known, 1, 0.65)
    return found[0] if found else next((each for each in known if each.lower() == name.lower()), None)


def _forms(shape: Shape) -> list[str]:
    return [form for each in shape.alternatives for form in _forms(each)] if isinstance(shape, UnionShape) else [shape.form]


def describe(shape: Shape) -> str:
    if isinstance(shape, ScalarShape):
        return shape.scalar.noun
    if isinstance(shape, EnumShape):
        return _either([f"`{written(value)}`" for value in shape.values])
    if isinstance(shape, UnionShape):
        return _either([describe(each) for each in shape.alternatives])
    if isinstance(shape, ListShape):
        return "a list"
    if isinstance(shape, FilesShape):
        return f"a {shape.files.noun}: one key and its options"
    if isinstance(shape, RecordShape) and not shape.name:
        return f"a map with {_either([f'`{name}`' for name in shape.slots])}"
    return "a map"


def _must_be(failure: Failure) -> str:
    node = failure.node
    found = {"list": "a list", "map": "a map", "scalar": failure.said}[node.kind]
    return f"{failure.label} must be {describe(failure.shape)}, and is {found}"


def _missing_value(failure: Failure) -> Problem:
    if failure.path and isinstance(failure.path[-1], int):
        return failure.problem("missing-value", f"{failure.label} is empty", "write something after the `-`, or remove it")
    return failure.problem("missing-value", f"{failure.label} has no value", f"write {_line(failure)} or remove it")


def _line(failure: Failure) -> str:
    example = failure.option.example or _example(failure.shape)
    return f"`{failure.key}: {example}`" if failure.key else f"`{example}`"


def _example(shape: Shape) -> str:
    if isinstance(shape, ScalarShape):
        return shape.scalar.example or "text"
    if isinstance(shape, EnumShape):
        return written(shape.values[0])
    if isinstance(shape, UnionShape):
        return _example(shape.alternatives[0])
    if isinstance(shape, ListShape):
        return f"[{', '.join([_example(shape.item)] * (shape.length or 1))}]"
    if isinstance(shape, RecordShape):
        needed = {name: slot for name, slot in shape.slots.items() if slot.required} or dict(list(shape.slots.items())[:1])
        return "{" + ", ".join(f"{name}: {slot.option.example or _example(slot.shape)}" for name, slot in needed.items()) + "}"
    return "{name: …}"


def _slots(shape: Shape) -> tuple[Mapping[str, Slot], Iterable[str]]:
    """The options of a map, and those that are not in this version."""
    if isinstance(shape, FilesShape):
        return shape.slots(), shape.later()
    assert isinstance(shape, RecordShape)
    return shape.slots, shape.later


def _unknown_keys(failure: Failure) -> Iterator[Problem]:
    slots, later = _slots(failure.shape)
    for key, _ in failure.node.entries:
        name = key.text
        if name in later:
            yield not_in_this_version(key, f"`{name}`", _later_hint(failure.shape, name))
        elif name not in slots and isinstance(failure.shape, FilesShape):
            noun = failure.shape.files.noun
            meant = closest(name, [*slots, *later])
            hint = f"did you mean `{meant}`?" if meant else f"{noun}s are: {_quoted(slots)}"
            yield Problem(key.where, f"unknown-{noun}", f"there is no {noun} `{name}`", hint)
        elif name not in slots:
            owner = failure.label.replace("the ", "a ", 1) if not failure.path else failure.label
            yield Problem(key.where, "unknown-key", f"`{name}` is not an option of {owner}", _key_hint(failure, name, slots, later))


def _later_hint(shape: Shape, name: str) -> str:
    if isinstance(shape, FilesShape):
        return f"{shape.files.noun}s of this version: {_quoted(shape.slots())}"
    assert isinstance(shape, RecordShape)
    return f"remove it for now; it will say this: {shape.later[name].doc[0].lower()}{shape.later[name].doc[1:]}"


def not_in_this_version(node: Node, what: str, hint: str) -> Problem:
    return Problem(node.where, "not-in-this-version", f"{what} is not in this version of Sluice", hint)


def _key_hint(failure: Failure, name: str, slots: Mapping[str, Slot], later: Iterable[str]) -> str:
    below = [each for each, slot in slots.items() if isinstance(slot.shape, RecordShape) and name in (*slot.shape.slots, *slot.shape.later)]
    if below:
        return f"it belongs under `{below[0]}`"
    also = next((each for each, slot in slots.items() if name.lower() in slot.option.aka), None)
    meant = also or closest(name, [*slots, *later])
    if meant:
        return f"did you mean `{meant}`?"
    return f"its options are: {_quoted(slots)}"


def _missing_keys(failure: Failure) -> Iterator[Problem]:
    shape = failure.shape
    assert isinstance(shape, RecordShape)
    for name, slot in shape.slots.items():
        if slot.required and failure.node.get(name) is None:
            example = slot.option.example or _example(slot.shape)
            doc = f" ({slot.option.doc[0].lower()}{slot.option.doc[1:].rstrip('.')})" if slot.option.doc else ""
            yield failure.problem("missing-key", f"{failure.label} has no `{name}`", f"add `{name}: {example}`{doc}")


def _wrong_count(failure: Failure) -> Iterator[Problem]:
    node, shape = failure.node, failure.shape
    if failure.keyword == "maxProperties":
        slots, _ = _slots(shape)
        second = node.entries[1][0]
        if isinstance(shape, FilesShape):
            first = node.entries[0][0].text
            yield Problem(
                second.where, "too-many-keys", f"`{first}` and `{second.text}` stand in one item, which can hold one {shape.files.noun}",
                f"write `- {second.text}: …` as an item of its own",
            )  # fmt: skip
        elif all(key.text in slots for key, _ in node.entries):
            names = " and ".join(f"`{key.text}`" for key, _ in node.entries)
            yield Problem(second.where, "too-many-keys", f"{failure.label} has {names}, and only one of them can be", "keep one")
    elif failure.keyword == "minProperties" and isinstance(shape, RecordShape | FilesShape):
        slots, _ = _slots(shape)
        yield failure.problem("missing-key", f"{failure.label} says nothing", f"write one of: {_quoted(slots)}")
    elif isinstance(shape, ListShape) and shape.length is not None:
        yield failure.problem(
            "wrong-count", f"{failure.label} must have {shape.length} values, and has {len(node.items)}", f"write {_line(failure)}"
        )
    else:
        yield failure.problem("wrong-count", f"{failure.label} is empty", f"write {_line(failure)} or remove it")


def out_of_range(failure: Failure) -> Problem:
    least, most = failure.option.at_least, failure.option.at_most
    bounds = f"at least {least}" if most is None else f"at most {most}" if least is None else f"from {least} to {most}"
    return failure.problem("out-of-range", f"{failure.label} must be {bounds}, and is {failure.said}", f"write {_line(failure)}")


def bad_text(failure: Failure, shape: ScalarShape) -> Problem:
    scalar = shape.scalar
    fixed = scalar.suggest(failure.node.text) if scalar.suggest else ""
    hint = f"write {scalar.rule or scalar.example}"
    if fixed and fixed != failure.node.text and re.search(scalar.pattern, fixed):
        hint = f"write `{fixed}`: {scalar.rule}"
    if not failure.node.text.strip():
        return failure.problem(scalar.code, f"{failure.label} is empty", hint)
    subject = f"{failure.said} in {failure.label}" if failure.is_key or not failure.path else f"{failure.label} is {failure.said}, which"
    return failure.problem(scalar.code, f"{subject} is not {scalar.noun}", hint)


def _unknown_value(failure: Failure) -> Problem:
    node, shape, text = failure.node, failure.shape, failure.node.text
    alternatives = shape.alternatives if isinstance(shape, UnionShape) else (shape,)
    allowed = [written(value) for each in alternatives if isinstance(each, EnumShape) for value in each.values]
    if text in failure.option.later:
        hint = f"this version has: {_quoted(allowed)}"
        return not_in_this_version(node, f"`{failure.key}: {text}`" if failure.key else f"`{text}`", hint)
    texts = [each.scalar for each in alternatives if isinstance(each, ScalarShape)]
    meant = closest(text, [*allowed, *failure.option.later])
    code = texts[0].code if texts else "unknown-value"
    choice = _quoted(allowed) + "".join(f", or {each.rule or each.example}" for each in texts)
    hint = f"did you mean `{meant}`?" if meant else f"write {_line(failure)}" if not choice else f"it can be: {choice}"
    if any(each.form != "scalar" for each in alternatives) and not meant:
        hint = f"write {_line(failure)}"
    return failure.problem(code, _must_be(failure), hint)


def _type_hint(failure: Failure) -> str:
    node, shape = failure.node, failure.shape
    if isinstance(shape, ListShape) and node.kind == "scalar":
        item = quote(node.text) if re.search(r"[,\[\]{}:#]", node.text) else node.text
        return f"write `[{item}]`" if failure.said != "something else" else "put it in [ ]"
    if isinstance(shape, ListShape):
        return f"put `- ` before each item, or write {_line(failure)}"
    if isinstance(shape, FilesShape):
        text = node.text if node.kind == "scalar" else ""
        return f"write `{text}: …`" if text in shape.slots() else f"such as {_quoted(f'{name}: …' for name in list(shape.slots())[:3])}"
    if isinstance(shape, RecordShape | MapShape) and node.kind == "list":
        return f"leave out the `- `: write {_line(failure)}"
    if isinstance(shape, ScalarShape) and node.kind == "scalar":
        return _scalar_hint(failure, shape)
    if isinstance(shape, ScalarShape) and node.kind != "scalar":
        return f"write {_line(failure)}; text that starts with [ or {{ needs quotes"
    return f"write {_line(failure)}"


def _scalar_hint(failure: Failure, shape: ScalarShape) -> str:
    text = failure.node.text
    if shape.json == "boolean":
        meant = _TRUTHS.get(text.lower()) or (text.lower() if text.lower() in ("true", "false") else "")
        if meant:
            return f"write `{failure.key}: {meant}`" if failure.key else f"write `{meant}`"
        return "write `true` or `false`"
    if shape.json in ("integer", "number"):
        plain = re.sub(r"^(\+|0+(?=\d))|[_ ,](?=\d{3})", "", text)
        plain = re.sub(r"\.0+$", "", plain) if shape.json == "integer" else plain
        if re.fullmatch(r"-?(0|[1-9]\d{0,17})(\.\d+)?", plain) and (shape.json == "number" or "." not in plain):
            how = " without quotes" if failure.node.quoted else ""
            return f"write `{plain}`{how}"
    return f"write {_line(failure)}"
