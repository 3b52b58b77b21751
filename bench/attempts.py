"""Measures the cost of attempts: expressions that can fail, plain and as attempts, in turns. `python -m bench.attempts`"""

from __future__ import annotations

import statistics
import time
from typing import Any

from framework.base.types import BIGINT
from framework.sql.attempt import attempt
from framework.sql.expressions import check

ROWS = 60_000_000
TURNS = 15
COLUMNS = {"a": BIGINT, "b": BIGINT}
EXPRESSIONS = ("a / b", "a + b")


def cost(spark: Any) -> dict[str, float]:
    rows = spark.range(0, ROWS, 1, 2).selectExpr("id % 1000 + 1 as a", "id % 999 + 1 as b")
    checked = [check(text, COLUMNS) for text in EXPRESSIONS]
    plain = rows.selectExpr(*(f"{expression.sql} AS x{index}" for index, expression in enumerate(checked))).where(
        "x0 IS NOT NULL AND x1 IS NOT NULL"
    )
    tried = rows.selectExpr(*(f"{attempt(expression.sql)} AS x{index}" for index, expression in enumerate(checked)))
    ours = tried.where("x0.error IS NULL AND x1.error IS NULL").selectExpr("x0.value", "x1.value")
    seconds: dict[str, list[float]] = {"plain": [], "ours": []}
    for turn in range(TURNS + 2):
        for name, frame in (("plain", plain), ("ours", ours)):
            began = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            if turn >= 2:  # before that the JVM is not warm
                seconds[name].append(time.perf_counter() - began)
        print(
            f"turn {turn} attempts: " + ", ".join(f"{name} {times[-1]:.2f} s" for name, times in seconds.items() if times),
            flush=True,
        )
    ratios = [ours / plain for ours, plain in zip(seconds["ours"], seconds["plain"], strict=True)]
    return {"attempt_cost": statistics.median(ratios) - 1}


def main() -> None:
    from bench import load
    from bench.quick import place
    from framework.core.context.context import Context
    from framework.host.plans import make

    with place():
        context = Context(make(load.specs("127.0.0.1:1", {"nothing": "nothing"})))
        print(cost(context.spark))
        context.stop()


if __name__ == "__main__":
    main()
