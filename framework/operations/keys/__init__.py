"""Keys over time: `rotation.py` makes, uses and retires them, `standing.py` looks at them, `due.py` replaces those that are due."""
