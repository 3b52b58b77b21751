"""The parser of a select over tables. Any other clause is refused by name."""

from __future__ import annotations

from framework.sql.faults import ExpressionError, refused
from framework.sql.query.nodes import Both, Join, Query, Select, SelectItem, Source
from framework.sql.query.over_rows import NO_NAMES, OverRows
from framework.sql.reserved import WORDS, words
from framework.sql.tokens import Token, tokens
from framework.sql.tree import Node
from framework.sql.words import but_found

_SHAPE = "write select …, … from shop.orders where … group by …"
_SORTED = ("a table's rows have no order", "delete it; `sort_by` under `into` sorts the table's files")
_CUT = (
    "which rows stay would be left to chance",
    "number them with row_number() over (order by …), and keep those in a select around it",
)
_REFUSED = {
    **dict.fromkeys(("order", "sort", "cluster", "distribute"), _SORTED),
    **dict.fromkeys(("limit", "offset", "fetch", "tablesample"), _CUT),
    "qualify": ("Spark has no such clause", "put the select in parentheses, and write WHERE around it"),
    "window": NO_NAMES,
    **dict.fromkeys(("pivot", "unpivot"), ("it is not in this version", "write sum(x) filter (where …) for each column")),
    "lateral": ("it is not in this version", "the step `explode` of a pipeline before this one makes a row from each item"),
    "natural": ("a new column would change what it joins", "write JOIN … USING (…)"),
}  # fmt: skip
# Words that can also be names of columns. The first are refused only where a select could end.
_BEHIND_A_SELECT = dict.fromkeys(
    ("grouping", "rollup", "cube"), ("it is not in this version", "UNION ALL puts several groupings into one table")
)
_BEHIND_A_VALUE = {("within", "group"): ("the texts are in the order of their letters", "delete it")}
_BEFORE_ROWS = {"values": ("it is not in this version", "read a table that has these rows"), "lateral": _REFUSED["lateral"]}
_BEHIND_A_TABLE = {
    ("asof", "join"): ("Spark has no such join", "join the rows from before, and keep the newest by row_number() over (…)"),
    **dict.fromkeys(
        (("version", "as"), ("timestamp", "as"), ("for", "system_time")), ("tables are read as they are now", "delete it")
    ),
}
_KINDS = {
    ("join",): "inner", ("inner", "join"): "inner", ("cross", "join"): "cross",
    ("left", "semi", "join"): "left semi", ("semi", "join"): "left semi",
    ("left", "anti", "join"): "left anti", ("anti", "join"): "left anti",
    **{(side, *outer, "join"): side for side in ("left", "right", "full") for outer in ((), ("outer",))},
}  # fmt: skip
_SETS = words("union except intersect minus")
_STOPS = _SETS | _REFUSED.keys() | words("from where group having on using join inner cross left right full semi anti")
_NO_NAME = WORDS | _STOPS


def read(text: str) -> Query:
    """Returns the tree of a whole select."""
    parser = _Parser(tokens(text))
    query = parser.query(0)
    parser.skip(";")
    if parser.next.kind != "end":
        raise parser.clause("the end of the select is missing")
    return query


