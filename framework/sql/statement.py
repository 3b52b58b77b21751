"""The parser of `select … from input where …`: its items and its condition become trees; every other clause is refused by name.

After an invalid item the parser continues with the next one, so that all errors are reported at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from framework.sql import reserved
from framework.sql.faults import ExpressionError, ExpressionFault, refused
from framework.sql.grammar import Parser
from framework.sql.reserved import ONE_ROW
from framework.sql.tokens import Token, tokens
from framework.sql.tree import Node
from framework.sql.words import but_found

INPUT = "input"
_SHAPE = "write select …, … from input where …"
_SEVERAL = ("a sql step is one select", "use several steps: each sees the columns of the one before")
_JOIN = (
    "sql-clause",
    "JOIN is not allowed in a sql step: it sees the rows so far, and no other table",
    "the step `join` looks rows up by the keys of a table, and a pipeline `from: {tables: […]}` takes a whole select",
)
_SORTED = ("a table's rows have no order", "delete it; `sort_by` sorts a table's files")
_CUT = ("a batch would lose different rows each time it runs", "delete it, or choose the rows with WHERE")
_SHAPED = ("rows are taken one by one", "the step `explode` makes one row from each item, `flatten` makes columns from a struct")


def _clause(name: str, reason: tuple[str, str]) -> tuple[str, str, str]:
    return ("sql-clause", f"{name} is not allowed in a sql step: {reason[0]}", reason[1])


_CLAUSES = {
    "group": ("sql-clause", "GROUP BY is not allowed in a sql step", ONE_ROW),
    "having": ("sql-clause", "HAVING is not allowed in a sql step", ONE_ROW),
    "qualify": ("sql-clause", "QUALIFY is not allowed in a sql step", ONE_ROW),
    "window": ("sql-clause", "WINDOW is not allowed in a sql step", ONE_ROW),
    "order": _clause("ORDER BY", _SORTED),
    "sort": _clause("SORT BY", _SORTED),
    "cluster": _clause("CLUSTER BY", _SORTED),
    "distribute": _clause("DISTRIBUTE BY", _SORTED),
    "limit": _clause("LIMIT", _CUT),
    "offset": _clause("OFFSET", _CUT),
    "fetch": _clause("FETCH", _CUT),
    "tablesample": _clause("TABLESAMPLE", _CUT),
    "pivot": _clause("PIVOT", _SHAPED),
    "unpivot": _clause("UNPIVOT", _SHAPED),
    "lateral": ("sql-clause", "LATERAL is not allowed in a sql step", reserved.ITEMS),
    **dict.fromkeys(("join", "inner", "left", "right", "full", "cross", "natural", "semi", "anti"), _JOIN),
    **{word: _clause(word.upper(), _SEVERAL) for word in ("union", "except", "intersect", "minus")},
}
_SETS = ("union", "except", "intersect", "minus")
_STATEMENTS = reserved.words("""
    alter analyze begin cache call clear comment commit create declare delete describe desc drop execute explain export
    grant import insert load lock merge msck optimize refresh repair replace reset revoke rollback set show
    table truncate uncache unset update use vacuum values
