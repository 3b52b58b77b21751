"""Alerts: conditions on tables, and who is told of them. `document.py` has the options; `operations/alerts/` judges them."""
