"""Keys that are replaced from time to time. `document.py` has the options, `operations/keys/` replaces them."""
