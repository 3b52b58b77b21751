"""A page of the docs for each target of `sluice access`: the script for a table of the shipped specs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import ModuleType

from framework.base import hints
from framework.base.errors import SluiceError
from framework.operations.access import script
from framework.operations.access.about import AccessSubject, TopicSubject, access_command
from framework.operations.access.steps import PARTS, ScriptStep
from framework.plan import Plan

TABLE, TOPIC = "flagged_stock_trades", "sensor_data"


def page(target: str, file: ModuleType, plans: Mapping[str, Plan]) -> str:
    """The page of a target, from the first of these environments in which the target finds the table."""
    name = TOPIC if file.OF == "topic" else TABLE
    refusals: list[str] = []
    for environment, plan in plans.items():
        try:
            warnings, steps = script.script(file, _about(file, plan, name))
        except SluiceError as error:
            refusals.append(f"- `--env {environment}`: {error.message}; {error.hint}")
            continue
        warning_lines = [f"- {warning.says}" for warning in warnings]
        command = access_command(target, name, hints.options(environment))
        return "\n".join(_lines(target, script.says(file), command, warning_lines, refusals, steps)) + "\n"
    raise ValueError(f"{target} finds {name} nowhere")


def _about(file: ModuleType, plan: Plan, name: str) -> AccessSubject | TopicSubject:
    if file.OF == "topic":
        return TopicSubject(plan, next(topic for topic in plan.topics if topic.name == name))
    pipeline = plan.pipeline(name)
    assert pipeline is not None
    return AccessSubject(plan, pipeline, flags=hints.options(plan.environment))


def _lines(
    target: str, summary: str, command: str, warnings: Sequence[str], refusals: Sequence[str], steps: Sequence[ScriptStep]
) -> Iterator[str]:
    yield from (f"# {target}", "", summary, "", "```console", f"$ {command}", "```")
    yield "prints what follows, for the shipped specs. Text in `<…>` is yours to fill in; Sluice runs none of it."
    if warnings:
        yield from ("", "## First", *warnings)
    for part in PARTS:
        part_steps = [step for step in steps if step.part == part]
        if not part_steps:
            continue
        yield from ("", f"## {part.capitalize()}")
        if part == "cleanup":
            yield f"`{command} --part cleanup` prints it."
        for system, system_steps in groupby(part_steps, lambda step: step.system):
            yield from ("", f"{system.name}:", f"```{system.language}")
            for number, step in enumerate(system_steps):
                yield from ([""] if number else [])
                yield from (f"{system.comment} {step.why}", step.run)
            yield "```"
    if refusals:
        yield from ("", "## Where it is refused", *refusals)


def index(files: Mapping[str, ModuleType]) -> str:
    rows = [f"| [{target}]({target}.md) | {script.says(file).rstrip('.')} |" for target, file in files.items()]
    head = (
        "# Use a table elsewhere",
        "",
        "`sluice access TARGET NAME` prints what to run in another system: complete, in order, with a reason for each step, and with",
        "`--part cleanup` what takes it back: what other tables may use, too, stands there as a comment.",
        "Nothing is run, and nothing is asked of the other system.",
        "",
        "What is granted is for one table, without its bad rows, which hold whole messages: `aws-policy NAME --bad-rows` prints a policy",
        "for these, and `aws-policy --catalog CATALOG` policies for all tables of a catalog.",
        "",
        "Files that a script writes, such as a private key for Snowflake, are below `.sluice/access`, and their user alone can read them.",
        "",
        "DuckDB, PyIceberg, Spark, Trino 476, the policies of AWS and the rights in Kafka are run by Sluice's tests. Snowflake, Athena,",
        "Databricks and a registry with rights could not be tried: what is printed for them follows their documentation, and the syntax of",
        "their SQL is checked.",
        "",
        "| target | what for |",
        "| --- | --- |",
    )
    return "\n".join([*head, *rows, "", *_ORDER]) + "\n"


_ORDER = (
    "## In which order",
    "A script that needs another one says so where it needs it. From the beginning:",
    "",
    "1. Rights for Sluice itself: `kafka-acls`, `registry`, of `aws-policy --catalog CATALOG` the parts for ingest and maintain, or",
    "   `open-catalog`.",
    "   `sluice doctor --env ENV` then says whether any is missing.",
    "2. `sluice run`: a table has to be there before others can find it.",
    "3. The reader. `snowflake` calls `aws-policy` and `aws-trust` in its middle, as Snowflake tells only then whom AWS has to trust;",
    "   `snowflake-interactive` comes behind it. `athena` needs two policies of `aws-policy`. `databricks` makes its own role.",
    "   `duckdb`, `spark`, `pyiceberg` and `trino` need no other script: with `type: rest` the login of a reader, which `open-catalog`",
    "   makes, and with `type: sql` a `sluice serve` that runs.",
    "4. To take it back, `--part cleanup` of the same scripts, the last first.",
)
