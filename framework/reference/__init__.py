"""The pages of docs/language, made of what the code itself says: options, docstrings, examples and tables of functions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from framework import types
from framework.errors import SpecError
from framework.reference import examples, expressions, options
from framework.spec import extensions, scalars
from framework.spec.kinds import KINDS, LATER_KINDS
from framework.spec.kinds.pipeline import EXPECT_EXAMPLE, LANGUAGE_STEPS
from framework.spec.scalars import Scalar
from framework.spec.shapes import RecordShape, record_shape, shape_of
from framework.spec.words import quoted

STEPS = "framework.steps"
INTRODUCTION = """\
# The language of specs

Specs are YAML files below `specs/`. A file holds one or more documents with `---` between them. The first key of a document is its
kind, and the value of that key its name. `sluice check` says what is wrong with them, `sluice plan` what they will do, and `sluice test`
runs the tests of the pipelines.

- `${var:NAME}` stands for the environment variable `SLUICE_VAR_NAME`, or else for that value of the [variables](variables.md);
  `${var:NAME:-5}` is `5` where there is neither. `${secret:NAME}` stands for a secret, see [secrets](secrets.md).
- `specs/environments/prod/` holds documents that replace those of the same kind and name with `--env prod`: every kind but topics and
  pipelines.
- Inside `[]` and `{}` put quotes around text with a comma or a bracket: `{price: "decimal(18,2)"}`.
- An editor completes and checks specs by [schema.json](schema.json): see the first lines of `specs/main.yaml`."""
STEPS_TEXT = """\
What stands under `steps:` of a [pipeline](pipeline.md), one key each, applied from the first to the last. A value that a step cannot
compute makes a bad row: the message is kept beside the table with the reason, and the others go on."""
OWN = "A step of your own is a Python file: [own-steps.md](own-steps.md)."
LATER = "Not in this version: {}."


def pages(own: bool = False) -> dict[str, str]:
    """Each page's name and text; with the steps of the project, too, if `own`."""
    steps = _steps(own)
    made = {f"{kind}.md": _kind_page(kind) for kind in KINDS}
    made |= {_step_file(name): _step_page(name, step) for name, step in steps.items()}
    return {"index.md": _index(steps), "expressions.md": expressions.page(), **made}


def _steps(own: bool) -> Mapping[str, extensions.Extension]:
    found = extensions.found(STEPS)
    if own and found.problems:
        raise SpecError(found.problems)
    return {name: step for name, step in found.extensions.items() if own or step.built_in}


def _step_file(name: str) -> str:
    return f"step-{name}.md"


def _index(steps: Mapping[str, extensions.Extension]) -> str:
    later = [name for name in LANGUAGE_STEPS if name not in steps]
    kinds = [f"| [{kind}]({kind}.md) | {_first(inspect.getdoc(inspect.getmodule(cls)) or '')} |" for kind, cls in KINDS.items()]
    listed = [f"| [{name}]({_step_file(name)}) | {_first(step.doc)}{_mark(step)} |" for name, step in steps.items()]
    return _joined(
        INTRODUCTION,
        "## Documents\n\n| kind | what it is |\n| --- | --- |\n" + "\n".join(kinds) + "\n\n" + LATER.format(quoted(LATER_KINDS)),
        f"## Steps\n\n{STEPS_TEXT}\n\n| step | what it does |\n| --- | --- |\n" + "\n".join(listed),
        f"{LATER.format(quoted(later))} {OWN}",
        "Conditions and computed values are SQL: [expressions.md](expressions.md) lists every operator and function.",
        "## Values\n\n| what | how it is written |\n| --- | --- |\n" + "\n".join(_values()),
    )


def _first(doc: str) -> str:
    """The first sentence."""
    return doc.replace("\n", " ").partition(". ")[0].rstrip(".") + "."


def _mark(step: extensions.Extension) -> str:
    return "" if step.built_in else " A step of this project."


def _values() -> Iterator[str]:
    for each in vars(scalars).values():
        said: Any = getattr(each, "__metadata__", (None,))[0]
        if isinstance(said, Scalar) and said.rule:
            yield f"| {said.noun} | {said.rule} |"
    yield f"| types of columns | {quoted(types.NAMES)}, `decimal(digits, places)`, {quoted(f'{name}<…>' for name in types.NESTED)} |"


def _kind_page(kind: str) -> str:
    cls = KINDS[kind]
    module: Any = inspect.getmodule(cls)
    example = f"```yaml\n{module.EXAMPLE.strip()}\n```"
    parts = [f"# {kind}", inspect.getdoc(module) or "", example, "## Options"]
    more = {"expect": examples.shown(EXPECT_EXAMPLE, "expect")} if kind == "pipeline" else {}
    return _joined(*parts, *options.tables(record_shape(cls), more))


def _step_page(name: str, step: extensions.Extension) -> str:
    shape = shape_of(step.written)
    told = options.tables(shape, {}) if isinstance(shape, RecordShape) else [f"`{name}` takes {options.takes(shape)}."]
    # An own step's module is no part of a package, from which it could be imported.
    example = step.resolve.__globals__.get("EXAMPLE", "")
    shown = ["## Example", examples.shown(example, "steps", name)] if example else []
    place = [] if step.built_in else [f"A step of this project: `{Path(step.file).name}`."]
    return _joined(f"# Step {name}", step.doc, *place, *told, *shown)


def _joined(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part) + "\n"