class _Parser(OverRows):
    def query(self, depth: int) -> Query:
        offset = self.next.offset
        names = []
        if self.skip("with"):
            if self.next.word == "recursive":
                raise refused(self.next.offset, "sql-clause", "RECURSIVE is not in this version", "delete it")
            names.append(self.named(depth))
            while self.skip(","):
                names.append(self.named(depth))
        return Query(offset, tuple(names), self.sets(depth))

    def named(self, depth: int) -> tuple[str, int, Query]:
        token = self.identifier("a name is missing after WITH", "write with daily as (select …)")
        if "." in token.value:
            raise refused(token.offset, "sql-table", "a name behind WITH has no dot", "write one word")
        if self.next.word == "(":
            hint = f"name them in its select: with {token.text} as (select a as first, …)"
            raise refused(self.next.offset, "sql-clause", "a list of columns is not in this version", hint)
        self.expect("as")
        return token.value, token.offset, self.inner(depth)

    def inner(self, depth: int) -> Query:
        self.expect("(")
        query = self.query(self.deeper(depth))
        if self.next.word != ")":
            raise self.clause(") is missing")
        self.take()
        return query

    def sets(self, depth: int) -> Select | Both | Query:
        """Reads selects joined by UNION, EXCEPT and INTERSECT; INTERSECT binds closer than the others."""
        left_side: Select | Both | Query = self.intersected(depth)
        while self.next.word in ("union", "except", "minus"):
            offset, word = self.next.offset, self.set_word()
            left_side = Both(offset, word, left_side, self.intersected(depth))
        return left_side

    def intersected(self, depth: int) -> Select | Both | Query:
        left_side: Select | Both | Query = self.one(depth)
        while self.next.word == "intersect":
            offset, word = self.next.offset, self.set_word()
            left_side = Both(offset, word, left_side, self.one(depth))
        return left_side

    def set_word(self) -> str:
        token = self.take()
        word = {"minus": "except"}.get(token.word, token.word)
        if self.skip("all"):
            if word != "union":
                hint = f"number equal rows by row_number() over (…) in both, and write {word.upper()}; without ALL each row comes once"
                raise refused(token.offset, "sql-clause", f"{word.upper()} ALL is not in this version", hint)
            return "union all"
        self.skip("distinct")
        return word

    def one(self, depth: int) -> Select | Query:
        if self.next.word == "(":
            return self.inner(depth)
        token = self.next
        self.refuse(_BEFORE_ROWS.get(token.word))
        if not self.skip("select"):
            raise refused(token.offset, "sql-not-a-select", f"a select is missing{but_found(token)}", _SHAPE)
        distinct = self.skip("distinct")
        self.no_first_rows(distinct)
        items = [self.item()]
        while self.skip(","):
            items.append(self.item())
        if not self.skip("from"):
            raise refused(self.next.offset, "sql-table", f"FROM is missing{but_found(self.next)}", _SHAPE)
        source = self.joined(depth)
        where = self.expression() if self.skip("where") else None
        groups = self.groups() if self.skip("group", "by") else ()
        having = self.expression() if self.skip("having") else None
        return Select(
            offset=token.offset, items=tuple(items), source=source, where=where, groups=groups, having=having, distinct=distinct
        )

    def no_first_rows(self, distinct: bool) -> None:
        token = self.next
        if distinct and token.word == "on" and self.after.word == "(":
            hint = "keep the first of each by row_number() over (partition by …) = 1 around it"
            raise refused(token.offset, "sql-clause", "Spark has no DISTINCT ON", hint)
        if token.word == "top" and self.after.kind == "number":
            raise refused(token.offset, "sql-clause", "Spark has no TOP", _CUT[1])

    def item(self) -> SelectItem:
        start, token = self.position, self.next
        if (token.word in _STOPS and self.after.word not in ("(", ".")) or token.word in (",", ")") or token.kind == "end":
            hint = f"{_SHAPE}; a column of that name needs backquotes: `{token.text}`" if token.kind == "name" else _SHAPE
            raise refused(token.offset, "sql-syntax", f"a column is missing{but_found(token)}", hint)
        table = None
        next_words = [token.word for token in self.tokens[self.position + 1 : self.position + 5]]
        if token.kind in ("name", "quoted") and next_words[-4:-3] + next_words[-2:] == [".", ".", "*"]:
            table = f"{self.take().value}.{self.tokens[self.position + 1].value}"
            self.position += 3
        elif token.kind in ("name", "quoted") and next_words[:2] == [".", "*"]:
            table = self.take().value
            self.take()
        if self.skip("*"):
            return SelectItem(None, None, "*", offset=token.offset, of=table, left_out=self.left_out())
        value = self.expression()
        text = self.text(start)
        self.refuse(_BEHIND_A_VALUE.get((self.next.word, self.after.word)))
        has_as = self.skip("as")
        name_token = self.next
        if name_token.kind == "quoted" or (name_token.kind == "name" and (has_as or name_token.word not in _NO_NAME)):
            return SelectItem(value, self.take().value, text, offset=name_token.offset)
        return SelectItem(value, None, text, offset=token.offset)

    def left_out(self) -> tuple[str, ...]:
        if not self.skip("except", "("):
            return ()
        hint = "write * except (a, b)"
        left_out = [self.identifier("a column's name is missing", hint).value]
        while self.skip(","):
            left_out.append(self.identifier("a column's name is missing", hint).value)
        self.expect(")")
        return tuple(left_out)

    def joined(self, depth: int) -> Source | Join:
        left_side: Source | Join = self.source(depth)
        while (kind := self.kind()) is not None:
            token = self.next
            right_side = self.source(depth)
            condition: Node | None = None
            using: tuple[str, ...] = ()
            if self.skip("on"):
                condition = self.expression()
            elif self.skip("using", "("):
                self.position -= 1
                using = self.columns()
            if (condition is None and not using) != (kind == "cross"):
                message = "CROSS JOIN takes all pairs, without a condition" if kind == "cross" else "the join has no condition"
                hint = "write JOIN for it" if kind == "cross" else "write ON a.id = b.id, USING (id), or CROSS JOIN for all pairs"
                raise refused(token.offset, "sql-join", message, hint)
            left_side = Join(token.offset, kind, left=left_side, right=right_side, on=condition, using=using)
        return left_side

    def columns(self) -> tuple[str, ...]:
        self.expect("(")
        names = [self.identifier("a column's name is missing", "write using (id)").value]
        while self.skip(","):
            names.append(self.identifier("a column's name is missing", "write using (id)").value)
        self.expect(")")
        return tuple(names)

    def kind(self) -> str | None:
        if self.next.word == ",":
            raise refused(self.next.offset, "sql-join", "a comma joins all pairs of rows", "write JOIN … ON …, or CROSS JOIN")
        for words_, kind in _KINDS.items():
            if self.skip(*words_):
                return kind
        return None

    def source(self, depth: int) -> Source:
        token = self.next
        if token.word == "(":
            query = self.inner(depth)
            return Source(token.offset, query, self.alias() or "")
        self.refuse(_BEFORE_ROWS.get(token.word))
        name = self.identifier(f"a table is missing{but_found(token)}", _SHAPE).value
        while self.skip("."):
            if self.next.kind not in ("name", "quoted"):
                raise refused(self.next.offset, "sql-syntax", f"a name is missing after the dot{but_found(self.next)}", _SHAPE)
            name += "." + self.take().value
        self.refuse(_BEHIND_A_TABLE.get((self.next.word, self.after.word)))
        alias = self.alias()
        self.refuse(_BEHIND_A_TABLE.get((self.next.word, self.after.word)))
        return Source(token.offset, name, alias or name.rpartition(".")[2])

    def alias(self) -> str | None:
        has_as = self.skip("as")
        token = self.next
        if token.kind == "quoted" or (token.kind == "name" and token.word not in _NO_NAME):
            if "." in token.value:
                raise refused(token.offset, "sql-table", "the name of a table in a select has no dot", "write one word")
            return self.take().value
        if has_as:
            raise refused(
                token.offset, "sql-syntax", f"a name is missing after AS{but_found(token)}", "write from shop.orders as o"
            )
        return None

    def groups(self) -> tuple[Node, ...]:
        self.no_groupings(self.next, ("rollup", "cube", "grouping", "all"))
        groups = [self.expression()]
        while self.skip(","):
            groups.append(self.expression())
        if self.next.word == "with":
            self.no_groupings(self.after, ("rollup", "cube"))
        return tuple(groups)

    @staticmethod
    def no_groupings(token: Token, words_: tuple[str, ...]) -> None:
        if token.word in words_:
            hint = "name the columns; UNION ALL puts several groupings into one table"
            raise refused(token.offset, "sql-clause", f"GROUP BY {token.word.upper()} is not in this version", hint)

    def identifier(self, missing: str, hint: str) -> Token:
        token = self.next
        if token.kind == "quoted" or (token.kind == "name" and token.word not in _NO_NAME):
            return self.take()
        raise refused(token.offset, "sql-syntax", missing, hint)

    def refuse(self, refusal: tuple[str, str] | None) -> None:
        """Refuses the next word by its name, for a reason and with a hint."""
        if refusal:
            reason, hint = refusal
            raise refused(self.next.offset, "sql-clause", f"{self.next.text.upper()} is not allowed here: {reason}", hint)

    def clause(self, missing: str) -> ExpressionError:
        """Returns the error for the word that follows a whole select."""
        token = self.next
        self.refuse(_REFUSED.get(token.word) or _BEHIND_A_SELECT.get(token.word))
        return refused(token.offset, "sql-syntax", f"{missing}{but_found(token)}", _SHAPE)
