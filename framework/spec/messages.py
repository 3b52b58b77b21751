"""What is said when a document does not fit its options, and what to type instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from framework.errors import Problem
from framework.spec import extensions
from framework.spec.kinds import KINDS
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
from framework.spec.syntax import SECRET_NAME, SECRET_TEXT, quote, short
from framework.spec.words import alternatives, closest, describe, example, quoted, written

_LONGEST = 200  # characters of a text that a hint repeats
_TRUTHS = {
    "yes": "true",
    "on": "true",
    "y": "true",
    "1": "true",
    "no": "false",
    "off": "false",
    "n": "false",
    "0": "false",
}


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
        kind, name = self.node.entries[0]
        return f"{kind.text} `{short(name.text)}`" if name.kind == "scalar" and name.text else f"this {kind.text}"

    @property
    def key(self) -> str:
        return str(self.path[-1]) if self.path and isinstance(self.path[-1], str) else ""

    @property
    def said(self) -> str:
        """The value, unless it could be a secret."""
        hidden = isinstance(self.shape, ScalarShape) and self.shape.secret != "no"
        hidden = hidden or _has_login(self.node.text) or SECRET_TEXT.search(self.node.text) is not None
        if hidden or any(SECRET_NAME.search(part) for part in self.path if isinstance(part, str)):
            return "something else"
        if self.node.text != self.node.text.strip():
            return f'`"{short(self.node.text.encode("unicode_escape").decode())}"`'
        text = short(" ".join(self.node.text[:1000].split()))
        return (
            f'`"{text}"`'
            if self.keyword == "type" and self.node.quoted and not self.node.expanded and not self.node.secret
            else f"`{text}`"
        )

    def problem(self, code: str, message: str, hint: str) -> Problem:
        return Problem(self.node.where, code, message, hint)


def _has_login(text: str) -> bool:
    """`me:password@host`"""
    return "@" in text and any(":" in part.rpartition("@")[0][1:-1] for part in text.split())


def problems_of(failure: Failure) -> Iterator[Problem]:
    node, shape = failure.node, failure.shape
    if node.unknown or (node.secret is not None and not isinstance(shape, ListShape | MapShape | RecordShape | FilesShape)):
        return
    if node.is_null and failure.keyword in ("type", "enum", "anyOf"):
        yield _missing_value(failure)
    elif failure.keyword == "additionalProperties":
        yield from _unknown_keys(failure)
    elif failure.keyword in ("required", "minProperties") and not node.whole:
        return
    elif failure.keyword == "required":
        yield from _missing_keys(failure)
    elif failure.keyword in ("minItems", "maxItems", "minProperties", "maxProperties"):
        yield from _wrong_count(failure)
    elif failure.keyword in ("minimum", "maximum"):
        yield out_of_range(failure)
    elif failure.keyword == "pattern":
        assert isinstance(shape, ScalarShape)
        yield bad_text(failure, shape)
    elif (
        node.kind == "scalar"
        and isinstance(shape, EnumShape | UnionShape)
        and any(each.form == "scalar" for each in alternatives(shape))
    ):
        yield _unknown_value(failure)
    else:
        yield failure.problem("wrong-type", _must_be(failure), _type_hint(failure))


def _must_be(failure: Failure) -> str:
    node = failure.node
    found = {"list": "a list", "map": "a map", "scalar": failure.said}[node.kind]
    return f"{failure.label} must be {describe(failure.shape)}, and is {found}"


def _missing_value(failure: Failure) -> Problem:
    if failure.path and isinstance(failure.path[-1], int):
        return failure.problem("missing-value", f"{failure.label} is empty", "write something after the `-`, or remove it")
    return failure.problem("missing-value", f"{failure.label} has no value", f"write {_line(failure)}")


def _line(failure: Failure) -> str:
    text = failure.option.example or example(failure.shape)
    return f"`{failure.key}: {text}`" if failure.key else f"`{text}`"


def _slots(shape: Shape) -> tuple[Mapping[str, Slot], Iterable[str]]:
    """The options of a map, and those that are not in this version."""
    if isinstance(shape, FilesShape):
        return shape.slots(), shape.later()
    assert isinstance(shape, RecordShape)
    return shape.slots, shape.later


def _unknown_keys(failure: Failure) -> Iterator[Problem]:
    slots, later = _slots(failure.shape)
    if beside(failure.shape, failure.node):
        return
    named = _step_in_value(failure)
    if named:
        key, value = failure.node.entries[0]
        hint = f"the step's name is the key: `- {value.text}: …`"
        yield Problem(key.where, "unknown-step", f"there is no step `{key.text}`", hint)
        return
    for key, value in failure.node.entries:
        name = key.text
        if not failure.path and name in KINDS and name not in slots and not _owned(name, slots):
            hint = f"write `---` on a line above it, if a {name} begins here"
            yield Problem(key.where, "unknown-key", f"`{name}` is not an option of {failure.label}", hint)
            return  # what follows would belong to it
        if name in later:
            hint = (
                f"{failure.shape.files.noun}s of this version: {quoted(slots)}"
                if isinstance(failure.shape, FilesShape)
                else "remove it for now"
            )
            yield not_in_this_version(key, f"`{name}`", hint)
        elif name not in slots and isinstance(failure.shape, FilesShape):
            if name in extensions.found(failure.shape.files.package).broken:
                continue
            noun = failure.shape.files.noun
            meant = closest(name, [*slots, *later])
            hint = f"did you mean `{meant}`?" if meant else f"{noun}s are: {quoted(slots)}"
            yield Problem(key.where, f"unknown-{noun}", f"there is no {noun} `{name}`", hint)
        elif name not in slots:
            hint = "write numbers without commas" if name.isdigit() and value.is_null else _key_hint(name, slots, later)
            yield Problem(key.where, "unknown-key", f"`{short(name)}` is not an option of {failure.label}", hint)


def beside(shape: Shape, node: Node) -> bool:
    """`derive:` with what belongs below it beside it, at the same indent."""
    if not isinstance(shape, FilesShape) or len(node.entries) < 2:
        return False
    first, value = node.entries[0]
    return first.text in shape.slots() and value.is_null


def _step_in_value(failure: Failure) -> bool:
    """`- name: filter`, as other tools have it."""
    key, value = failure.node.entries[0]
    if not isinstance(failure.shape, FilesShape) or failure.shape.files.noun != "step":
        return False
    return key.text in ("name", "type", "step", "kind", "action", "transform") and value.text in failure.shape.slots()


def not_in_this_version(node: Node, what: str, hint: str) -> Problem:
    return Problem(node.where, "not-in-this-version", f"{what} is not in this version of Sluice", hint)


def _meant_key(name: str, slots: Mapping[str, Slot], later: Iterable[str]) -> str | None:
    also = next((each for each, slot in slots.items() if name.lower() in slot.option.aka), None)
    return also or closest(name, [*slots, *later])


def could_mean(name: str, slots: Mapping[str, Slot], later: Iterable[str]) -> set[str]:
    """The options that a hint for an unknown key would name."""
    meant = _meant_key(name, slots, later)
    return {*_owners(name, slots), *([meant] if meant else [])}


def _owned(name: str, slots: Mapping[str, Slot]) -> bool:
    """`topic: trades` in a pipeline that says no other source."""
    return any(name in slot.option.aka for slot in slots.values())


def _owners(name: str, slots: Mapping[str, Slot]) -> list[str]:
    """The options under which this one belongs, the likeliest first."""
    below = {each: slot.shape for each, slot in slots.items() if isinstance(slot.shape, RecordShape)}
    needed = [each for each, shape in below.items() if name in shape.slots and shape.slots[name].required]
    given = [each for each, shape in below.items() if name in shape.slots]
    return [*needed, *given, *(each for each, shape in below.items() if name in shape.later)]


def _key_hint(name: str, slots: Mapping[str, Slot], later: Iterable[str]) -> str:
    owners = _owners(name, slots)
    if owners:
        return f"it belongs under `{owners[0]}`"
    meant = _meant_key(name, slots, later)
    if meant:
        return f"did you mean `{meant}`?"
    return f"its options are: {quoted(each for each, slot in slots.items() if slot.option.doc)}"


def _missing_keys(failure: Failure) -> Iterator[Problem]:
    slots, later = _slots(failure.shape)
    given = {key.text for key, _ in failure.node.entries}
    if given & set(later):
        return  # without what this version lacks, another key may be needed; that is seen once it is removed
    misspelt = {_meant_key(name, slots, later) for name in given if name not in slots and name not in later}
    for name, slot in slots.items():
        if slot.required and name not in given and name not in misspelt:
            text = slot.option.example or example(slot.shape)
            doc = f" ({slot.option.doc[0].lower()}{slot.option.doc[1:].rstrip('.')})" if slot.option.doc else ""
            yield failure.problem("missing-key", f"{failure.label} has no `{name}`", f"add `{name}: {text}`{doc}")


def _wrong_count(failure: Failure) -> Iterator[Problem]:
    node, shape = failure.node, failure.shape
    if failure.keyword == "maxProperties":
        slots, _ = _slots(shape)
        second = node.entries[1][0]
        if _step_in_value(failure):
            return
        if beside(shape, node):
            first = node.entries[0][0].text
            message = f"`{second.text}` stands beside `{first}`, not below it"
            yield Problem(second.where, "too-many-keys", message, f"indent it further than `{first}`")
        elif isinstance(shape, FilesShape):
            first = node.entries[0][0].text
            yield Problem(
                second.where, "too-many-keys",
                f"`{first}` and `{second.text}` stand in one item, which holds one {shape.files.noun}",
                f"write `- {second.text}: …` as an item of its own",
            )  # fmt: skip
        elif all(key.text in slots for key, _ in node.entries):
            names = " and ".join(f"`{key.text}`" for key, _ in node.entries)
            yield Problem(second.where, "too-many-keys", f"{failure.label} has {names}, and only one of them can be", "keep one")
    elif failure.keyword == "minProperties" and isinstance(shape, RecordShape | FilesShape):
        slots, _ = _slots(shape)
        yield failure.problem("missing-key", f"{failure.label} says nothing", f"write one of: {quoted(slots)}")
    elif isinstance(shape, ListShape) and shape.length is not None:
        yield failure.problem(
            "wrong-count",
            f"{failure.label} must have {shape.length} values, and has {len(node.items)}",
            f"write {_line(failure)}",
        )
    else:
        yield failure.problem("wrong-count", f"{failure.label} is empty", f"write {_line(failure)}")


def out_of_range(failure: Failure) -> Problem:
    least, most = failure.option.at_least, failure.option.at_most
    bounds = f"at least {least}" if most is None else f"at most {most}" if least is None else f"from {least} to {most}"
    return failure.problem("out-of-range", f"{failure.label} must be {bounds}, and is {failure.said}", f"write {_line(failure)}")


def bad_text(failure: Failure, shape: ScalarShape) -> Problem:
    scalar = shape.scalar
    fixed = scalar.suggest(failure.node.text) if scalar.suggest and len(failure.node.text) <= _LONGEST else ""
    hint = f"write {scalar.rule or scalar.example}"
    if fixed and fixed != failure.node.text and re.search(scalar.pattern, fixed):
        hint = f"write `{fixed}`: {scalar.rule}"
    if not failure.node.text.strip():
        return failure.problem(scalar.code, f"{failure.label} is empty", hint)
    subject = (
        f"{failure.said} in {failure.label}"
        if failure.is_key or not failure.path
        else f"{failure.label} is {failure.said}, which"
    )
    return failure.problem(scalar.code, f"{subject} is not {scalar.noun}", hint)


def _unknown_value(failure: Failure) -> Problem:
    node, text = failure.node, failure.node.text
    choices = alternatives(failure.shape)
    allowed = [written(value) for each in choices if isinstance(each, EnumShape) for value in each.values]
    if text in failure.option.later:
        hint = f"this version has: {quoted(allowed)}"
        return not_in_this_version(node, f"`{failure.key}: {text}`" if failure.key else f"`{text}`", hint)
    texts = [each.scalar for each in choices if isinstance(each, ScalarShape)]
    meant = closest(text, [*allowed, *failure.option.later])
    if meant:
        hint = f"did you mean `{meant}`?"
    elif texts:
        hint = f"write {quoted(allowed)} or {texts[0].rule or texts[0].example}"
    else:
        such = "one of them, such as " if len(allowed) > 1 else ""
        hint = f"write {_wrapped(failure) or such + _line(failure)}"
    return failure.problem(texts[0].code if texts else "unknown-value", _must_be(failure), hint)


def _wrapped(failure: Failure) -> str:
    """The option with the text put where it would fit: `run: 5m` was meant as `run: {every: 5m}`."""
    for shape in alternatives(failure.shape):
        slots = shape.slots if isinstance(shape, RecordShape) else {}
        needed = [name for name, slot in slots.items() if slot.required]
        for name, slot in slots.items():
            if needed in ([], [name]) and _takes(slot.shape, failure.node):
                inner = f"{{{name}: {failure.node.text}}}"
                return f"`{failure.key}: {inner}`" if failure.key else f"`{inner}`"
    return ""


def _takes(shape: Shape, node: Node) -> bool:
    if isinstance(shape, EnumShape):
        return node.text in map(written, shape.values)
    if len(node.text) > _LONGEST or re.search(r"[,\[\]{}:#]", node.text):
        return False
    if not isinstance(shape, ScalarShape) or shape.secret != "no":
        return False
    fits = {"integer": node.is_whole, "number": node.is_number, "boolean": node.is_bool}
    return fits.get(shape.json, bool(shape.scalar.pattern and re.search(shape.scalar.pattern, node.text)))


def _type_hint(failure: Failure) -> str:
    node, shape = failure.node, failure.shape
    if isinstance(shape, ListShape) and node.kind == "scalar" and len(node.text) <= _LONGEST:
        item = quote(node.text) if re.search(r"[,\[\]{}:#]", node.text) else node.text
        return f"write `{failure.key}: [{item}]`"
    if isinstance(shape, ListShape):
        return f"put `- ` before each item, or write {_line(failure)}"
    if isinstance(shape, FilesShape) and node.text in shape.slots():
        return f"write `{node.text}: {example(shape.slots()[node.text].shape)}`"
    if isinstance(shape, RecordShape) and node.kind == "scalar":
        return f"write {_wrapped(failure) or _line(failure)}"
    if isinstance(shape, RecordShape | MapShape) and node.kind == "list":
        return f"write {_line(failure)}, which is no list"
    if isinstance(shape, ScalarShape) and node.kind == "scalar":
        return _scalar_hint(failure, shape)
    if isinstance(shape, ScalarShape) and shape.secret == "no":
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
