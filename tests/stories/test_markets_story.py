"""The shipped specs of the markets as a user runs them: every label occurs, and the flagged trades go on to their topic."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from rich.console import Console

from framework.host.cli import _landed, _onward
from framework.host.plans import make
from framework.machine.services import ServiceState
from tests.support.commands import Commands
from tests.support.topic_messages import messages_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]

SHIPPED = Path(__file__).resolve().parents[2] / "specs"
MESSAGES = 5000


@pytest.fixture
def markets(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """A folder with the shipped topic of trades and its pipelines with flags."""
    specs = tmp_path / "specs"
    specs.mkdir()
    main = (SHIPPED / "main.yaml").read_text(encoding="utf-8").replace("memory: 4g", "memory: 1g").replace(".sluice/", "lake/")
    (specs / "main.yaml").write_text(main, encoding="utf-8")
    for name in ("markets/trades.yaml", "totals/unusual.yaml"):
        shutil.copy(SHIPPED / name, specs)
    (tmp_path / "lake").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_VAR_KAFKA", kafka)
    return Commands()


def send_bad(kafka: str) -> None:
    producer = Producer({"bootstrap.servers": kafka})
    for value in (b"not json", b"not json", None):
        producer.produce("sample_data_stock_trades", value)
    assert producer.flush(30) == 0


def counts(markets: Commands, table: str, column: str) -> dict[str, int]:
    answer = markets.ok("query", "--json", f"select {column}, count(*) as trades from {table} group by 1")
    return {row[column]: row["trades"] for row in json.loads(answer)}


def test_every_label_occurs_and_flagged_trades_go_on_to_their_topic(markets: Commands, kafka: str) -> None:
    markets.ok("generate", "stock_trades", "--count", str(MESSAGES), "--seed", "7")
    send_bad(kafka)
    markets.ok("run", "flagged_stock_trades", "unusual_stock_trades")

    flags = counts(markets, "markets.flagged_stock_trades", "anomaly_flag")
    assert flags.keys() == {"NORMAL", "NEGATIVE_PRICE", "LARGE_TRADE", "UNUSUAL_PRICE"}
    assert sum(flags.values()) == MESSAGES
    unusual = counts(markets, "totals.unusual_stock_trades", "price_flag")
    assert unusual.keys() == {"NORMAL", "NEGATIVE_PRICE", "UNUSUAL_PRICE"}
    assert unusual["NORMAL"] > 0.95 * MESSAGES

    flagged = messages_of(kafka, "flagged_stock_trades")
    assert len(flagged) == MESSAGES - flags["NORMAL"]
    assert {row["anomaly_flag"] for _, row in flagged} == flags.keys() - {"NORMAL"}
    assert all((key or b"").decode() == row["userid"] for key, row in flagged)

    plan = make(Path("specs"))
    sent = _onward.messages_sent(plan, ServiceState(name="kafka", state="running", address=kafka))
    printed = console_text(lambda console: _onward.show_topics(console, plan, sent))
    assert re.search(rf"markets.flagged_stock_trades +flagged_stock_trades +{len(flagged):,}\n", printed)
    bad = console_text(lambda console: _landed.print_bad_messages(console, plan))
    assert bad.count("Bad messages of") == 1 and bad.count("not json") == 1
    assert re.search(r"undecodable .* not json +2 +2\n", bad) and re.search(r"null_value .* \(no value\) +1 +2\n", bad)


def console_text(show: Callable[[Console], None]) -> str:
    """The text that `show` prints on a wide terminal."""
    text = io.StringIO()
    show(Console(file=text, width=160))
    return re.sub(r" +\n", "\n", text.getvalue())
