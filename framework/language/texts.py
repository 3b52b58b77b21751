"""Read a scalar's text as a value, or report its problem."""

from __future__ import annotations

import os
import re
import typing
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from framework.base.errors import Problem
from framework.language.failure import Misfit
from framework.language.messages import bad_text, out_of_range, wrong_type
from framework.language.node import YamlNode
from framework.language.scalars import BOOL, NUMBER, WHOLE, Location
from framework.language.shapes import ScalarShape
from framework.language.syntax import SECRET_NAME, SECRET_TEXT
from framework.plan.secret import SecretRef

_LOCATION = typing.get_args(Location)[1]
_SCHEME = r"[a-z][a-z0-9+.-]+:"
_FILE = rf"^file:(//)?|^{_SCHEME}///"  # before a path; without a host, as `x:///a.db`, the path is one of this machine


def read_scalar(shape: ScalarShape, failure: Misfit, root: Path, refuse: Callable[[Iterator[Problem]], Any]) -> Any:
    """The value of `failure.node`. Problems go to `refuse`. No path may lead out of `root`, the project's folder."""
    node, option = failure.node, failure.option
    if node.secret is not None:
        return SecretRef(node.secret) if shape.secret != "no" else refuse(refused_secret(failure))
    secrets = literal_secret(failure) if shape.secret == "must" or _looks_secret(failure) else ()
    unfit = () if fits(shape, node) else bad_text(failure) if shape.scalar.pattern else wrong_type(failure)
    if secrets or unfit:
        return refuse(chain(secrets, unfit))
    try:
        value = int(node.text) if shape.scalar is NUMBER and node.is_whole else shape.scalar.read(node.text)
    except ValueError:
        return refuse(bad_text(failure))
    minimum, maximum = _bound(shape, option.at_least), _bound(shape, option.at_most)
    if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        return refuse(out_of_range(failure))
    if shape.scalar is _LOCATION and (_leaves(node.text, root) or ".." in node.text.split("/")):
        return refuse(_misplaced(failure, root))
    return value


def fits(shape: ScalarShape, node: YamlNode) -> bool:
    """Whether the text has the form of the shape's values."""
    if shape.scalar is WHOLE:
        return node.is_whole
    if shape.scalar is NUMBER:
        return node.is_number
    if shape.scalar is BOOL:
        return node.is_bool
    return re.search(shape.scalar.pattern, node.text) is not None


def _bound(shape: ScalarShape, written: float | str | None) -> Any:
    return shape.scalar.read(written) if isinstance(written, str) else written


def _misplaced(failure: Misfit, root: Path) -> Iterator[Problem]:
    """A problem with a path that leads out of the project, or that hides where it leads."""
    if _leaves(failure.node.text, root):
        message, hint = "is outside the project", "write a path below the project's folder, such as `.sluice/…`"
        yield failure.problem("path-leaves-project", f"{failure.label} is {failure.value_text()}, which {message}", hint)
    else:
        message, hint = "goes up by `..`", "write the path without `..`"
        yield failure.problem("path-goes-up", f"{failure.label} is {failure.value_text()}, which {message}", hint)


def _leaves(text: str, root: Path) -> bool:
    if re.match(_SCHEME, text) and not re.match(_FILE, text):
        return False
    path = re.sub(_FILE, "", text).split("?")[0]
    folder = os.path.normpath(root)
    return os.path.commonpath([folder, os.path.normpath(os.path.join(folder, path))]) != folder


def _looks_secret(failure: Misfit) -> bool:
    path = failure.path
    has_secret_name = len(path) > 1 and path[-2] in ("conf", "values") and SECRET_NAME.search(str(path[-1]))
    return bool(has_secret_name or SECRET_TEXT.search(failure.node.text))


def literal_secret(failure: Misfit) -> Iterator[Problem]:
    """A problem with a secret that is written out in a spec."""
    key = str(failure.path[-1]) if failure.path else ""
    subject = f"`{key}`" if key else "this"
    message = f"{subject} contains a secret as plain text"
    hint = "keep the secret in the secret store; an option that takes a secret refers to it as `${secret:NAME}`"
    if isinstance(failure.shape, ScalarShape) and failure.shape.secret != "no":
        message = f"{subject} must be a reference to a secret"
        hint = f'put the value into the secret store and write `"${{secret:{re.sub(r"[^A-Za-z0-9_]+", "_", key) or "name"}}}"`'
    yield failure.problem("literal-secret", message, hint)


def refused_secret(failure: Misfit) -> Iterator[Problem]:
    message = f"{f'`{failure.key}`' if failure.key else 'this'} is shown in plans and logs, so it cannot be a secret"
    yield failure.problem("secret-not-allowed", message, "use `${var:…}` for a value that is not secret")
