"""An expectation of a pipeline: of its single rows, or of many together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from framework.base.errors import Problem
from framework.language.options import OptionGroup, option
from framework.language.scalars import ColumnName, Expression, TableName

EXPECT_EXAMPLE = """\
columns: {symbol: string, quantity: int}
expect:
  - {column: symbol, not_null: true}
  - {name: sane_quantity, when: quantity > 0, else: warn}
  - {unique: [symbol]}
tests:
  - name: a row without a symbol is a bad row
    given:
      - {symbol: ZVZZT, quantity: 10}
      - {symbol: null, quantity: 5}
      - {symbol: ZJZZT, quantity: 0}
    expect:
      - {symbol: ZVZZT, quantity: 10}
      - {symbol: ZJZZT, quantity: 0}
    expect_bad:
      - {stage: expect, error: expectation_failed, message: symbol is not null}
"""


TESTS = ("not_null", "between", "length", "one_of", "matches", "references")
"""Tests of a column, of which an expectation has one."""
OF_MANY = ("unique", "rows")
"""What is expected of many rows together, without a column."""


@dataclass(frozen=True)
class References(OptionGroup):
    """A column of another table."""

    table: TableName = option("The table of another pipeline.", example="shop.customers")
    column: ColumnName | None = option("Its column; default: of the same name.", default=None, example="customer", aka=["field"])


@dataclass(frozen=True)
class Expectation(OptionGroup):
    """A test of a column, a condition on a row, or on many rows. A null fails every test but `unique` and `references`."""

    name: str | None = option("The expectation's name; default: its text.", default=None, example="sane_quantity")
    column: ColumnName | None = option("The column to test.", default=None, example="price", aka=["field"])
    not_null: Literal[True] | None = option("The column has a value.", default=None, example="true", aka=["required"])
    between: tuple[str, str] | None = option(
        "The value is in this range, including both ends.", default=None, example="[0, 1000]"
    )
    length: tuple[int, int] | None = option(
        "The length of the text, or the number of items of the list, is in this range, including both ends.",
        default=None, example="[1, 8]", aka=["size"],
    )  # fmt: skip
    one_of: tuple[str, ...] | None = option(
        "The value is one of these.", default=None, example="[BUY, SELL]", at_least=1, aka=["in", "values"]
    )
    matches: str | None = option(
        "The whole text matches this regular expression.", default=None, example='"[A-Z]+"', aka=["pattern", "regex"]
    )
    references: References | None = option(
        "Each value of the batch is in a column of another table.",
        default=None, example="{table: shop.customers}", aka=["relationships", "foreign_key"],
    )  # fmt: skip
    when: Expression | None = option(
        "A condition that must be true.", default=None, example="quantity > 0", aka=["condition", "that", "if", "expression"]
    )
    unique: tuple[ColumnName, ...] | None = option(
        "No row of the batch has the same values of these columns as another row of the table.", default=None, example="[order_id]",
        at_least=1, aka=["distinct", "unique_key"],
    )  # fmt: skip
    rows: tuple[int, int] | None = option(
        "How many rows the table has after a batch, including both ends.",
        default=None,
        example="[1, 1000000]",
        aka=["row_count", "count"],
    )
    else_: Literal["quarantine", "warn", "stop"] | None = option(
        "What happens if a row fails: `quarantine` makes it a bad row, `warn` publishes the batch with a warning, `stop` publishes "
        "nothing. Default: `quarantine`; `warn` for `unique`, `references` and `rows`, which no single row fails.",
        default=None, example="warn", aka=["otherwise", "on_fail", "severity"],
    )  # fmt: skip

    @property
    def of_many(self) -> str | None:
        """The option that makes this an expectation of many rows, or None."""
        return next((key for key in ("unique", "references", "rows") if getattr(self, key) is not None), None)

    def problems(self) -> Iterable[Problem]:
        yield from self._several()
        of_many = self.of_many
        if of_many and self.else_ == "quarantine":
            hint = "write `else: warn`, or `else: stop`, which publishes nothing"
            if of_many == "references":
                hint += "; the step `join` with `missing: quarantine` makes bad rows"
            yield Problem(
                self.place("else"), "no-single-row", f"`{of_many}` is about many rows, of which none is the bad one", hint
            )
        for key in ("rows", "length"):
            range_ = getattr(self, key)
            if range_ is not None and not 0 <= range_[0] <= range_[1]:
                message = f"`{key}` is a range from a smaller number to a larger one, from 0"
                yield Problem(self.place(key), "out-of-range", message, "write the smaller value first: `[1, 8]`")

    def _several(self) -> Iterable[Problem]:
        """Problems of an expectation that is not exactly one."""
        given_tests = [key for key in TESTS if getattr(self, key) is not None]
        lone_keys = [key for key in ("when", *OF_MANY) if getattr(self, key) is not None]
        if lone_keys and (given_tests or self.column is not None or len(lone_keys) > 1):
            extra_keys = [*(["column"] if self.column is not None else []), *given_tests, *lone_keys[1:]]
            hint = (
                "write two expectations, or put the whole condition into `when`"
                if lone_keys[0] == "when"
                else "write two expectations"
            )
            yield Problem(
                self.key_place(extra_keys[0]), "unused-key", f"`{extra_keys[0]}` has no effect with `{lone_keys[0]}`", hint
            )
        elif not lone_keys and self.column is None:
            yield Problem(
                self.place(), "missing-key", "an expectation needs a `column` and a test of the column, or `when`, `unique` or `rows`",
                "write `{column: price, not_null: true}` or `{when: price > 0}`",
            )  # fmt: skip
        elif not lone_keys and len(given_tests) != 1:
            fault = (
                f"has {len(given_tests)} tests: {', '.join(f'`{key}`' for key in given_tests)}" if given_tests else "has no test"
            )
            yield Problem(
                self.place(), "one-test", f"this expectation {fault}",
                f"write one of {', '.join(f'`{key}`' for key in TESTS)}, and another expectation for the next",
            )  # fmt: skip
