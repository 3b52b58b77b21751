"""Sluice in a Dagster project of your own. All names without `_` are public.

>>> from sluice.dagster import build_sluice_definitions
>>> defs = build_sluice_definitions("specs")
"""

# Without `from __future__ import annotations`: Dagster reads the types of a component's and a resource's attributes.
import re
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from dagster import AssetSpec, ConfigurableResource, Definitions
from dagster.components import (
    Component,
    ComponentLoadContext,
    Model,
    Resolvable,
    Scaffolder,
    ScaffoldRequest,
    scaffold_component,
    scaffold_with,
)
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver
from pydantic import Field

import sluice
from framework.base.errors import Problem, SluiceError as SluiceError, SpecError as SpecError
from framework.base.home import environment_of
from framework.host.assets import build_sluice_definitions as build_sluice_definitions
from framework.host.assets.default_status import DefaultStatus as DefaultStatus
from framework.host.assets.incidents import DagsterIncident as DagsterIncident
from framework.host.assets.loading import Strict as Strict
from framework.host.assets.project_alerts import build_sluice_alert_sensor as build_sluice_alert_sensor
from framework.host.assets.spark_resource import SluiceSparkResource as SluiceSparkResource
from framework.host.assets.translator import SluiceAsset as SluiceAsset, SluiceTranslator as SluiceTranslator

_Translation: TypeAlias = Annotated[
    TranslationFn[SluiceAsset], TranslationFnResolver[SluiceAsset](lambda asset: {"asset": asset})
]


class SluiceResource(ConfigurableResource[Any]):
    """The functions of `sluice`, for assets, sensors and ops of your own."""

    specs: str = Field(default="specs", description="The folder with the specs.")
    env: str | None = Field(
        default=None, description="The environment, a folder of `environments`; without it SLUICE_ENV, or `local`."
    )

    def check(self) -> tuple[Problem, ...]:
        return sluice.check(self.specs, self._env)

    def plan(self, look: bool = True) -> tuple[sluice.Planned, ...]:
        return sluice.plan(self.specs, self._env, look)

    def run(self, name: str) -> sluice.Run:
        return sluice.run(name, self.specs, self._env)

    @property
    def _env(self) -> str:
        return environment_of(self.env)


class _FirstSpecs(Scaffolder):
    """Writes what `sluice init` writes: specs beside `defs.yaml`, and the line that keeps Sluice's state out of git."""

    def scaffold(self, request: ScaffoldRequest) -> None:
        from framework.operations.init import files, project

        files.put(request.target_path, project.first_specs())
        files.ignore(request.project_root or request.target_path)
        scaffold_component(request, {"specs": "specs"})


@scaffold_with(_FirstSpecs)
class SluiceComponent(Component, Model, Resolvable):
    """Kafka topics become Apache Iceberg tables, as the specs of a folder say. Derive from it and override `get_asset_spec` to choose
    keys, groups, tags, owners and automation in Python; `translation` chooses them in `defs.yaml`."""

    specs: str = Field(default="specs", description="The folder with the specs, from the folder of this component.")
    env: str | None = Field(
        default=None, description="The environment, a folder of `environments`; without it SLUICE_ENV, or `local`."
    )
    select: Sequence[str] = Field(default=(), description="Names of pipelines or of their tables, in place of all.")
    translation: _Translation | None = Field(
        default=None, description="Attributes of the assets; `{{ asset }}` is what becomes one, `{{ spec }}` what it would be."
    )
    sensors: bool = Field(default=True, description="Whether Sluice's sensors and schedules come with the assets.")
    default_status: DefaultStatus = Field(
        default="stopped",
        description="Whether sensors and schedules are `running` from the first load on, or `stopped` until somebody turns them on.",
    )
    strict: Strict = Field(
        default="auto",
        description="Whether specs with problems end the load; otherwise they are assets that show them. "
        "`auto`: they end a command, and a server shows them.",
    )
    name: str | None = Field(
        default=None,
        description="What names of steps, jobs and sensors begin with; without it this component's folder or file below `defs`.",
    )

    def get_asset_spec(self, asset: SluiceAsset) -> AssetSpec:
        if self.translation is None:
            return asset.spec
        spec, spec_keys = self.translation(asset.spec, asset), {dep.asset_key for dep in asset.spec.deps}
        # `translation: {deps: […]}` replaces the dependencies, and no template can name those of the spec.
        return spec.replace_attributes(deps=[*asset.spec.deps, *(dep for dep in spec.deps if dep.asset_key not in spec_keys)])

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        return build_sluice_definitions(
            (context.path.parent if context.path.is_file() else context.path) / self.specs,
            env=self.env,
            select=self.select,
            translator=_OfComponent(self),
            sensors=self.sensors,
            default_status=self.default_status,
            strict=self.strict,
            name=_name(context) if self.name is None else self.name,
        )


def _name(context: ComponentLoadContext) -> str:
    """The component's folder or file, from the folder of all definitions; one that is not the first there has its number or name."""
    place, key = context.path.relative_to(context.defs_module_path), context.component_path.instance_key
    place = place.with_suffix("") if context.path.is_file() else place
    return re.sub(r"[^A-Za-z0-9]", "_", "_".join([*place.parts, *([str(key)] if key else [])]))


class _OfComponent(SluiceTranslator):
    def __init__(self, component: SluiceComponent) -> None:
        self._component = component

    def get_asset_spec(self, asset: SluiceAsset) -> AssetSpec:
        return self._component.get_asset_spec(asset)
