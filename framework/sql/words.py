"""The words of an expression, which a parser reads once."""

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
    """Returns the end of a message that something is missing: the words that stand in its place."""
    return ", the text ends" if token.kind == "end" else f", found {token.text[:30]}"


class TokenCursor:
    """The words of a text, and a parser's position in them."""

    def __init__(self, token_list: list[Token]) -> None:
        self.tokens = token_list
        self.position = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.position]

    @property
    def after(self) -> Token:
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.next
        self.position += token.kind != "end"
        return token

    def skip(self, *words: str) -> bool:
        """Skips these words if they all come next."""
        next_words = [token.word for token in self.tokens[self.position : self.position + len(words)]]
        if next_words != list(words):
            return False
        self.position += len(words)
        return True

    def expect(self, word: str) -> None:
        if not self.skip(word):
            raise self.unexpected(f"{word.upper()} is missing")

    def unexpected(self, missing: str) -> ExpressionError:
        token = self.next
        context = f", found {token.text[:30]}" if token.kind != "end" else ", the expression ends"
        return (
            foreign_operators.find(self.tokens, self.position)
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
        if token.kind == "name" and (error := foreign_operators.find(self.tokens, self.position)):
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
        """Returns the text of the words since `start`, on one line."""
        words = self.tokens[start : self.position]
        gaps = [" " * (after.offset > token.offset + len(token.text)) for token, after in pairwise(words)]
        return "".join(token.text + gap for token, gap in zip(words, [*gaps, ""], strict=True))
