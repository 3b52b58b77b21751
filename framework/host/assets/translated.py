"""Checks of a translator's choices for an asset. Choices that Sluice cannot follow, or that would break a run, are refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dagster import AssetKey, AssetSpec

from framework.base.errors import SluiceError

if TYPE_CHECKING:
    from framework.host.assets.translator import SluiceAsset

_LEAVE_OUT = "leave `{}` out of what the translator returns"


def require_valid(asset: SluiceAsset, spec: object, key: AssetKey | None) -> AssetSpec:
    """The spec that a translator returned. `key` is the one that it chose for the asset before, if it was asked before."""
    subject = f"the {asset.type} `{asset.name}`"
    if not isinstance(spec, AssetSpec):
        message = f"a translator returns {type(spec).__name__} for {subject}"
        raise SluiceError("bad-translation", message, "return `asset.spec`, or what its `replace_attributes` returns")
    if key and spec.key != key:
        message = f"a translator returns two keys for {subject}, {key.to_user_string()} and {spec.key.to_user_string()}"
        raise SluiceError(
            "bad-translation", message, "make the key of `asset.spec.key` and of what never changes, such as `asset.name`"
        )
    for says, hint in _problems(asset, spec):
        raise SluiceError("bad-translation", f"a translator gives {subject} {says}", hint)
    return spec


def _problems(asset: SluiceAsset, spec: AssetSpec) -> Iterator[tuple[str, str]]:
    """Each refused choice, in words, with a hint what to do instead."""
    if spec.partitions_def is not None:
        says = f"partitions ({type(spec.partitions_def).__name__}), but a run {_run(asset)}, whatever its partition"
        yield says, f"{_LEAVE_OUT.format('partitions_def')}; {_range(asset)}"
    if lost := {dep.asset_key for dep in asset.spec.deps} - {dep.asset_key for dep in spec.deps}:
        names = ", ".join(sorted(key.to_user_string() for key in lost))
        says = f"dependencies without {names}, from which it is made: runs would come in a wrong order, or not at all"
        yield says, "add dependencies by `merge_attributes(deps=[…])`, which keeps those of `asset.spec`"
    if spec.skippable and not asset.spec.skippable:
        says = "`skippable=True`, but a run never skips an asset: it says that nothing is new by an observation"
        yield says, _LEAVE_OUT.format("skippable")
    if spec.is_virtual and not asset.spec.is_virtual:
        says = "`is_virtual=True`, but it has data and versions of its own"
        yield says, _LEAVE_OUT.format("is_virtual")


def _run(asset: SluiceAsset) -> str:
    return {
        "topic": "of a table reads all its waiting messages",
        "also": "of a table shows all its new rows",
        "export": "writes the file of one window",
        "broken": "only says what is wrong",
    }.get(asset.type, "loads all waiting messages")


def _range(asset: SluiceAsset) -> str:
    if asset.type == "export":
        return f"for one window choose it in the launchpad, or `sluice export {asset.name} --window WINDOW`"
    if asset.pipeline and asset.pipeline.topics:
        into = "" if asset.pipeline.table.rule.newest_only else " --into TABLE"  # where each row would come a second time
        rewind_hint = f"`sluice rewind {asset.name} --to TIME{into}` reads from a time on again"
        return f"{rewind_hint}, and `until` in the launchpad ends a run at a time"
    return "an asset of Sluice has no partitions"
