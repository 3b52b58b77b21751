"""Values for ${var:NAME}. The process environment overrides them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from framework.language.kind import Kind
from framework.language.options import Document, option
from framework.language.references import VARIABLE_NAME
from framework.language.scalars import Scalar

EXAMPLE = """\
variables: main
values: {LARGE_TRADE: 4000, REGION: eu}
"""

VariableName = Annotated[
    str,
    Scalar(noun="a variable's name", code="bad-variable-name", example="LARGE_TRADE", pattern=rf"^{VARIABLE_NAME}$(?!\n)",
           rule="letters, digits and _, not starting with a digit", suggest=lambda text: re.sub(r"[^A-Za-z0-9_]", "_", text)),
]  # fmt: skip


@dataclass(frozen=True)
class Variables(Document):
    """Values for `${var:NAME}`."""

    values: dict[VariableName, str] = option(
        "A value for each variable; `SLUICE_VAR_NAME` in the environment overrides it.",
        example="{LARGE_TRADE: 4000}", aka=["vars", "variables"],
    )  # fmt: skip


KIND = Kind(Variables, one_only=True)
