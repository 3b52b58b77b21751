"""The lexer of expressions: strings, numbers, names and marks, each with its place, as Spark's own lexer cuts them.

*Limit* Stricter than Spark, whose reading of these surprises: comments, text in double quotes, escapes that only drop their
backslash, invisible characters, and names in other alphabets without backquotes are refused.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from framework.sql import dialects
from framework.sql.faults import ExpressionError, refused

LONGEST = 10_000
"""The most characters of an expression."""

_LONGEST_NUMBER = 400  # digits; a double has at most 309 before the point
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<comment>--|/\*)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[lLsSyYdDfF])?(?![A-Za-z0-9_]))
    |(?P<string>[rR]'[^']*'|'(?:[^'\\]|\\.|'')*')
    |(?P<quoted>`(?:[^`]|``)+`)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<mark><=>|<>|!=|<=|>=|==|\|\||::|->|=>|<<|>>>|>>|[-+*/%<>=!~&|^().,\[\];:?])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"\\\\": "\\", "\\'": "'", '\\"': '"', "\\n": "\n", "\\t": "\t", "\\r": "\r", "\\%": "\\%", "\\_": "\\_"}
_ESCAPE = re.compile(r"\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|\\.|''", re.DOTALL)


@dataclass(frozen=True)
class Token:
    """`kind` is number, string, quoted, name, mark or end; `value` a string's text or a name's spelling, else the text itself."""

    kind: str
    text: str
    value: str
    offset: int

    @property
    def word(self) -> str:
        """The keyword or mark in lower case; empty for quoted text."""
        return self.text.lower() if self.kind in ("name", "mark") else ""


def tokens(text: str) -> list[Token]:
    """Returns the words of a text, with one of kind `end` after them."""
    if len(text) > LONGEST:
        raise refused(
            LONGEST,
            "sql-too-long",
            f"a text of SQL has at most {LONGEST:,} characters, this one {len(text):,}",
            "cut it into several steps",
        )
    characters(text)
    words: list[Token] = []
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            raise unreadable(text, offset)
        kind = match.lastgroup or ""
        if kind == "comment":
            raise refused(offset, "sql-comment", "a comment is not allowed inside SQL", "move it to a YAML comment above: # …")
        if kind == "number" and len(match.group()) > _LONGEST_NUMBER:
            raise refused(offset, "sql-type", f"a number has at most {_LONGEST_NUMBER} digits", "write a smaller one")
        if kind != "space":
            words.append(Token(kind, match.group(), value(kind, match.group(), offset), offset))
        offset = match.end()
    words.append(Token("end", "", "", len(text.rstrip())))  # not on a line behind the last one
    return words


def characters(text: str) -> None:
    """Refuses invisible characters: they make a text mean something else than it shows."""
    for offset, character in enumerate(text):
        if character not in "\t\r\n" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            raise refused(offset, "sql-character", f"the invisible character U+{ord(character):04X} is not allowed", "delete it")
    if "${" in text:
        # Spark would insert an environment variable or a setting, a secret too, before parsing.
        hint = "a variable is ${var:NAME}; the text itself is '$' || '{'"
        raise refused(text.index("${"), "sql-character", "${ is not allowed inside SQL", hint)


def value(kind: str, text: str, offset: int) -> str:
    if kind == "quoted":
        return text[1:-1].replace("``", "`")
    if kind != "string":
        return text
    if text[0] in "rR":
        return text[2:-1]
    for match in _ESCAPE.finditer(text[1:-1]):
        if match.group() not in ("''", *_ESCAPES) and len(match.group()) == 2:
            raise refused(
                offset + 1 + match.start(),
                "sql-syntax",
                f"{match.group()} is not one of the escapes \\\\ \\' \\\" \\n \\t \\r \\% \\_ \\uXXXX",
                f"write \\{match.group()} for the backslash itself, or r'…' for a pattern",
            )
    return _ESCAPE.sub(lambda match: _escaped(match.group()), text[1:-1])


def _escaped(text: str) -> str:
    return "'" if text == "''" else chr(int(text[2:], 16)) if len(text) > 2 else _ESCAPES[text]


def unreadable(text: str, offset: int) -> ExpressionError:
    character = text[offset]
    if character == "'":
        return refused(offset, "sql-syntax", "the text that starts here does not end", "close it with '")
    if character == "`":
        return refused(offset, "sql-syntax", "the name that starts here does not end", "close it with `")
    if character == '"':
        return refused(
            offset,
            "sql-syntax",
            "double quotes mean different things in different SQL",
            "write text as 'text', a column's name as `name`",
        )
    if character.isascii() and character.isdigit():
        return refused(
            offset, "sql-syntax", "a number runs into a name here", "put a space between them, or the name in backquotes"
        )
    otherwise = "put text in '…', names with such characters in `…`"
    hint = next((hint for mark, hint in dialects.MARKS.items() if text.startswith(mark, offset)), otherwise)
    return refused(offset, "sql-character", f"{character!r} has no meaning here", hint)
