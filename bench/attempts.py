"""What attempts cost: expressions that can fail, as plain Spark computes them and as attempts, in turns. `python -m bench.attempts`"""

from __future__ import annotations

import statistics
import time
from typing import Any

from framework.sql.expressions import check, guarded
from framework.types import BIGINT

ROWS = 100_000_000
TURNS = 7
COLUMNS = {"a": BIGINT, "b": BIGINT}
EXPRESSIONS = ("a / b", "a + b")


def cost(spark: Any) -> dict[str, float]:
    rows = spark.range(0, ROWS, 1, 2).selectExpr("id % 1000 + 1 as a", "id % 999 + 1 as b")
    checked = [check(text, COLUMNS) for text in EXPRESSIONS]
    plain = rows.selectExpr(*(each.sql for each in checked))
    # As a step does: attempts first, each once, then their values and whether any of them failed.
    tried = [guarded(each) for each in checked]
    attempts = rows.selectExpr(*(f"{each.sql.removesuffix('.value')} AS t{at}" for at, each in enumerate(tried)))
    ours = attempts.where(" AND ".join(f"t{at}.error IS NULL" for at in range(len(tried)))).selectExpr(
        *(f"t{at}.value" for at in range(len(tried)))
    )
    seconds: dict[str, list[float]] = {"plain": [], "ours": []}
    for turn in range(TURNS + 2):
        for name, frame in (("plain", plain), ("ours", ours)):
            began = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            if turn >= 2:  # before that the JVM is not warm
                seconds[name].append(time.perf_counter() - began)
        print(f"turn {turn} attempts: " + ", ".join(f"{name} {each[-1]:.2f} s" for name, each in seconds.items() if each), flush=True)
    return {"attempt_cost": statistics.median(seconds["ours"]) / statistics.median(seconds["plain"]) - 1}


def main() -> None:
    from bench.quick import place
    from framework.engine.context import Context
    from framework.plan.passes import make
    from bench import load

    with place():
        context = Context(make(load.specs("127.0.0.1:1", {"nothing": "nothing"})))
        print(cost(context.spark))
        context.stop()


if __name__ == "__main__":
    main()
