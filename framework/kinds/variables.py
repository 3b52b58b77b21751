"""Values for ${var:NAME}. The process environment overrides them."""

from __future__ import annotations

from dataclasses import dataclass

from framework.spec.kinds import DocumentKind
from framework.spec.options import Kind, option

EXAMPLE = """\
variables: main
values: {LARGE_TRADE: 4000, REGION: eu}
"""


@dataclass(frozen=True)
class Variables(Kind):
    """Values for `${var:NAME}`."""

    values: dict[str, str] = option(
        "A value for each variable; `SLUICE_VAR_NAME` in the environment overrides it.",
        example="{LARGE_TRADE: 4000}", aka=["vars", "variables"],
    )  # fmt: skip


KIND = DocumentKind(Variables, one_only=True)
