"""Names that a user's own steps imported from `framework` before `sluice.steps` had them.

The modules of `framework` are moved and renamed from version to version. So a step with such an import is refused before its code runs, and
the hint has the import that lasts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from framework.base.errors import Problem, Where
from framework.base.spelling import joined

PUBLIC = "sluice.steps"
# The names that moved, by the module that had them, or the package: `old=new` has another name now.
MOVED: Mapping[str, str] = {
    "framework.errors": "Problem Where",
    "framework.model": "Column ColumnSql Fault Memory=Remember State",
    "framework.plan.rows": "Resolved Rows",
    "framework.spec.options": "Bound=OptionGroup WrittenStep=StepDocument option",
    "framework.spec.scalars": "ColumnName Duration Expression",
    "framework.sql.expressions": "Checked",
    "framework.sql.quote": "column_path identifier literal",
    "framework.types": (
        "BIGINT BINARY BOOLEAN DATE DOUBLE FLOAT INT SMALLINT STRING TIMESTAMP TIMESTAMP_NTZ TINYINT "
        "Array Decimal Field Map Struct Type identifier"
    ),
}


@dataclass(frozen=True)
class _Use:
    """A name that moved: `old` is in the step's code, `new` is today's name, and `imported` is its part of the new import."""

    old: str
    new: str
    imported: str


def problems(source: bytes, file: str) -> Iterator[Problem]:
    """A problem for each import of names that moved. A source that cannot be read has none: loading it says why."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for module, uses in _uses_of_names(tree, node.module, node.names):
                yield _problem(Where(file, node.lineno, node.col_offset + 1), module, uses)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                uses = _uses_of_module(tree, alias.name, alias.asname or alias.name)
                if uses:
                    yield _problem(Where(file, node.lineno, node.col_offset + 1), alias.name, uses)


def names_of(module: str) -> Mapping[str, str]:
    """The names that moved out of a module, each with its new name."""
    package = next((name for name in MOVED if f"{module}.".startswith(f"{name}.")), "")
    return {old: new or old for old, _, new in (name.partition("=") for name in MOVED.get(package, "").split())}


def _uses_of_names(tree: ast.AST, module: str, aliases: list[ast.alias]) -> Iterator[tuple[str, list[_Use]]]:
    """The uses of a statement `from … import …`, by the module. It can import modules, too."""
    names = names_of(module)
    uses = []
    for alias in aliases:
        if alias.name == "*":
            used_names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & set(names))
            uses += [_Use(name, names[name], names[name]) for name in used_names]
        elif alias.name in names:
            new = names[alias.name]
            uses.append(_Use(alias.name, new, f"{new} as {alias.asname}") if alias.asname else _Use(alias.name, new, new))
        elif module_uses := _uses_of_module(tree, f"{module}.{alias.name}", alias.asname or alias.name):
            yield f"{module}.{alias.name}", module_uses
    if uses:
        yield module, uses


def _uses_of_module(tree: ast.AST, module: str, local: str) -> list[_Use]:
    """The names that the code takes from a module, which it knows under the name `local`."""
    names = names_of(module)
    if not names:
        return []
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in names)
    used_names = sorted({node.attr for node in attributes if ast.unparse(node.value) == local})
    return [_Use(f"{local}.{name}", names[name], names[name]) for name in used_names]


def _problem(where: Where, module: str, uses: list[_Use]) -> Problem:
    renamings = [f"`{use.new}` instead of `{use.old}`" for use in uses if use.new != use.old and " as " not in use.imported]
    hint = f"write `from {PUBLIC} import {', '.join(use.imported for use in uses)}`"
    message = f"{joined([f'`{use.old}`' for use in uses])} moved from `{module}` to `{PUBLIC}`"
    return Problem(where, "moved-import", message, f"{hint}, and {joined(renamings)}" if renamings else hint)
