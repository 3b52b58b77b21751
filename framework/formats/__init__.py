"""How messages are written, one file each: what columns they become, and what makes a message unreadable."""
