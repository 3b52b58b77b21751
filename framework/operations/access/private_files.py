"""The files that a script writes on this machine: below `.sluice`, which version control leaves out, and for this user alone."""

from __future__ import annotations

from framework.operations.access.steps import Warned

FOLDER = ".sluice/access"


def path(name: str) -> str:
    """The path of a file that a script writes."""
    return f"{FOLDER}/{name}"


def writing(*commands: str) -> str:
    """Commands of a shell that write such files: nobody else can read them, whatever the user's umask is."""
    return f"(umask 077; mkdir -p {FOLDER}; {'; '.join(commands)})"


def quoted(text: str) -> str:
    """A text as one word of a shell, always in quotes, in which a person fills in what stands between `<` and `>`."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def unencrypted(file: str, content: str) -> Warned:
    """The note about a secret in a file."""
    return Warned(
        f"the script writes {content} to `{path(file)}`, unencrypted; this user alone can read it (mode 0600). Keep it out of version "
        "control and backups, or move it to where you keep secrets"
    )
