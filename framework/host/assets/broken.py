"""Assets for specs with problems in a running server. Each file is an asset that shows its problems. The table of a pipeline that
cannot run keeps its key, and with it its history; its check `can_run` fails with the problems."""

# Without `from __future__ import annotations`: Dagster reads the types of a step's function.
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    Failure,
    MetadataValue,
    multi_asset,
)

from framework.base.errors import Problem, Where
from framework.documents.pipeline.written import Pipeline as WrittenPipeline
from framework.host.assets import asset_specs, check_records, checks
from framework.host.assets.translator import Assets, SluiceAsset
from framework.language import Documents, FoundDocument
from framework.plan import Pipeline, Plan

_GROUP = "broken"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A table whose pipeline cannot run."""

    name: str  # of its step
    names: frozenset[str]  # of the pipeline and of its table
    specs: tuple[AssetSpec, ...]  # for the table, and for its bad rows
    checks: tuple[AssetCheckSpec, ...]
    problems: tuple[Problem, ...]

    @property
    def text(self) -> str:
        return "\n".join(map(str, self.problems))

    def definition(self) -> AssetsDefinition:
        return _failing(self.name, [_says(spec, self.text) for spec in self.specs], self.text, self.checks, self.check())

    def check(self) -> AssetCheckResult:
        """The failed check `can_run`, with the problems."""
        return AssetCheckResult(
            passed=False, asset_key=self.specs[0].key, check_name=checks.CAN_RUN, severity=AssetCheckSeverity.ERROR,
            description=self.text.replace("\n", "\n\n"), metadata={"state": "broken", "because": self.text},
        )  # fmt: skip


def files(assets: Assets, problems: Sequence[Problem]) -> list[AssetsDefinition]:
    """An asset for each file that has problems."""
    by_file: dict[str, list[Problem]] = defaultdict(list)
    for problem in problems:
        by_file[problem.where.file].append(problem)
    names: dict[str, int] = defaultdict(int)
    definitions = []
    for file, file_problems in by_file.items():
        name = _NOT_IN_NAMES.sub("_", str(_from_here(Path(file)).with_suffix("")))
        names[name] += 1  # a-b.yaml and a_b.yaml
        definitions.append(_file(assets, f"{name}_{names[name]}" if names[name] > 1 else name, file, file_problems))
    return definitions


def _file(assets: Assets, name: str, file: str, problems: Sequence[Problem]) -> AssetsDefinition:
    text = "\n".join(map(str, problems))
    spec = AssetSpec(
        AssetKey([_GROUP, assets.named(name)]), group_name=_GROUP, kinds={"yaml"},
        description=f"**{file} has problems**\n\n```\n{text}\n```",
        metadata={**asset_specs.code(problems[0].where), "problems": MetadataValue.md(f"```\n{text}\n```")},
    )  # fmt: skip
    spec = assets.of(SluiceAsset(type="broken", name=file, spec=spec))
    return _failing(assets.named(f"{_GROUP}_{name}"), [spec], text)


def _from_here(file: Path) -> Path:
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def tables(
    written: Documents, plan: Plan, assets: Assets, runnable: Sequence[Pipeline], problems: Sequence[Problem]
) -> Iterator[Kept]:
    """The tables of all pipelines that cannot run, if their names can be read."""
    taken_keys = {key for pipeline in runnable for key in assets.keys.written(pipeline)}
    names = {pipeline.name for pipeline in runnable}
    for document in written.documents:
        if document.kind != "pipeline" or document.name in names:
            continue
        pipeline = plan.pipeline(document.name)
        specs = tuple(assets.tables(pipeline)) if pipeline else _specs(document, written, assets)
        if not specs or taken_keys & {spec.key for spec in specs}:
            continue
        taken_keys |= {spec.key for spec in specs}
        check_specs = checks.specs(specs[0].key, pipeline) if pipeline else [checks.can_run(specs[0].key)]
        step_name = assets.named(_NOT_IN_NAMES.sub("_", document.name))
        because = tuple(_of(document, written, problems)) or tuple(problems)
        yield Kept(name=step_name, names=frozenset(_names(document)), specs=specs, checks=tuple(check_specs), problems=because)


def _names(document: FoundDocument) -> Iterator[str]:
    """The names by which a pipeline can be selected: its own and its table's."""
    yield document.name
    if isinstance(document.value, WrittenPipeline):
        yield document.value.into.table


def _specs(document: FoundDocument, written: Documents, assets: Assets) -> tuple[AssetSpec, ...]:
    declared = document.value
    catalogs = [name for kind, name in written.names if kind == "catalog"]
    if not isinstance(declared, WrittenPipeline) or "into" in declared.gaps or "table" in declared.into.gaps:
        return ()
    catalog = declared.into.catalog if "catalog" not in declared.into.gaps else None
    if catalog is None and len(catalogs) == 1:
        catalog = catalogs[0]
    if catalog is None:
        return ()
    path = [catalog, *declared.into.table.split(".")]
    code = asset_specs.code(document.where)
    table = AssetSpec(path, group_name=path[-2], kinds={"iceberg", "spark"}, metadata=code)
    sluice_assets = [SluiceAsset(type="table", name=document.name, spec=table)]
    if declared.bad_rows != "drop":
        bad_rows = table.replace_attributes(key=[*path[:-1], f"{path[-1]}__bad_rows"])
        sluice_assets.append(SluiceAsset(type="bad_rows", name=document.name, spec=bad_rows))
    return tuple(map(assets.of, sluice_assets))


def _of(document: FoundDocument, written: Documents, problems: Sequence[Problem]) -> Iterator[Problem]:
    """The problems inside the document; none if only a document that it uses is broken."""
    begin = document.node.where
    end = min(
        (place for place in written.places if place.file == begin.file and place > begin), default=Where(begin.file, 1 << 40, 0)
    )
    return (problem for problem in problems if begin <= problem.where < end)


def _says(spec: AssetSpec, text: str) -> AssetSpec:
    says = f"**this pipeline cannot run: its spec has problems**\n\n```\n{text}\n```"
    return spec.replace_attributes(description="\n\n".join(part for part in (says, spec.description) if part))


def _failing(
    name: str,
    specs: Sequence[AssetSpec],
    text: str,
    check_specs: Sequence[AssetCheckSpec] = (),
    failed: AssetCheckResult | None = None,
) -> AssetsDefinition:
    """An asset that fails with the problems whenever it runs. Its other checks keep their last results."""

    @multi_asset(name=name, specs=specs, check_specs=check_specs, can_subset=True)
    def broken(context: AssetExecutionContext) -> Iterator[AssetCheckResult | AssetCheckEvaluation]:
        keys = context.selected_asset_check_keys
        if failed and any(key.name == failed.check_name for key in keys):
            yield failed
        yield from check_records.as_last_judged(context.instance, [key for key in keys if key.name != checks.CAN_RUN])
        if context.selected_asset_keys:  # not if only a check is executed
            raise Failure(text, allow_retries=False)

    return broken
