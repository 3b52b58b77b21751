"""Expand the references in scalars: ${var:NAME}, ${var:NAME:-default} and ${secret:NAME}. A value is never parsed as YAML."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from framework.base.errors import MOST_PROBLEMS, Problem
from framework.base.spelling import closest
from framework.language.node import YamlNode
from framework.language.syntax import SECRET_NAME

_ANY = re.compile(r"\$\{([^{}]*)\}?")
VARIABLE_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_SECRET_NAME = "[A-Za-z0-9_][A-Za-z0-9_./-]*"
_VARIABLE = re.compile(rf"var:(?P<name>{VARIABLE_NAME})(?::-(?P<default>.*))?\Z", re.DOTALL)
_SECRET = re.compile(rf"secret:(?P<name>{_SECRET_NAME})\Z")
# Patterns for JSON Schema: a text that contains a variable, and a text that is a secret.
HAS_VARIABLE = rf"\$\{{var:{VARIABLE_NAME}(:-[^{{}}]*)?\}}"
IS_SECRET = rf"^\$\{{secret:{_SECRET_NAME}\}}$"
_PREFIX = "SLUICE_VAR_"
MAX_STEPS = 20  # from one variable to the next
MAX_TEXT = 4_000_000  # characters that are put in, over all specs


@dataclass(kw_only=True)
class References:
    """The variables, and the problems of expanding them. Not frozen, because it caches expanded values."""

    environ: Mapping[str, str]
    written: Mapping[str, YamlNode]
    problems: list[Problem]
    values: dict[str, str | None] = field(default_factory=dict)  # None: no value, and a problem was reported
    open: list[str] = field(default_factory=list)
    put_in: int = 0  # characters

    def expand(self, node: YamlNode, hidden: bool = False) -> YamlNode:
        """The node with expanded references. A `hidden` node may hold a secret, and no problem repeats its text."""
        if node.kind == "scalar":
            return node if _is_plain(node) else self._scalar(node, hidden)
        items = tuple(self.expand(item, hidden) for item in node.items)
        entries = tuple(
            (key, value if _is_plain(value) else self.expand(value, hidden or SECRET_NAME.search(key.text) is not None))
            for key, value in node.entries
        )
        is_unchanged = all(new is old for new, old in zip(items, node.items, strict=True))
        if is_unchanged and all(new[1] is old[1] for new, old in zip(entries, node.entries, strict=True)):
            return node
        return dataclasses.replace(node, items=items, entries=entries)

    def _scalar(self, node: YamlNode, hidden: bool) -> YamlNode:
        parts: list[str] = []
        end = 0
        for match in _ANY.finditer(node.text):
            parts.append(node.text[end : match.start()])
            end = match.end()
            secret = _SECRET.match(match[1])
            if match[0] == node.text and secret:
                return dataclasses.replace(node, secret=secret["name"], quoted=True)
            value = self._one(match, node, hidden)
            if value is None or not self._fits(value, node):
                return dataclasses.replace(node, unknown=True)
            parts.append(value)
        return dataclasses.replace(node, text="".join([*parts, node.text[end:]]), expanded=True, text_at=None, pieces=())

    def _fits(self, value: str, node: YamlNode) -> bool:
        """Whether the total length is within the limit: variables in variables can double a text with each step."""
        before = self.put_in
        self.put_in += len(value)
        if before <= MAX_TEXT < self.put_in:
            message = f"the references of these specs expand to over {MAX_TEXT:,} characters"
            self._refuse(node, "reference-limit", message, "make the values of the variables shorter")
        return self.put_in <= MAX_TEXT

    def _one(self, match: re.Match[str], node: YamlNode, hidden: bool) -> str | None:
        variable = _VARIABLE.match(match[1])
        if not match[0].endswith("}") or (not variable and not _SECRET.match(match[1])):
            subject = "this" if hidden else f"`{match[0][:60]}`"
            hint = "write `${secret:NAME}`" if hidden else _reference_hint(match[0])
            self._refuse(node, "bad-reference", f"{subject} is not a reference", hint)
            return None
        if not variable:
            self._refuse(
                node, "secret-not-allowed", f"`{match[0]}` is inside other text, which would show the secret",
                f'make the secret the whole value: `"{match[0]}"`',
            )  # fmt: skip
            return None
        name = variable["name"]
        if name in self.open:
            circle = " → ".join([*self.open[self.open.index(name) :], name])
            self._refuse(node, "reference-cycle", f"these variables refer to each other: {circle}", "give one of them a value")
            self.values.update(dict.fromkeys(self.open))
            return None
        return self._variable(name, variable["default"], node)

    def _variable(self, name: str, default: str | None, node: YamlNode) -> str | None:
        if _PREFIX + name in self.environ:
            return self._given(name, node)
        if name in self.values:
            return self.values[name]
        if name in self.written and len(self.open) == MAX_STEPS:
            message = f"over {MAX_STEPS} variables lead from `{self.open[0]}` to `{name}`"
            self._refuse(node, "reference-limit", message, f"give `{name}` a value without a reference")
            self.values.update(dict.fromkeys(self.open))
            return None
        if name in self.written:
            self.open.append(name)
            value = self.expand(self.written[name])
            self.open.pop()
            self.values[name] = None if value.unknown or value.secret or value.kind != "scalar" else value.text
            return self.values[name]
        if default is not None:
            return default
        if len(self.problems) > MOST_PROBLEMS:
            return None
        suggestion = closest(name, self.written) if self.written else None
        extra_hint = f"; did you mean `${{var:{suggestion}}}`?" if suggestion else ""
        self._refuse(
            node, "unknown-variable", f"the variable `{name}` has no value",
            f"set {_PREFIX}{name}, add it to the `variables` document, or write `${{var:{name}:-default}}`{extra_hint}",
        )  # fmt: skip
        return None

    def _given(self, name: str, node: YamlNode) -> str | None:
        """The value from the process environment. It can hold any bytes, and must be UTF-8."""
        value = self.environ[_PREFIX + name]
        if value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value):
            return value
        message = f"{_PREFIX}{name} in the environment holds bytes that are not UTF-8"
        self._refuse(node, "not-utf8", message, "set it to UTF-8 text")
        return None

    def _refuse(self, node: YamlNode, code: str, message: str, hint: str) -> None:
        self.problems.append(Problem(node.where, code, message, hint))


def _is_plain(node: YamlNode) -> bool:
    return node.kind == "scalar" and "${" not in node.text


def _reference_hint(text: str) -> str:
    if not text.endswith("}"):
        return "close it with }; a default cannot hold braces"
    inner = text[2:-1].strip()
    if re.fullmatch(r"(env:|vars?\.|env\.)?[A-Za-z_][A-Za-z0-9_]*(:-.*)?", inner):
        name = re.sub(r"^(env:|vars?\.|env\.)", "", inner)
        return f"write `${{var:{name}}}` for a variable, `${{secret:{name.split(':')[0]}}}` for a secret"
    return "write `${var:NAME}`, `${var:NAME:-default}` or `${secret:NAME}`"


def variables_of(documents: Iterable[YamlNode], problems: list[Problem]) -> dict[str, YamlNode]:
    """The values of all `variables` documents."""
    variables: dict[str, tuple[YamlNode, YamlNode]] = {}
    for document in documents:
        values = document.get("values")
        for key, value in values.entries if values else ():
            if key.text in variables:
                first_place = variables[key.text][0].where
                problems.append(Problem(
                    key.where, "duplicate-variable", f"the variable `{key.text}` already has a value at {first_place}",
                    "remove one of the two",
                ))  # fmt: skip
            elif value.kind == "scalar" and not value.is_null:
                variables[key.text] = key, value
    return {name: value for name, (_, value) in variables.items()}
