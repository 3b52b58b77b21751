"""The pages of docs/language, generated from the code: options, docstrings, examples and tables of functions. One, `own-steps.md` next
to this file, is written by hand."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from framework.base import types
from framework.base.errors import SpecError
from framework.documents.pipeline.written import NOT_YET
from framework.documents.pipeline.written_expectation import EXPECT_EXAMPLE
from framework.language import extensions, scalars
from framework.language.kind import document_kinds, document_types, later_kinds
from framework.language.scalars import Scalar
from framework.language.shapes import BoundClass, RecordShape, record_shape, shape_of
from framework.language.words import in_quotes
from framework.operations.reference import examples, expressions, selects
from framework.operations.reference.options import table, tables, takes

INTRODUCTION = """\
# The language of specs

Specs are YAML files below `specs/`. A file holds one or more documents with `---` between them. The first key of a document is its
kind, and the value of that key its name. `sluice check` reports their errors, `sluice plan` shows what they will do, and `sluice test`
runs the tests of the pipelines.

- `${var:NAME}` stands for the environment variable `SLUICE_VAR_NAME`, or otherwise for the value in the [variables](variables.md);
  `${var:NAME:-5}` is `5` where there is neither. `${secret:NAME}` stands for a secret, see [secrets](secrets.md).
- `specs/environments/prod/` holds documents that replace those of the same kind and name with `--env prod`: every kind but
  {same_everywhere}.
- Inside `[]` and `{}` put quotes around text with a comma or a bracket: `{price: "decimal(18,2)"}`.
- An editor with YAML's language server (in VS Code the extension "YAML" of Red Hat) completes and checks specs by the JSON Schema that
  `sluice schema > specs/schema.json` writes, where each document begins with this line:

```yaml
# yaml-language-server: $schema=schema.json
```"""
STEPS_TEXT = """\
The items under `steps:` of a [pipeline](pipeline.md), one key each, applied from the first to the last. If a step cannot compute a
value, the message becomes a bad row: it is kept in the table of bad rows with the reason, and the other rows are loaded."""
OWN_PAGE = "own-steps.md"
OWN_STEPS = f"A step of your own is a Python file in `pipelines/steps/`, see [{OWN_PAGE}]({OWN_PAGE})."
LATER = "Not in this version: {}."


def pages() -> dict[str, str]:
    """The text of each page by its name."""
    files = extensions.extensions_of(extensions.STEPS)
    if files.problems:
        raise SpecError(files.problems)
    steps = files.extensions
    by_file = {f"{kind}.md": _kind_page(kind, cls) for kind, cls in document_types().items()}
    by_file |= {_step_file(name): _step_page(name, step) for name, step in steps.items()}
    own_steps = Path(__file__).with_name(OWN_PAGE).read_text(encoding="utf-8")
    return {
        "index.md": _index(steps),
        "expressions.md": expressions.page(),
        "selects.md": selects.page(),
        OWN_PAGE: own_steps,
        **by_file,
    }


def _step_file(name: str) -> str:
    return f"step-{name}.md"


def _index(steps: Mapping[str, extensions.Extension]) -> str:
    kinds = [
        (f"[{kind}]({kind}.md)", _first_sentence(inspect.getdoc(inspect.getmodule(cls)) or ""))
        for kind, cls in document_types().items()
    ]
    step_rows = [(f"[{name}]({_step_file(name)})", f"{_first_sentence(step.doc)}{_mark(step)}") for name, step in steps.items()]
    later_text = LATER.format(in_quotes(name for name in NOT_YET if name not in steps))
    same_everywhere = " and ".join(f"{name}s" for name, kind in document_kinds().items() if kind.same_everywhere)
    return _joined(
        INTRODUCTION.replace("{same_everywhere}", same_everywhere),
        f"## Documents\n\n{table(('kind', 'what it is'), kinds)}\n\n{LATER.format(in_quotes(later_kinds()))}",
        f"## Steps\n\n{STEPS_TEXT}\n\n{table(('step', 'what it does'), step_rows)}",
        f"{later_text} {OWN_STEPS}",
        "## Expressions\n\nConditions and computed values are SQL: [expressions.md](expressions.md) has every operator and function, and "
        "[selects.md](selects.md) says what a whole select over tables is made of.",
        f"## Values\n\n{table(('what', 'how it is written'), _values())}",
    )


def _first_sentence(doc: str) -> str:
    """The first sentence of a docstring."""
    return doc.replace("\n", " ").partition(". ")[0].rstrip(".") + "."


def _mark(step: extensions.Extension) -> str:
    return "" if step.built_in else " A step of this project."


def _values() -> Iterator[tuple[str, str]]:
    for value in vars(scalars).values():
        doc = next(iter(getattr(value, "__metadata__", ())), None)
        if isinstance(doc, Scalar) and doc.rule:
            yield doc.noun, doc.rule
    yield "the types there are", f"{in_quotes(types.NAMES)}, `decimal(18,2)`, {in_quotes(f'{name}<…>' for name in types.NESTED)}"


def _kind_page(kind: str, cls: BoundClass) -> str:
    module: Any = inspect.getmodule(cls)
    extra_texts = {"expect": f"An example:\n\n{examples.rendered(EXPECT_EXAMPLE, 'expect')}"} if kind == "pipeline" else {}
    example = f"```yaml\n{module.EXAMPLE.strip()}\n```"
    return _joined(f"# {kind}", module.__doc__, example, "## Options", *tables(record_shape(cls), extra_texts))


def _step_page(name: str, step: extensions.Extension) -> str:
    try:
        example = step.resolve.__globals__.get("EXAMPLE", "")  # a file of the project cannot be imported from a package
        example_text = examples.rendered(example, "steps") if example else ""
    except (Exception, SystemExit) as error:  # in a file of the project
        if step.built_in:
            raise
        raise SpecError([extensions.broken(error, step.file)]) from error
    shape = shape_of(step.written)
    options_text = tables(shape, {}) if isinstance(shape, RecordShape) else [f"`{name}` takes {takes(shape)}."]
    place = "" if step.built_in else f"A step of this project: `{Path(step.file).name}`."
    return _joined(f"# {name}", step.doc, place, example_text, "## Options", *options_text)


def _joined(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part) + "\n"
