"""What is said when a document does not fit its options."""

from __future__ import annotations

import re
from collections.abc import Iterator

from framework.errors import Problem
from framework.spec.failure import Failure, line_of, not_in_this_version
from framework.spec.hints import LONGEST, type_hint, wrapped
from framework.spec.keys import missing_keys, unknown_keys, wrong_count
from framework.spec.shapes import EnumShape, FilesShape, ListShape, MapShape, RecordShape, ScalarShape, UnionShape
from framework.spec.words import alternatives, describe, in_quotes, written
from framework.spelling import closest


def problems_of(failure: Failure) -> Iterator[Problem]:
    node, shape = failure.node, failure.shape
    if node.unknown or (node.secret is not None and not isinstance(shape, ListShape | MapShape | RecordShape | FilesShape)):
        return
    if node.is_null and failure.keyword in ("type", "enum", "anyOf"):
        yield _missing_value(failure)
    elif failure.keyword == "additionalProperties":
        yield from unknown_keys(failure)
    elif failure.keyword in ("required", "minProperties") and not node.whole:
        return
    elif failure.keyword == "required":
        yield from missing_keys(failure)
    elif failure.keyword in ("minItems", "maxItems", "minProperties", "maxProperties"):
        yield from wrong_count(failure)
    elif failure.keyword in ("minimum", "maximum"):
        yield out_of_range(failure)
    elif failure.keyword == "pattern":
        assert isinstance(shape, ScalarShape)
        yield bad_text(failure, shape)
    elif (
        node.kind == "scalar"
        and isinstance(shape, EnumShape | UnionShape)
        and any(each.form == "scalar" for each in alternatives(shape))
    ):
        yield _unknown_value(failure)
    else:
        yield failure.problem("wrong-type", _must_be(failure), type_hint(failure))


def _must_be(failure: Failure) -> str:
    node = failure.node
    found = {"list": "a list", "map": "a map", "scalar": failure.said}[node.kind]
    return f"{failure.label} must be {describe(failure.shape)}, and is {found}"


def _missing_value(failure: Failure) -> Problem:
    if failure.path and isinstance(failure.path[-1], int):
        return failure.problem("missing-value", f"{failure.label} is empty", "write something after the `-`, or remove it")
    return failure.problem("missing-value", f"{failure.label} has no value", f"write {line_of(failure)}")


def out_of_range(failure: Failure) -> Problem:
    least, most = failure.option.at_least, failure.option.at_most
    bounds = f"at least {least}" if most is None else f"at most {most}" if least is None else f"from {least} to {most}"
    return failure.problem(
        "out-of-range", f"{failure.label} must be {bounds}, and is {failure.said}", f"write {line_of(failure)}"
    )


def bad_text(failure: Failure, shape: ScalarShape) -> Problem:
    scalar = shape.scalar
    fixed = scalar.suggest(failure.node.text) if scalar.suggest and len(failure.node.text) <= LONGEST else ""
    hint = f"write {scalar.rule or scalar.example}"
    if fixed and fixed != failure.node.text and re.search(scalar.pattern, fixed):
        hint = f"write `{fixed}`: {scalar.rule}"
    if not failure.node.text.strip():
        return failure.problem(scalar.code, f"{failure.label} is empty", hint)
    subject = (
        f"{failure.said} in {failure.label}"
        if failure.is_key or not failure.path
        else f"{failure.label} is {failure.said}, which"
    )
    return failure.problem(scalar.code, f"{subject} is not {scalar.noun}", hint)


def _unknown_value(failure: Failure) -> Problem:
    node, text = failure.node, failure.node.text
    choices = alternatives(failure.shape)
    allowed = [written(value) for each in choices if isinstance(each, EnumShape) for value in each.values]
    if text in failure.option.later:
        hint = f"this version has: {in_quotes(allowed)}"
        return not_in_this_version(node, f"`{failure.key}: {text}`" if failure.key else f"`{text}`", hint)
    texts = [each.scalar for each in choices if isinstance(each, ScalarShape)]
    meant = closest(text, [*allowed, *failure.option.later])
    if meant:
        hint = f"did you mean `{meant}`?"
    elif texts:
        hint = f"write {in_quotes(allowed)} or {texts[0].rule or texts[0].example}"
    else:
        such = "one of them, such as " if len(allowed) > 1 else ""
        hint = f"write {wrapped(failure) or such + line_of(failure)}"
    return failure.problem(texts[0].code if texts else "unknown-value", _must_be(failure), hint)
