"""Names for shell completion: those of the documents in the specs.

*Limit* Only the first lines of documents are read, because a shell waits for it: a name with a variable is not offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

_ENVIRONMENTS = "environments"
_MAX_BYTES = 1 << 20  # bytes of a file, the limit of specs
_FILLED = "also"
_ALSO = re.compile(r"^also:(?:.*\n?)(?:(?:[ \t-].*|[ \t]*(?:\#.*)?)(?:\n|\Z))*", re.MULTILINE)
_SENT = re.compile(r"""\btopic:[ \t]+["']?([\w.-]+)""")
_DOCUMENT = re.compile(r"""(?:\A|^---.*\n)(?:[ \t]*(?:\#.*)?\n)*(\w+):[ \t]+["']?([\w.-]+)["']?[ \t]*(?:\#.*)?$""", re.MULTILINE)


def pipelines(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    return _names(ctx, "pipeline", typed)


def topics(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    return _names(ctx, "topic", typed)


def all_topics(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """The topics of the specs, and those that only `also` names."""
    return sorted({*_names(ctx, "topic", typed), *_names(ctx, _FILLED, typed)})


def catalogs(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    return _names(ctx, "catalog", typed)


def exports(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    return _names(ctx, "export", typed)


def keys(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    return _names(ctx, "keys", typed)


def _names(ctx: click.Context, kind: str, typed: str) -> list[str]:
    given_names = ctx.params.get("names") or ()
    try:
        names = set(_documents(ctx.params.get("specs") or Path("specs"), ctx.params.get("environment") or "local"))
    except (OSError, ValueError):  # an error message in the middle of a command line would be worse than no names
        return []
    return sorted(
        name for document_kind, name in names if document_kind == kind and name.startswith(typed) and name not in given_names
    )


def _documents(specs: Path, environment: str) -> Iterator[tuple[str, str]]:
    for path in specs.rglob("*.yaml"):
        inside = path.relative_to(specs).parts
        if (inside[0] == _ENVIRONMENTS and inside[1] != environment) or not path.is_file():
            continue
        with path.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(_MAX_BYTES)
        yield from _DOCUMENT.findall(text)
        yield from ((_FILLED, name) for part in _ALSO.findall(text) for name in _SENT.findall(part))
