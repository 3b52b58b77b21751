"""The packages that `sluice-slim` lacks."""

from __future__ import annotations

from importlib.util import find_spec

from framework.base.errors import NotInstalled

# By the names of their modules.
_MISSING = {
    "pyspark": "pyspark", "py4j": "pyspark", "dagster": "dagster", "dagster_pyspark": "dagster-pyspark",
    "dagster_webserver": "dagster-webserver", "deltalake": "deltalake", "starlette": "starlette", "uvicorn": "uvicorn",
    "aiosmtpd": "aiosmtpd",
}  # fmt: skip


def needs(module: str) -> None:
    """Ends a command for which a package is missing."""
    if find_spec(module) is None:
        raise NotInstalled(_MISSING[module])


def named(error: Exception) -> NotInstalled | None:
    """The error to show for a failed import of a package that is missing; None for any other error."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    package = _MISSING.get((error.name or "").partition(".")[0])
    return NotInstalled(package) if package else None
