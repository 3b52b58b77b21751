"""Hints with the text to type in place of a value that does not fit."""

from __future__ import annotations

import re
from decimal import Decimal

from framework.language.failure import Misfit, line_of
from framework.language.node import YamlNode
from framework.language.shapes import EnumShape, FilesShape, ListShape, MapShape, RecordShape, ScalarShape, Shape
from framework.language.syntax import quote
from framework.language.words import alternatives, example, written

LONGEST = 200  # characters of a text that a hint repeats
_TRUTHS = {"yes": "true", "on": "true", "y": "true", "1": "true", "no": "false", "off": "false", "n": "false", "0": "false"}


def wrapped(failure: Misfit) -> str:
    """The option with the text under the key where it fits: `run: 5m` becomes `run: {every: 5m}`."""
    for shape in alternatives(failure.shape):
        slots = shape.slots if isinstance(shape, RecordShape) else {}
        required_names = [name for name, slot in slots.items() if slot.required]
        for name, slot in slots.items():
            if required_names in ([], [name]) and _takes(slot.shape, failure.node):
                text = quote(failure.node.text) if re.match(r"[*&!%@`]", failure.node.text) else failure.node.text
                inner = f"{{{name}: {text}}}"
                return f"`{failure.key}: {inner}`" if failure.key else f"`{inner}`"
    return ""


def _takes(shape: Shape, node: YamlNode) -> bool:
    if isinstance(shape, EnumShape):
        return node.text in map(written, shape.values)
    if len(node.text) > LONGEST or re.search(r"[,\[\]{}:#]", node.text):
        return False
    if not isinstance(shape, ScalarShape) or shape.secret != "no":
        return False
    fits = {"integer": node.is_whole, "number": node.is_number, "boolean": node.is_bool}
    return fits.get(shape.json, bool(shape.scalar.pattern and re.search(shape.scalar.pattern, node.text)))


def type_hint(failure: Misfit) -> str:
    node, shape = failure.node, failure.shape
    if isinstance(shape, ListShape) and node.kind == "scalar" and shape.length is not None:
        return f"write {line_of(failure)}"
    if isinstance(shape, ListShape) and node.kind == "scalar" and len(node.text) <= LONGEST:
        item = quote(node.text) if re.search(r"[\[\]{}:#]|\([^)]*,|^[*&!%@`]", node.text) else node.text
        return f"write `{failure.key}: [{item}]`"
    if isinstance(shape, ListShape):
        return f"put `- ` before each item, or write {line_of(failure)}"
    if isinstance(shape, FilesShape) and node.text in shape.slots():
        return f"write `{node.text}: {example(shape.slots()[node.text].shape)}`"
    if isinstance(shape, RecordShape) and node.kind == "scalar":
        return f"write {wrapped(failure) or line_of(failure)}"
    if isinstance(shape, RecordShape | MapShape) and node.kind == "list":
        return f"write {line_of(failure)}, not a list"
    if isinstance(shape, ScalarShape) and node.kind == "scalar":
        return _scalar_hint(failure, shape)
    if isinstance(shape, ScalarShape) and shape.secret == "no":
        return f"write {line_of(failure)}; text that starts with [ or {{ needs quotes"
    return f"write {line_of(failure)}"


def _scalar_hint(failure: Misfit, shape: ScalarShape) -> str:
    text = failure.node.text
    if shape.json == "boolean":
        truth = _TRUTHS.get(text.lower()) or (text.lower() if text.lower() in ("true", "false") else "")
        if truth:
            return f"write `{failure.key}: {truth}`" if failure.key else f"write `{truth}`"
        return "write `true` or `false`"
    if shape.json in ("integer", "number"):
        digits = re.sub(r"^(\+|0+(?=\d))|[_ ,](?=\d{3})", "", text)
        digits = re.sub(r"\.0+$", "", digits) if shape.json == "integer" else digits
        if re.fullmatch(r"-?(0|[1-9]\d{0,17})(\.\d+)?", digits) and (shape.json == "number" or "." not in digits):
            suffix = " without quotes" if failure.node.quoted else ""
            return f"write `{digits}`{suffix}"
        whole_number = _whole(digits) if shape.json == "integer" else None
        if whole_number is not None:
            return f"write `{whole_number}`" if whole_number else f"write a whole number, such as {line_of(failure)}"
    return f"write {line_of(failure)}"


def _whole(text: str) -> str | None:
    """A number without its exponent; empty where it is not whole, or has very many digits. None where it is no number."""
    if not re.fullmatch(r"-?\d{1,30}(\.\d{1,30})?([eE][+-]?\d{1,2})?", text):
        return None
    value = Decimal(text)
    return str(int(value)) if value == value.to_integral_value() and abs(value) < 10**18 else ""
