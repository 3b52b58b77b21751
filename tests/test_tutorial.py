"""The tutorial is done as it is written: each command of each block, in one shell, with its change to the spec in between."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
INSERT = """
import sys
from pathlib import Path

path = Path("specs/orders.yaml")
line = "  - filter: quantity > 0\\n"
before = path.read_text()
assert before.count(line) == 1
path.write_text(before.replace(line, line + sys.argv[1]))
"""
BLOCKS = re.findall(r"^```(sh|yaml)\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)


def script(bootstrap: str) -> str:
    """Kafka is the test's own, and what Spark needs is already on this machine."""
    lines = ["set -eu"]
    for language, text in BLOCKS:
        if language == "yaml":
            lines.append(f'python3 -c "$INSERT" {quoted(text)}')
            continue
        for line in text.splitlines():
            if line.startswith("sluice services"):
                continue
            lines += [f"echo {quoted(f'$ {line}')}", line]
            if line.startswith("sluice init"):
                lines.append(f'mkdir -p .sluice && ln -s "{ROOT}/.sluice/jars" .sluice/jars')
                lines.append(f"export SLUICE_VAR_KAFKA={bootstrap}")
                lines.append("sed -i 's/memory: 4g/memory: 1g/' specs/main.yaml")
    return "\n".join(lines)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.long
def test_the_tutorial(tmp_path: Path, kafka: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    environment |= {"HOME": str(tmp_path), "COLUMNS": "120", "INSERT": INSERT}
    done = subprocess.run(
        ["bash", "-c", script(kafka)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", done.stdout, re.MULTILINE)
    said = dict(printed)
    assert "no problems" in said["sluice check"]
    tests = [text for line, text in printed if line == "sluice test"]
    assert len(tests) == 2 and all("1 test, 1 passed, 0 failed" in text for text in tests)
    runs = [text for line, text in printed if line == "sluice run"]
    assert [" bad, " in text for text in runs] == [False, True, False]  # only of what was no order
    preview = said["sluice preview orders --messages 2"]
    assert re.search(r"the next 2 messages of [\d,]+ that wait in orders", preview)
    assert "LARGE" in said[next(line for line in said if line.startswith('sluice query "select size'))]
    assert "caught up" in said["sluice status"]
    assert "undecodable" in said["sluice bad-rows orders"]
    assert "adds column per_piece double" in said["sluice plan orders"]
    assert not (tmp_path / "sluice-tutorial" / ".sluice" / "lake.db").exists()
