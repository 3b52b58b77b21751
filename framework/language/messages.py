"""The problems of a document that does not fit its options. Each is a generator, so that unread problems cost nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from framework.base.errors import Problem
from framework.base.spelling import closest
from framework.language.failure import Misfit, line_of, not_in_this_version
from framework.language.hints import LONGEST, type_hint, wrapped
from framework.language.shapes import EnumShape, ScalarShape
from framework.language.words import alternatives, describe, in_quotes, written


def wrong_type(failure: Misfit) -> Iterator[Problem]:
    yield failure.problem("wrong-type", _must_be(failure, with_quotes=True), type_hint(failure))


def _must_be(failure: Misfit, with_quotes: bool = False) -> str:
    actual_value = {"list": "a list", "map": "a map", "scalar": failure.value_text(with_quotes)}[failure.node.kind]
    return f"{failure.label} must be {describe(failure.shape)}, and is {actual_value}"


def missing_value(failure: Misfit) -> Iterator[Problem]:
    if failure.path and isinstance(failure.path[-1], int):
        yield failure.problem("missing-value", f"{failure.label} is empty", "write a value in its place, or remove it")
    else:
        yield failure.problem("missing-value", f"{failure.label} has no value", f"write {line_of(failure)}")


def out_of_range(failure: Misfit) -> Iterator[Problem]:
    minimum, maximum = failure.option.at_least, failure.option.at_most
    bounds = (
        f"at least {minimum}" if maximum is None else f"at most {maximum}" if minimum is None else f"from {minimum} to {maximum}"
    )
    yield failure.problem(
        "out-of-range", f"{failure.label} must be {bounds}, and is {failure.value_text()}", f"write {line_of(failure)}"
    )


def bad_text(failure: Misfit) -> Iterator[Problem]:
    shape = failure.shape
    assert isinstance(shape, ScalarShape)
    scalar = shape.scalar
    suggestion = scalar.suggest(failure.node.text) if scalar.suggest and len(failure.node.text) <= LONGEST else ""
    hint = f"write {scalar.rule or scalar.example}"
    if suggestion and suggestion != failure.node.text and re.search(scalar.pattern, suggestion):
        is_read = failure.key == "column" or (failure.path and isinstance(failure.path[-1], int))
        extra_hint = scalar.also(failure.node.text) if scalar.also and is_read and not failure.is_key else ""
        hint = f"write `{suggestion}`: {scalar.rule}{extra_hint}"
    message = f"{failure.label} is {failure.value_text()}, which is not {scalar.noun}"
    if not failure.node.text.strip():
        message = f"{failure.label} is empty"
    elif failure.is_key:
        message = f"{failure.value_text()} in {failure.label} is not {scalar.noun}"
    yield failure.problem(scalar.code, message, hint)


def unknown_value(failure: Misfit) -> Iterator[Problem]:
    node, text = failure.node, failure.node.text
    choices = alternatives(failure.shape)
    allowed_texts = [written(value) for choice in choices if isinstance(choice, EnumShape) for value in choice.values]
    if text in failure.option.later:
        hint = f"this version has: {in_quotes(allowed_texts)}"
        yield not_in_this_version(node, f"`{failure.key}: {text}`" if failure.key else f"`{text}`", hint)
        return
    scalars = [choice.scalar for choice in choices if isinstance(choice, ScalarShape)]
    suggestion = closest(text, [*allowed_texts, *failure.option.later])
    if suggestion:
        hint = f"did you mean `{suggestion}`?"
    elif scalars:
        hint = f"write {in_quotes(allowed_texts)} or {scalars[0].rule or scalars[0].example}"
    else:
        prefix = "one of them, such as " if len(allowed_texts) > 1 else ""
        hint = f"write {wrapped(failure) or prefix + line_of(failure)}"
    yield failure.problem(scalars[0].code if scalars else "unknown-value", _must_be(failure), hint)