""")


@dataclass(frozen=True, kw_only=True)
class ParsedSelect:
    """A parsed item; `*` has no value. `offset` is the place of the name, or of the item if it has no name."""

    value: Node | None
    name: str | None
    text: str
    offset: int
    left_out: tuple[Token, ...] = ()


@dataclass(frozen=True)
class ParsedStatement:
    """The parsed select and its faults. `tables` are the names given to the table, `input` among them."""

    items: tuple[ParsedSelect, ...]
    where: ParsedSelect | None
    tables: frozenset[str]
    faults: tuple[ExpressionFault, ...]


def read(text: str) -> ParsedStatement:
    parser = _Parser(tokens(text))
    parser.statement()
    return ParsedStatement(tuple(parser.items), parser.where, frozenset(parser.tables), tuple(parser.faults))


class _Parser(Parser):
    def __init__(self, token_list: list[Token]) -> None:
        super().__init__(token_list)
        self.items: list[ParsedSelect] = []
        self.where: ParsedSelect | None = None
        self.tables = {INPUT}
        self.faults: list[ExpressionFault] = []

    def refuse(self, token: Token, code: str, message: str, hint: str) -> None:
        """Adds a fault, each message once: `left outer join` is one mistake."""
        if message not in [fault.message for fault in self.faults]:
            self.faults.append(ExpressionFault(token.offset, code, message, hint))

    def statement(self) -> None:
        token = self.next
        if not self.skip("select"):
            self.refuse(token, *_other(token))
            return
        token = self.next
        if self.skip("distinct"):
            self.refuse(token, "sql-clause", "DISTINCT is not allowed in a sql step", ONE_ROW)
        self.item()
        while self.skip(","):
            self.item()
        if not self.skip("from"):
            if not self.faults or self.next.kind != "end":
                self.refuse(self.next, "sql-table", f"FROM is missing{but_found(self.next)}", _SHAPE)
            return
        self.table()
        if self.skip("where"):
            self.condition()
        self.rest()

    def item(self) -> None:
        start = self.position
        token = self.next
        try:
            if token.word in ("from", "where", ",", ";") or token.kind == "end":
                self.refuse(token, "sql-syntax", f"a column is missing{but_found(token)}", _SHAPE)
            elif self.skip("*"):
                self.items.append(ParsedSelect(value=None, name=None, text="*", offset=token.offset, left_out=self.left_out()))
            else:
                value = self.expression()
                text = self.text(start)
                token = self.tokens[self.position + (self.next.word == "as")]
                name = self.name()
                self.items.append(
                    ParsedSelect(value=value, name=name, text=text, offset=(token if name else self.tokens[start]).offset)
                )
        except ExpressionError as error:
            self.faults += error.faults
            self.recover(start, ",", "from")

    def name(self) -> str | None:
        """Reads the name after an item, with AS or without."""
        has_as = self.skip("as")
        token = self.next
        if not has_as and token.word in _CLAUSES:
            raise refused(token.offset, *_CLAUSES[token.word])
        if token.kind == "quoted" or (token.kind == "name" and token.word not in reserved.WORDS):
            return self.take().value
        if has_as:
            hint = "write a name, in backquotes if it is a word of SQL"
            self.refuse(token, "sql-syntax", f"a name is missing after AS{but_found(token)}", hint)
            return self.take().text if self.after.word in (",", "from") else "?"
        if token.kind != "end" and token.word not in (",", ";", "from", "where"):
            raise self.unexpected("a comma or FROM is missing")
        return None

    def left_out(self) -> tuple[Token, ...]:
        """Reads the columns that `*` leaves out."""
        if not self.skip("except"):
            token = self.next
            if token.kind != "end" and token.word not in (",", ";", "from", "where"):
                raise refused(token.offset, "sql-star", "only EXCEPT can follow `*`", "write * except (a), upper(a) as a")
            return ()
        if not self.skip("("):
            raise refused(self.next.offset, "sql-syntax", f"( is missing{but_found(self.next)}", "write * except (a, b)")
        columns = [self.column()]
        while self.skip(","):
            columns.append(self.column())
        self.expect(")")
        return tuple(columns)

    def column(self) -> Token:
        if self.next.kind not in ("name", "quoted"):
            raise self.unexpected("a column's name is missing")
        return self.take()

    def table(self) -> None:
        token = self.take()
        if token.word == "(":
            self.faults += reserved.subquery(token).faults
            self.recover(self.position - 1, "where", ",", *_CLAUSES)
            return
        parts = [token]
        while self.skip("."):
            parts.append(self.take())
        name = ".".join(part.value for part in parts)
        if token.kind not in ("name", "quoted"):
            self.refuse(token, "sql-table", f"the table is missing{but_found(token)}", "write `from input`: the rows so far")
        elif name.lower() != INPUT:
            self.refuse(token, "sql-table", f"there is no table {name} here", "write `from input`: the rows so far")
            self.tables.add(parts[-1].value.lower())
        self.no_alias()
        if self.next.word == ",":
            self.refuse(self.next, *_JOIN)
            self.recover(self.position, "where", *_CLAUSES)

    def no_alias(self) -> None:
        first_token = self.next
        has_as = self.skip("as")
        token = self.next
        has_name = token.kind == "name" and token.word not in reserved.WORDS and token.word not in _CLAUSES
        if has_as or has_name or token.kind == "quoted":
            self.tables.add(self.take().value.lower())
            self.refuse(
                first_token, "sql-table", "the table has no other name", "delete it: columns are named without their table"
            )

    def condition(self) -> None:
        start = self.position
        try:
            value = self.expression()
            self.where = ParsedSelect(value=value, name=None, text=self.text(start), offset=self.tokens[start].offset)
        except ExpressionError as error:
            self.faults += error.faults
            self.recover(start, *_CLAUSES)

    def rest(self) -> None:
        """Reads the end: nothing, or one semicolon. Every other clause is refused by name."""
        is_first, depth = True, 0
        while self.next.kind != "end":
            token = self.take()
            depth += (token.word in ("(", "[")) - (token.word in (")", "]"))
            if token.word == ";":
                if self.next.kind != "end":
                    self.refuse(self.next, "sql-several-statements", "there is a second statement", "a sql step is one select")
                return
            if not depth and token.word in _CLAUSES:
                self.refuse(token, *_CLAUSES[token.word])
                if token.word in _SETS:
                    return
            elif is_first:
                self.refuse(token, "sql-syntax", f"an operator, WHERE or the end is missing{but_found(token)}", _SHAPE)
            is_first = False

    def recover(self, start: int, *words: str) -> None:
        """Continues at the first of these words outside parentheses; the `from` in `is distinct from` does not count."""
        self.position, depth = start, 0
        while self.next.kind != "end" and (depth or self.next.word not in (*words, ";")):
            depth += (self.next.word in ("(", "[")) - (self.next.word in (")", "]"))
            if not self.skip("distinct", "from"):
                self.take()


def _other(token: Token) -> tuple[str, str, str]:
    """Returns the error for a text that begins with another word than SELECT."""
    if token.word == "with":
        return _clause("WITH", _SEVERAL)
    if token.word in _STATEMENTS:
        return ("sql-not-a-select", f"a sql step is one select, not {token.text.upper()}", _SHAPE)
    return ("sql-not-a-select", f"a sql step begins with SELECT{but_found(token)}", _SHAPE)
