"""The part of the grammar for functions over many rows, and for windows."""

from __future__ import annotations

from framework.sql.faults import refused
from framework.sql.grammar import Parser
from framework.sql.query.functions import AGGREGATES, INSTEAD, RANKED, WINDOWS
from framework.sql.query.nodes import Aggregate, Edge, Order, Over, Ranked, WindowFrame
from framework.sql.reserved import LEFT_OUT
from framework.sql.tokens import Token
from framework.sql.tree import Call, Node

NO_NAMES = ("a window has no name here", "write it out behind OVER")


class OverRows(Parser):
    def of_rows(self, name: Token, depth: int) -> Node | None:
        """Reads a function over many rows, whose name was taken."""
        if name.word in WINDOWS:
            self.expect("(")
            return Call(name.offset, name.word, self.list(self.deeper(depth)))
        is_ranked = name.word in RANKED
        if not is_ranked and name.word not in AGGREGATES:
            refusal = LEFT_OUT.get(name.word)
            if refusal and refusal.code in ("sql-aggregate", "sql-window"):
                hint = INSTEAD.get(name.word, "use count, sum, avg, min, max, min_by, max_by, stddev, percentile and the like")
                raise refused(name.offset, "sql-not-allowed", f"{name.text} is not in this version", hint)
            return None
        self.expect("(")
        distinct = self.skip("distinct")
        arguments: tuple[Node, ...] = ()
        star = self.next
        if name.word == "count" and self.skip("*"):
            if distinct:
                raise refused(star.offset, "sql-star", "DISTINCT needs columns", "write count(distinct a, b)")
            self.expect(")")
        elif name.word == "count" and self.next.word == ")":
            raise refused(self.next.offset, "sql-syntax", "count counts something", "write count(*), or count(a)")
        elif not self.skip(")"):
            arguments = self.list(self.deeper(depth))
        if is_ranked:
            ignores_nulls = self.skip("ignore", "nulls")
            self.skip("respect", "nulls")
            return self.over(Ranked(name.offset, name.word, arguments, ignores_nulls), depth)
        where = None
        if self.skip("filter", "("):
            self.expect("where")
            where = self.either(self.deeper(depth))
            self.expect(")")
        function = Aggregate(name.offset, name.word, arguments, distinct, where)
        return self.over(function, depth) if self.next.word == "over" else function

    def over(self, function: Aggregate | Ranked, depth: int) -> Node:
        if not self.skip("over"):
            raise refused(
                function.offset,
                "sql-window",
                f"{function.name} needs a window",
                f"write {function.name}(…) over (partition by … order by …)",
            )
        if self.next.kind in ("name", "quoted"):
            raise refused(self.next.offset, "sql-window", *NO_NAMES)
        self.expect("(")
        depth = self.deeper(depth)
        partition = self.values(depth) if self.skip("partition", "by") else ()
        order = self.orders(depth) if self.skip("order", "by") else ()
        frame = self.frame(depth) if self.next.word in ("rows", "range") else None
        self.expect(")")
        return Over(function.offset, function, partition, order, frame)

    def values(self, depth: int) -> tuple[Node, ...]:
        values = [self.either(depth)]
        while self.skip(","):
            values.append(self.either(depth))
        return tuple(values)

    def orders(self, depth: int) -> tuple[Order, ...]:
        orders = [self.order(depth)]
        while self.skip(","):
            orders.append(self.order(depth))
        return tuple(orders)

    def order(self, depth: int) -> Order:
        value = self.either(depth)
        words_ = [self.take().word] if self.next.word in ("asc", "desc") else []
        if self.skip("nulls"):
            if self.next.word not in ("first", "last"):
                raise self.unexpected("FIRST or LAST is missing after NULLS")
            words_ += ["nulls", self.take().word]
        return Order(value.offset, value, " ".join(words_))

    def frame(self, depth: int) -> WindowFrame:
        token = self.take()
        if self.skip("between"):
            start = self.edge(depth)
            self.expect("and")
            return WindowFrame(token.offset, token.word, start, self.edge(depth))
        return WindowFrame(token.offset, token.word, self.edge(depth), Edge(token.offset, None, "current row"))

    def edge(self, depth: int) -> Edge:
        offset = self.next.offset
        if self.skip("current", "row"):
            return Edge(offset, None, "current row")
        value = None if self.next.word == "unbounded" else self.binary(0, depth)
        unbounded = "unbounded " if value is None and self.skip("unbounded") else ""
        if self.next.word not in ("preceding", "following"):
            raise self.unexpected("PRECEDING or FOLLOWING is missing")
        return Edge(offset, value, f"{unbounded}{self.take().word}")
