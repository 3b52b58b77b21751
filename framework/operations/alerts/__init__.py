"""Alerts, judged: `judge.py` is one look at all of them; `memory.py` keeps what was told, and the numbers of the past."""
