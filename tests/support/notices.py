"""A shop whose exports are told of by notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.features.export import notify as notifying
from tests.support.exports import SPECS, put, utc


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    monkeypatch.setattr(notifying, "NOTICE_AGAIN", (0.0, 0.0))  # tries follow after seconds
    put(("o-1", "web", "10.50", utc("2026-11-10T12:00")))
    return tmp_path


def specs(port: int, notify: str, options: str = "tls: none") -> None:
    Path("specs").mkdir(exist_ok=True)
    text = SPECS.replace("QUERY", '"select order_id, amount from input"').replace(
        "export: whole", f"{notify}\n---\nexport: whole", 1
    )
    text = text.replace("---\nnotify", "notify", 1)
    mail = f"---\nmail: main\nhost: 127.0.0.1\nport: {port}\nfrom: sluice@example.com\n{options}\n" if port else ""
    Path("specs/all.yaml").write_text(text + mail, encoding="utf-8")
