"""Sets a column to the label of the first rule that is true, or else to `otherwise`."""

from __future__ import annotations

from dataclasses import dataclass

from framework.model import ColumnSql
from framework.plan.rows import Resolved, Rows
from framework.spec.options import Bound, WrittenStep, later, option
from framework.spec.scalars import ColumnName, Expression
from framework.sql.expressions import Checked
from framework.sql.quote import literal
from framework.types import STRING

EXAMPLE = """\
columns: {symbol: string, quantity: int, price: double}
steps:
  - flag:
      into: anomaly_flag
      rules:
        - {when: price < 0, label: NEGATIVE_PRICE}
        - {when: quantity > 4000, label: LARGE_TRADE}
      otherwise: NORMAL
given:
  - {symbol: ZVZZT, quantity: 10, price: 2.5}
  - {symbol: ZJZZT, quantity: 5000, price: 2.5}
  - {symbol: ZWZZT, quantity: 5000, price: -1.0}
expect:
  - {symbol: ZVZZT, quantity: 10, price: 2.5, anomaly_flag: NORMAL}
  - {symbol: ZJZZT, quantity: 5000, price: 2.5, anomaly_flag: LARGE_TRADE}
  - {symbol: ZWZZT, quantity: 5000, price: -1.0, anomaly_flag: NEGATIVE_PRICE}
"""


@dataclass(frozen=True)
class Rule(Bound):
    """A condition and the label of the rows for which it is true."""

    when: Expression = option("The condition; null is not true.", example="price < 0", aka=["if", "condition"])
    label: str = option("The label.", example="NEGATIVE_PRICE", aka=["then", "value", "flag"])
    beyond: None = later("A moving threshold.")


@dataclass(frozen=True)
class Written(Bound):
    """Labels rows by rules; the first that is true counts."""

    into: ColumnName = option("The column that takes the label.", example="anomaly_flag", aka=["column", "as", "name"])
    rules: tuple[Rule, ...] = option("The rules, in order.", example="[{when: price < 0, label: LOW}]", at_least=1)
    otherwise: str | None = option("The label where no rule is true; default: null.", default=None, aka=["else", "default"])


ADDS = "into"


def resolve(step: WrittenStep, rows: Rows) -> Resolved:
    written: Written = step.value
    checked = [rows.unguarded_condition(rule.when, rule.place("when")) for rule in written.rules]
    cases = " ".join(
        f"WHEN {condition.sql} THEN {literal(rule.label)}" for condition, rule in zip(checked, written.rules, strict=True)
    )
    otherwise = "NULL" if written.otherwise is None else literal(written.otherwise)
    reads = (name for condition in checked for name in condition.sql.reads)
    # One attempt for all rules: a rule is computed only for rows for which no rule before it was true.
    fails = any(condition.fails for condition in checked)
    label = rows.attempted(Checked(ColumnSql(f"CASE {cases} ELSE {otherwise} END", reads), STRING, fails))
    return Resolved(
        rows.with_columns([rows.new_column(written.into, STRING, written.place("into"))]),
        assign=((written.into, label.sql),),
        faults=rows.faults("flag", written.into, label),
        says=(
            *(f"{rule.label} when {rule.when}" for rule in written.rules),
            f"{'null' if written.otherwise is None else written.otherwise} otherwise",
        ),
    )
