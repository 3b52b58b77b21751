"""Many specs: how long until they are Dagster definitions. `python -m bench.many COUNT` prints the seconds."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

BASE = """
cluster: main
bootstrap: 127.0.0.1:19092
---
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: warehouse
"""
SPEC = """
---
topic: trades_{number}
value: json
key: {{format: string, as: userid}}
columns:
  side: string
  quantity: int
  symbol: string
  price: {{type: double, required: true}}
  at: timestamp
event_time: at
---
pipeline: trades_{number}
owner: team:markets
from: {{topic: trades_{number}}}
steps:
  - filter: "quantity > 0 and side in ('BUY', 'SELL')"
  - derive: {{notional: price * quantity, traded_on: "date_trunc('day', at)"}}
  - flag:
      into: anomaly_flag
      rules:
        - {{when: price < 0, label: NEGATIVE_PRICE}}
        - {{when: quantity > {number}, label: LARGE_TRADE}}
        - {{when: price > 900, label: UNUSUAL_PRICE}}
      otherwise: NORMAL
into: {{table: markets.trades_{number}, partition_by: [day(at)]}}
expect: [{{column: symbol, not_null: true}}]
fresh_within: 15m
"""


def write(folder: Path, count: int) -> None:
    folder.mkdir()
    (folder / "main.yaml").write_text(BASE)
    for start in range(0, count, 10):
        (folder / f"trades_{start}.yaml").write_text("".join(SPEC.format(number=start + index) for index in range(10)))


def main(count: int) -> None:
    os.environ.setdefault("SLUICE_HOME", str(Path(".sluice").absolute()))  # where the jars are
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        write(Path("specs"), count)
        from sluice.dagster import build_sluice_definitions

        began = time.perf_counter()
        definitions = build_sluice_definitions("specs")
        repository = definitions.get_repository_def()  # what a server loads
        seconds = time.perf_counter() - began
        assert len(repository.assets_defs_by_key) >= 2 * count
        print(seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]))
