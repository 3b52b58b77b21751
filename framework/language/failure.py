"""A part of a document that does not fit its options, and the texts that all messages about one share."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from framework.base.errors import Problem
from framework.language.node import YamlNode
from framework.language.options import Option
from framework.language.shapes import ScalarShape, Shape
from framework.language.syntax import SECRET_NAME, SECRET_TEXT, short
from framework.language.words import example


@dataclass(frozen=True)
class Misfit:
    """A refused part of a document. `path` leads to it from the document; `is_key`: it is a key of the map at that path."""

    node: YamlNode
    shape: Shape
    option: Option
    _: KW_ONLY
    path: tuple[str | int, ...]
    is_key: bool = False

    @property
    def label(self) -> str:
        """The name of the value in messages: its key, or its number in the list."""
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

    def value_text(self, with_quotes: bool = False) -> str:
        """The value, unless it could be a secret. `with_quotes` keeps its quotes, for messages about the quotes."""
        hidden = isinstance(self.shape, ScalarShape) and self.shape.secret != "no"
        hidden = hidden or _has_login(self.node.text) or SECRET_TEXT.search(self.node.text) is not None
        if hidden or any(SECRET_NAME.search(part) for part in self.path if isinstance(part, str)):
            return "something else"
        if self.node.text != self.node.text.strip():
            return f'`"{short(self.node.text.encode("unicode_escape").decode())}"`'
        text = short(" ".join(self.node.text[:1000].split()))
        with_quotes = with_quotes and self.node.quoted and not self.node.expanded and not self.node.secret
        return f'`"{text}"`' if with_quotes else f"`{text}`"

    def problem(self, code: str, message: str, hint: str) -> Problem:
        return Problem(self.node.where, code, message, hint)


def _has_login(text: str) -> bool:
    """Whether the text contains a login, as in `me:password@host`."""
    return "@" in text and any(":" in part.rpartition("@")[0][1:-1] for part in text.split())


def line_of(failure: Misfit) -> str:
    """An example line for the option."""
    text = failure.option.example or example(failure.shape)
    return f"`{failure.key}: {text}`" if failure.key else f"`{text}`"


def not_in_this_version(node: YamlNode, subject: str, hint: str) -> Problem:
    return Problem(node.where, "not-in-this-version", f"{subject} is not in this version of Sluice", hint)
