"""The parser of expressions: a text becomes a tree, by the precedence of Spark's own grammar.

*Limit* One scalar expression: every other part of SQL is refused by name. Depth is bounded, so that neither this parser, nor the
typing after it, nor Spark's parser runs out of stack.
"""

from __future__ import annotations

import functools

from framework import types
from framework.sql import foreign_operators, intervals, reserved, special_syntax
from framework.sql.faults import ExpressionError, refused
from framework.sql.tokens import Token, tokens
from framework.sql.tree import Call, Case, Cast, Column, In, Is, Item, Lambda, Literal, Member, Node, Operation, walk

NESTED = 25
"""Parentheses, calls and signs inside each other; each costs the parser a dozen Python frames."""
DEEPEST = 100
"""Levels of a tree: `a + b + c` has three without any parenthesis."""


@functools.lru_cache(4096)
def parse(text: str) -> Node:
    """The tree of one expression."""
    parser = Parser(tokens(text))
    if parser.next.kind == "end":
        raise refused(0, "sql-syntax", "the expression is empty", "write for example price * quantity")
    node = parser.expression()
    parser.end()
    return node


def too_deep(offset: int) -> ExpressionError:
    return refused(
        offset,
        "sql-too-deep",
        f"nested deeper than {NESTED} parentheses or {DEEPEST} operators",
        "cut it into several steps; x IN (…) is one operator",
    )


_SAME = {"==": "=", "!=": "<>", "!": "not", "regexp": "rlike"}
_CASTS = (
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal",
    "string",
    "binary",
    "date",
    "timestamp",
)
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


