"""The words of an expression, passed over once."""

from __future__ import annotations

from itertools import pairwise

from framework.sql import foreign_operators, reserved
from framework.sql.faults import ExpressionError, refused
from framework.sql.tokens import Token

NESTED = 25
"""Parentheses, calls and signs inside each other; each costs the parser a dozen Python frames."""
DEEPEST = 100
"""Levels of a tree: `a + b + c` has three without any parenthesis."""


def too_deep(offset: int) -> ExpressionError:
    return refused(
        offset,
        "sql-too-deep",
        f"nested deeper than {NESTED} parentheses or {DEEPEST} operators",
        "cut it into several steps; x IN (…) is one operator",
    )


def but_found(token: Token) -> str:
    """The words in the place where something is missing."""
    return ", the text ends" if token.kind == "end" else f", found {token.text[:30]}"


class Words:
    """Where a parser is in the words of a text."""

    def __init__(self, token_list: list[Token]) -> None:
        self.tokens = token_list
        self.at = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    @property
    def after(self) -> Token:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.next
        self.at += token.kind != "end"
        return token

    def skip(self, *words: str) -> bool:
        """Skip these words if they all come next."""
        coming = [token.word for token in self.tokens[self.at : self.at + len(words)]]
        if coming != list(words):
            return False
        self.at += len(words)
        return True

    def expect(self, word: str) -> None:
        if not self.skip(word):
            raise self.unexpected(f"{word.upper()} is missing")

    def unexpected(self, missing: str) -> ExpressionError:
        token = self.next
        context = f", found {token.text[:30]}" if token.kind != "end" else ", the expression ends"
        return (
            foreign_operators.find(self.tokens, self.at)
            or reserved.misplaced_word(token)
            or refused(
                token.offset,
                "sql-syntax",
                f"{missing}{context}",
                "an expression is one value: columns, literals, operators, functions",
            )
        )

    def end(self) -> None:
        token = self.next
        if token.kind == "name" and (error := foreign_operators.find(self.tokens, self.at)):
            raise error
        if token.kind in ("name", "quoted") and (token.word == "as" or token.word not in reserved.WORDS):
            raise refused(
                token.offset, "sql-alias", "an expression has no alias", "the name of a new column is the key in `derive`"
            )
        if token.kind != "end":
            raise self.unexpected("an operator or the end is missing")

    def deeper(self, depth: int) -> int:
        if depth >= NESTED:
            raise too_deep(self.next.offset)
        return depth + 1

    def text(self, start: int) -> str:
        """The text of the words since `start`, on one line."""
        words = self.tokens[start : self.at]
        gaps = [" " * (after.offset > token.offset + len(token.text)) for token, after in pairwise(words)]
        return "".join(token.text + gap for token, gap in zip(words, [*gaps, ""], strict=True))
