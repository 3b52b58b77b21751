"""Operators of other dialects, recognised where parsing stops, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

from framework.sql.dialects import FIELDS, INFIX, PAIRS
from framework.sql.faults import ExpressionError, refused
from framework.sql.tokens import Token


def find(tokens: Sequence[Token], at: int) -> ExpressionError | None:
    """The error for the operator at this place, if it belongs to another dialect."""
    token, before = tokens[at], tokens[max(at - 1, 0)]
    after = tokens[min(at + 1, len(tokens) - 1)]
    for first, second in ((before, token), (token, after)):
        if (first.word, second.word) in PAIRS and second.offset == first.offset + 1:
            return _refused(first, f"{first.text}{second.text}", PAIRS[first.word, second.word])
    behind = at > 0 and (before.kind != "mark" or before.text in ("]", ")"))
    if behind and (token.text == ":" or (token.text == "->" and (after.kind == "string" or after.text == ">"))):
        return _refused(token, token.text, FIELDS)
    if behind and token.word in INFIX:
        return _refused(token, token.text.upper(), INFIX[token.word])
    if behind and before.word == "if":
        return _refused(before, "IF … THEN", "write `case when b then 1 else 2 end`, or `if(b, 1, 2)`")
    if token.kind == "string" and before.kind == "name" and before.offset + len(before.text) == token.offset:
        return _refused(before, f"{before.text}'…'", "write `'text'`, with no letter in front")
    if not behind and token.text == "[":
        return _refused(token, "[…]", "a name that needs quotes stands in backquotes; a list is `array('a', 'b')`")
    return None


def _refused(token: Token, written: str, hint: str) -> ExpressionError:
    return refused(token.offset, "sql-syntax", f"{written} is not an operator here", hint)
