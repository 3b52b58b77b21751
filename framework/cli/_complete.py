"""Names that a shell completes: those of the documents in the specs. It reads nothing else, and is silent about their mistakes."""

from __future__ import annotations

from pathlib import Path

import click


def pipelines(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    return _names(ctx, "pipeline", typed)


def topics(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    return _names(ctx, "topic", typed)


def _names(ctx: click.Context, kind: str, typed: str) -> list[str]:
    from framework.spec import load

    taken = ctx.params.get("names") or ()
    try:
        written = load(ctx.params.get("specs") or Path("specs"), ctx.params.get("environment") or "local")
    except Exception:  # whatever is wrong, a traceback between the words of a command line would only be worse
        return []
    return sorted(name for of, name in written.names if of == kind and name.startswith(typed) and name not in taken)
