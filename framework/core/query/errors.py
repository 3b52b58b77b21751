"""Raises DuckDB's errors in its own words, with the line and the caret of the text that the user wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from framework.base.errors import SluiceError

_LINE = re.compile(r"^LINE (\d+): (.*)\n( *)\^", re.MULTILINE)
_USUAL = frozenset(
    ("select", "distinct", "from", "where", "group", "by", "having", "and", "or", "not", "on", "using", "as", "in")
)


@contextmanager
def duckdb_errors(first_line: int = 2) -> Iterator[None]:
    """Raises DuckDB's errors as Sluice's. `first_line` is the line of DuckDB's text in which the user's text begins."""

    def moved(match: re.Match[str]) -> str:
        number, line, space = match.groups()
        new_number = str(max(1, int(number) - first_line + 1))
        return f"LINE {new_number}: {line}\n{space[: len(space) - len(number) + len(new_number)]}^"

    try:
        yield
    except duckdb.Error as error:
        text = str(error).strip()
        if isinstance(error, duckdb.OutOfMemoryException):  # its other lines advise what cannot be done here
            text = text.splitlines()[0]
        if isinstance(error, duckdb.IOException) and "permission denied" in text.lower():
            raise SluiceError(
                "permission-denied", text.splitlines()[0], "give the user who runs Sluice the missing permission"
            ) from None
        of_text = isinstance(error, (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException))
        raise SluiceError("bad-query" if of_text else "query-failed", _LINE.sub(moved, text), _hint(error, text)) from None


def _hint(error: duckdb.Error, text: str) -> str:
    if isinstance(error, duckdb.PermissionException):
        return "a query reads tables and no other files"
    if isinstance(error, duckdb.OutOfMemoryException):
        return "ask for fewer rows or columns at once"
    match = _LINE.search(text) if isinstance(error, duckdb.ParserException) else None
    word = _word(match) if match else None
    return f'where `{word}` is a column, write it in quotes: "{word}"' if word else ""


def _word(match: re.Match[str]) -> str | None:
    """The word of SQL before or at the caret, if it may be meant as a column's name, such as `at`."""
    line, caret = match[0].splitlines()[0], len(match[3])
    for word_match in (re.search(r"(\w+)\s*$", line[:caret]), re.match(r"\w+", line[caret:])):
        word = word_match[0].strip() if word_match else ""
        sql = "SELECT 1 FROM duckdb_keywords() WHERE keyword_name = ? AND keyword_category IN ('reserved', 'type_function')"
        if word.lower() not in _USUAL and duckdb.execute(sql, [word.lower()]).fetchone():
            return word
    return None
