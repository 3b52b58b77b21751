"""The parser of expressions: a text becomes a tree, by the precedence of Spark's own grammar.

*Limit* One scalar expression: every other part of SQL is refused by name. Depth is bounded, so that neither this parser, nor the
typing after it, nor Spark's parser runs out of stack.
"""

from __future__ import annotations

import functools

from framework.sql import operands, reserved
from framework.sql.faults import refused
from framework.sql.tokens import Token, tokens
from framework.sql.tree import Cast, In, Is, Item, Lambda, Literal, Member, Node, Operation, walk
from framework.sql.words import DEEPEST, TokenCursor, too_deep


@functools.lru_cache(4096)
def parse(text: str) -> Node:
    """Returns the tree of one expression."""
    parser = Parser(tokens(text))
    if parser.next.kind == "end":
        raise refused(0, "sql-syntax", "the expression is empty", "write for example `price * quantity`")
    node = parser.expression()
    parser.end()
    return node


_SAME = {"==": "=", "!=": "<>", "!": "not", "regexp": "rlike"}
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>", ">>>"),
    ("+", "-", "||"),
    ("*", "/", "%", "div"),
)
"""Binary operators, the loosest first; operators of one level associate to the left."""


class Parser(TokenCursor):
    """A parser that passes once over the words of a text."""

    def expression(self) -> Node:
        """Reads a whole value, up to a word that cannot belong to it."""
        node = self.either(0)
        for part, level in walk(node):
            if level > DEEPEST:
                raise too_deep(part.offset)
        return node

    def either(self, depth: int) -> Node:
        return self.chain("or", depth)

    def chain(self, word: str, depth: int) -> Node:
        """Reads `a or b or c` as one node: long lists of conditions stay flat."""
        offset = self.next.offset
        operands = [self.chain("and", depth) if word == "or" else self.negation(depth)]
        while self.skip(word):
            operands.append(self.chain("and", depth) if word == "or" else self.negation(depth))
        return operands[0] if len(operands) == 1 else Operation(offset, word, tuple(operands))

    def negation(self, depth: int) -> Node:
        offset = self.next.offset
        if self.skip("not") or self.skip("!"):
            return Operation(offset, "not", (self.negation(self.deeper(depth)),))
        return self.predicate(depth)

    def predicate(self, depth: int) -> Node:
        """Reads a value, and at most one of IS, IN, BETWEEN, LIKE, RLIKE after it."""
        node = self.binary(0, depth)
        offset = self.next.offset
        if self.skip("is"):
            return self.test(node, offset, depth)
        negated = self.skip("not")
        if self.next.word in ("like", "ilike") and self.after.word in ("any", "all", "some"):
            return self.likes(node, offset, depth, negated)
        predicate = self.membership(node, offset, depth)
        if predicate is None:
            if negated:
                raise self.unexpected("IN, BETWEEN, LIKE or RLIKE is missing after NOT")
            return node
        return Operation(offset, "not", (predicate,)) if negated else predicate

    def likes(self, node: Node, offset: int, depth: int, negated: bool) -> Node:
        """Reads `s like any ('a%', 'b%')`; with NOT each pattern is negated, not the whole."""
        word = self.take().word
        is_all = self.take().word == "all"
        self.expect("(")
        patterns = self.list(self.deeper(depth))
        tests: list[Node] = [Operation(offset, word, (node, pattern)) for pattern in patterns]
        tests = [Operation(offset, "not", (test,)) if negated else test for test in tests]
        return Operation(offset, "and" if is_all else "or", tuple(tests)) if len(tests) > 1 else tests[0]

    def test(self, node: Node, offset: int, depth: int) -> Node:
        negated = self.skip("not")
        if self.skip("distinct", "from"):
            comparison = Operation(offset, "<=>", (node, self.binary(0, depth)))
            return comparison if negated else Operation(offset, "not", (comparison,))
        word = self.next.word
        if word not in ("null", "true", "false", "unknown"):
            raise self.unexpected("NULL, TRUE, FALSE or DISTINCT FROM is missing after IS")
        self.take()
        test = Is(offset, node, "null" if word == "unknown" else word)
        return Operation(offset, "not", (test,)) if negated else test

    def membership(self, node: Node, offset: int, depth: int) -> Node | None:
        if self.skip("in"):
            self.expect("(")
            return In(offset, node, self.list(self.deeper(depth)))
        if self.skip("between"):
            if self.next.word == "symmetric":
                raise refused(self.next.offset, "sql-syntax", "BETWEEN takes the lower bound first", "write i between 1 and 2")
            low = self.binary(0, depth)
            self.expect("and")
            high = self.binary(0, depth)
            return Operation(offset, "and", (Operation(offset, ">=", (node, low)), Operation(offset, "<=", (node, high))))
        word = self.next.word
        if word in ("like", "ilike", "rlike", "regexp"):
            self.take()
            pattern = self.binary(0, depth)
            escape = (operands.primary(self, depth),) if word in ("like", "ilike") and self.skip("escape") else ()
            return Operation(offset, _SAME.get(word, word), (node, pattern, *escape))
        return None

    def binary(self, level: int, depth: int) -> Node:
        if level == len(_LEVELS):
            return self.unary(depth)
        node = self.binary(level + 1, depth)
        while self.next.word in _LEVELS[level]:
            token = self.take()
            node = Operation(token.offset, _SAME.get(token.word, token.word), (node, self.binary(level + 1, depth)))
        return node

    def unary(self, depth: int) -> Node:
        token = self.next
        if token.word == "-" and self.after.kind == "number":
            self.take()
            number = self.take()
            return self.postfix(Literal(token.offset, "number", "-" + number.text, "-" + number.text), depth)
        if token.word in ("-", "+", "~"):
            self.take()
            return Operation(token.offset, token.word, (self.unary(self.deeper(depth)),))
        return self.postfix(operands.primary(self, self.deeper(depth)), depth)

    def postfix(self, node: Node, depth: int) -> Node:
        while self.next.word in (".", "[", "::"):
            token = self.take()
            if token.word == "[":
                node = Item(token.offset, node, self.either(self.deeper(depth)))
                self.expect("]")
            elif token.word == "::":
                node = Cast(token.offset, node, operands.type_(self), False)
            else:
                name = self.take()
                if name.word == "*":
                    hint = "name the fields, or use the step `flatten`; in a select, * alone is all columns"
                    raise refused(name.offset, "sql-star", "`*` is not a value", hint)
                if name.kind not in ("name", "quoted"):
                    raise refused(
                        name.offset,
                        "sql-syntax",
                        "a field's name is missing after the dot",
                        "write for example `location.building`",
                    )
                node = Member(name.offset, node, name.value)
        return node

    def list(self, depth: int) -> tuple[Node, ...]:
        """Reads values between commas, up to the closing parenthesis."""
        if self.next.word in ("select", "with"):
            raise reserved.subquery(self.next)
        values = [self.argument(depth)]
        while self.skip(","):
            values.append(self.argument(depth))
        self.expect(")")
        return tuple(values)

    def rest_of_list(self, depth: int) -> tuple[Node, ...]:
        """Reads the rest of a list whose first value was read."""
        if self.skip(")"):
            return ()
        self.expect(",")
        return self.list(depth)

    def argument(self, depth: int) -> Node:
        """Reads a value, or a lambda."""
        start, offset = self.position, self.next.offset
        names = self.parameters()
        if not names:
            self.position = start
            return self.either(depth)
        if len({name.lower() for name in names}) < len(names):
            raise refused(
                offset, "sql-lambda", "a lambda has two parameters of one name", "write for example `(acc, x) -> acc + x`"
            )
        return Lambda(offset, names, self.either(self.deeper(depth)))

    def of_rows(self, name: Token, depth: int) -> Node | None:
        """Reads a function over many rows, whose name was taken; None where such functions cannot be called."""
        return None

    def parameters(self) -> tuple[str, ...]:
        """Reads the names in front of an arrow; none if no lambda stands here."""
        several = self.skip("(")
        names = []
        while self.next.kind in ("name", "quoted"):
            names.append(self.take().value)
            if not several or not self.skip(","):
                break
        closed = not several or self.skip(")")
        return tuple(names) if closed and self.skip("->") else ()
