"""Decrypts values that a step `mask` encrypted, in a Java of its own. Keys and values go through pipes, never through arguments."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator, Sequence

from framework.base.errors import SetupError, SluiceError
from framework.base.patience import STARTING
from framework.base.spelling import did_you_mean
from framework.machine.java.java import installed
from framework.machine.jvm import build
from framework.plan import Masks, Pipeline, Plan
from framework.systems import mask_keys


def encrypted(pipeline: Pipeline) -> dict[str, Masks]:
    """The columns and fields that can be revealed, each with the masks of its step."""
    steps = [step.masks for step in pipeline.steps if step.masks]
    return {".".join(path): masks for masks in steps for path in masks.encrypted}


def reveal(plan: Plan, pipeline: Pipeline, column: str, values: Sequence[str]) -> Iterator[str | None]:
    """The plain values; None where a value was not encrypted by these keys for this column."""
    masks = encrypted(pipeline)
    if column not in masks:
        hint = (
            f"{pipeline.name} encrypts {', '.join(f'`{name}`' for name in masks)}"
            if masks
            else f"{pipeline.name} encrypts nothing"
        )
        raise SluiceError("not-encrypted", f"`{column}` of {pipeline.name} is not encrypted", did_you_mean(column, masks, hint))
    keys = [pair for key in masks[column].keys for pair in mask_keys.ring(key.secret.name, plan.secrets).ids(key)]
    lines = [column, str(len(keys)), *(part for key in keys for part in key), *(value.replace("\n", " ") for value in values)]
    command = [str(installed().binary), "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", str(build.built()), "sluice.Reveal"]
    text = "".join(f"{line}\n" for line in lines)
    process = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", timeout=STARTING, check=False)
    if process.returncode != 0:
        raise SetupError("java-failed", "Java could not decrypt the values", "`sluice doctor` checks this machine")
    for line in process.stdout.splitlines():
        yield base64.b64decode(line[1:]).decode() if line.startswith("=") else None
