"""Operators of other dialects, recognised where parsing stops, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

from framework.sql.dialects import FIELDS, INFIX, PAIRS
from framework.sql.faults import ExpressionError, refused
from framework.sql.tokens import Token


def find(tokens: Sequence[Token], index: int) -> ExpressionError | None:
    """Returns the error for the operator at this index, if it belongs to another dialect."""
    token, before = tokens[index], tokens[max(index - 1, 0)]
    after = tokens[min(index + 1, len(tokens) - 1)]
    for left_token, right_token in ((before, token), (token, after)):
        if (left_token.word, right_token.word) in PAIRS and right_token.offset == left_token.offset + 1:
            return _refused(left_token, f"{left_token.text}{right_token.text}", PAIRS[left_token.word, right_token.word])
    follows_value = index > 0 and (before.kind != "mark" or before.text in ("]", ")"))
    if follows_value and (token.text == ":" or (token.text == "->" and (after.kind == "string" or after.text == ">"))):
        return _refused(token, token.text, FIELDS)
    if follows_value and token.word in INFIX:
        return _refused(token, token.text.upper(), INFIX[token.word])
    if follows_value and before.word == "if":
        return _refused(before, "IF … THEN", "write `case when b then 1 else 2 end`, or `if(b, 1, 2)`")
    if token.kind == "string" and before.kind == "name" and before.offset + len(before.text) == token.offset:
        return _refused(before, f"{before.text}'…'", "write `'text'`, with no letter in front")
    if not follows_value and token.text == "[":
        return _refused(token, "[…]", "a name that needs quotes stands in backquotes; a list is `array('a', 'b')`")
    return None


def _refused(token: Token, operator: str, hint: str) -> ExpressionError:
    return refused(token.offset, "sql-syntax", f"{operator} is not an operator here", hint)