class Parser:
    """A parser that passes once over the words of a text."""

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

    def expression(self) -> Node:
        """A whole value, up to what cannot belong to it."""
        node = self.either(0)
        for part, level in walk(node):
            if level > DEEPEST:
                raise too_deep(part.offset)
        return node

    def either(self, depth: int) -> Node:
        return self.chain("or", depth)

    def chain(self, word: str, depth: int) -> Node:
        """`a or b or c` as one node: long lists of conditions stay flat."""
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
        """A value, and at most one of IS, IN, BETWEEN, LIKE, RLIKE after it."""
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
        """`s like any ('a%', 'b%')`; with NOT each pattern is negated, not the whole."""
        word = self.take().word
        every = self.take().word == "all"
        self.expect("(")
        patterns = self.list(self.deeper(depth))
        tests: list[Node] = [Operation(offset, word, (node, pattern)) for pattern in patterns]
        tests = [Operation(offset, "not", (test,)) if negated else test for test in tests]
        return Operation(offset, "and" if every else "or", tuple(tests)) if len(tests) > 1 else tests[0]

    def test(self, node: Node, offset: int, depth: int) -> Node:
        negated = self.skip("not")
        if self.skip("distinct", "from"):
            same = Operation(offset, "<=>", (node, self.binary(0, depth)))
            return same if negated else Operation(offset, "not", (same,))
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
            escape = (self.primary(depth),) if word in ("like", "ilike") and self.skip("escape") else ()
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
        return self.postfix(self.primary(self.deeper(depth)), depth)

    def postfix(self, node: Node, depth: int) -> Node:
        while self.next.word in (".", "[", "::"):
            token = self.take()
            if token.word == "[":
                node = Item(token.offset, node, self.either(self.deeper(depth)))
                self.expect("]")
            elif token.word == "::":
                node = Cast(token.offset, node, self.type(), False)
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
                        "write for example location.building",
                    )
                node = Member(name.offset, node, name.value)
        return node

    def primary(self, depth: int) -> Node:
        token = self.next
        if token.kind == "number" or token.kind == "string":
            self.take()
            return Literal(token.offset, token.kind, token.text, token.value)
        if token.word == "(":
            self.take()
            if self.next.word in ("select", "with", "values", "table", "from"):
                raise reserved.subquery(self.next)
            node = self.either(depth)
            if self.next.text == ",":
                raise refused(
                    token.offset, "sql-syntax", "several values in parentheses are none", "compare each: s = 'a' and i = 1"
                )
            self.expect(")")
            return node
        if token.kind == "quoted":
            self.take()
            return Column(token.offset, token.value)
        if token.kind == "name":
            return self.named(token, depth)
        raise self.unexpected("a value is missing")

    def named(self, token: Token, depth: int) -> Node:
        word = token.word
        if word in ("true", "false", "null"):
            self.take()
            return Literal(token.offset, "null" if word == "null" else "boolean", word, word)
        if word == "case":
            return self.case(depth)
        if word in ("cast", "try_cast", "safe_cast"):
            return self.cast(depth)
        if word == "interval":
            return intervals.read(self)
        if self.after.kind == "string" and word in ("date", "timestamp", "timestamp_ntz"):
            self.take()
            text = self.take()
            return Literal(token.offset, word, f"{word}{text.text}", text.value)
        if self.after.word == "(":
            return self.call(depth)
        error = reserved.misplaced_word(token)
        if error:
            raise error
        self.take()
        return Column(token.offset, token.value)

    def call(self, depth: int) -> Node:
        token = self.take()
        asks = token.word == "exists" and self.after.word in ("select", "with", "values", "table", "from")
        error = reserved.subquery(token) if asks else reserved.function(token)
        if error:
            raise error
        self.expect("(")
        node: Node = Call(token.offset, token.word, ())
        if not self.skip(")"):
            own = special_syntax.SYNTAX.get(token.word)
            node = own(self, token, depth) if own else self.plain_call(token, self.list(depth))
        if self.next.word in ("over", "filter", "within"):
            raise refused(
                self.next.offset,
                "sql-window",
                f"{self.next.text.upper()} is not allowed: an expression sees one row",
                reserved.ONE_ROW,
            )
        return node

    def plain_call(self, token: Token, arguments: tuple[Node, ...]) -> Node:
        """A call, or a cast that is written as one: `int(s)`."""
        if token.word in _CASTS and len(arguments) == 1:
            return Cast(token.offset, arguments[0], types.parse(token.word), False)
        return Call(token.offset, token.word, arguments)

    def list(self, depth: int) -> tuple[Node, ...]:
        """Values between commas, up to the closing parenthesis."""
        if self.next.word in ("select", "with"):
            raise reserved.subquery(self.next)
        values = [self.argument(depth)]
        while self.skip(","):
            values.append(self.argument(depth))
        self.expect(")")
        return tuple(values)

    def more(self, depth: int) -> tuple[Node, ...]:
        """The rest of a list whose first value was read."""
        if self.skip(")"):
            return ()
        self.expect(",")
        return self.list(depth)

    def argument(self, depth: int) -> Node:
        """A value, or a lambda."""
        start, offset = self.at, self.next.offset
        names = self.parameters()
        if not names:
            self.at = start
            return self.either(depth)
        return Lambda(offset, names, self.either(self.deeper(depth)))

    def parameters(self) -> tuple[str, ...]:
        """The names in front of an arrow; none if no lambda stands here."""
        several = self.skip("(")
        names = []
        while self.next.kind in ("name", "quoted"):
            names.append(self.take().value)
            if not several or not self.skip(","):
                break
        closed = not several or self.skip(")")
        return tuple(names) if closed and self.skip("->") else ()

    def case(self, depth: int) -> Node:
        offset = self.take().offset
        subject = self.either(depth) if self.next.word != "when" else None
        branches: list[tuple[Node, Node]] = []
        while self.skip("when"):
            condition = self.either(depth)
            self.expect("then")
            value = self.either(depth)
            branches.append((condition if subject is None else Operation(condition.offset, "=", (subject, condition)), value))
        if not branches:
            raise self.unexpected("WHEN is missing")
        otherwise = self.either(depth) if self.skip("else") else None
        self.expect("end")
        return Case(offset, tuple(branches), otherwise)

    def cast(self, depth: int) -> Node:
        token = self.take()
        self.expect("(")
        operand = self.either(depth)
        self.expect("as")
        type = self.type()
        self.expect(")")
        return Cast(token.offset, operand, type, token.word != "cast")

    def type(self) -> types.Type:
        """The words of a type, up to what cannot belong to it."""
        start = self.next.offset
        taken = self.take()
        text, open = taken.text, 0
        while self.next.word in ("<", "(") or (open and self.next.kind != "end"):
            word = self.next.word
            open += (word in ("<", "(")) - (word == ")") - (len(word) if word in (">", ">>", ">>>") else 0)
            text = text.ljust(self.next.offset - start) + self.take().text
        try:
            return types.parse(text)
        except types.TypeTextError as error:
            raise refused(start + error.offset, "sql-type", error.message, error.hint) from None
