"""A job that shows the rows of a pipeline's next messages; its launch page asks for the pipeline. The job writes nothing:
its result is an observation of the table."""

# Without `from __future__ import annotations`: Dagster reads the types of an op.
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dagster import (
    AssetObservation,
    Enum,
    EnumValue,
    Failure,
    Field,
    IntSource,
    JobDefinition,
    MetadataValue,
    OpExecutionContext,
    job,
    op,
)

from framework.base import hints
from framework.base.errors import SluiceError
from framework.host.assets import dead_runs
from framework.host.assets.translator import Assets
from framework.operations.trials import preview_text
from framework.operations.trials.preview import Preview, run_preview
from framework.plan import Pipeline, Plan

_DEFAULT_COUNT = 5
_MAX_COUNT = 100


def job_of(plan: Plan, assets: Assets, runnable: Sequence[Pipeline]) -> JobDefinition:
    pipelines = {pipeline.name: pipeline for pipeline in runnable}
    # Dagster keeps types by their names for as long as the process lives, so other pipelines need another name.
    digest = hashlib.sha256(json.dumps(sorted(pipelines)).encode()).hexdigest()[:8]
    names = Enum(
        f"pipeline_{digest}", [EnumValue(name, description=pipeline.doc or None) for name, pipeline in pipelines.items()]
    )
    choices = Enum("which", [EnumValue(choice) for choice in ("next", "earliest", "latest")])
    fields = {
        "pipeline": Field(names, description="Whose messages."),
        "messages": Field(IntSource, default_value=_DEFAULT_COUNT, description=f"How many, from 1 to {_MAX_COUNT}."),
        "which": Field(
            choices, default_value="next", description="Those that the next run would read, or the first or last ones."
        ),
    }

    # Capital letters: Dagster has one namespace for all names, and no pipeline's name has capitals.
    @op(name=assets.named("Show"), config_schema=fields)
    def show(context: OpExecutionContext) -> None:
        dead_runs.mark(context.instance, context.run_id)
        pipeline = pipelines[context.op_config["pipeline"]]
        try:
            preview = _preview(plan, pipeline, context.op_config)
        except SluiceError as error:
            raise Failure(hints.of_environment(str(error), plan.environment), allow_retries=False) from None
        text = preview_text.text(pipeline, preview)
        context.log.info(text)
        preview_metadata: dict[str, Any] = {"preview": MetadataValue.md(f"```\n{text}```"), "messages": len(preview.messages)}
        context.log_event(
            AssetObservation(assets.keys.table(pipeline), description=text.splitlines()[0], metadata=preview_metadata)
        )

    # The launchpad's first values. Without them Dagster would scaffold a value that the enum does not have.
    first_values = {"pipeline": next(iter(pipelines)), "messages": _DEFAULT_COUNT, "which": "next"}

    @job(
        name=assets.named("Preview"), description="Shows a pipeline's next messages after each step. Writes nothing.",
        config={"ops": {assets.named("Show"): {"config": first_values}}},
    )  # fmt: skip
    def preview_job() -> None:
        show()

    return preview_job


def _preview(plan: Plan, pipeline: Pipeline, options: Mapping[str, Any]) -> Preview:
    if not 1 <= options["messages"] <= _MAX_COUNT:
        raise SluiceError(
            "bad-number", f"`messages: {options['messages']}` is not between 1 and {_MAX_COUNT}", "choose fewer, or one at least"
        )
    return run_preview(plan, pipeline, options["messages"], options["which"])
