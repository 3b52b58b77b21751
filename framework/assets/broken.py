"""Specs with problems in a running server: each is an asset that says what is wrong, and whose materialization fails with it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from dagster import AssetKey, AssetsDefinition, AssetSpec, Failure, MetadataValue, multi_asset

from framework.assets.described import code
from framework.errors import Problem


def assets(problems: Sequence[Problem]) -> list[AssetsDefinition]:
    """One per file."""
    found: dict[str, list[Problem]] = defaultdict(list)
    for problem in problems:
        found[problem.where.file].append(problem)
    return [_asset(file, said) for file, said in found.items()]


def _asset(file: str, problems: Sequence[Problem]) -> AssetsDefinition:
    text = "\n".join(map(str, problems))
    name = re.sub(r"\W", "_", str(Path(file).with_suffix("")))
    spec = AssetSpec(
        AssetKey(["broken", name]), group_name="broken", kinds={"yaml"},
        description=f"**{file} has problems**\n\n```\n{text}\n```",
        metadata={**code(problems[0].where), "problems": MetadataValue.md(f"```\n{text}\n```")},
    )  # fmt: skip

    @multi_asset(name=f"broken_{name}", specs=[spec])
    def broken() -> None:
        raise Failure(text, allow_retries=False)

    return broken
