"""Nodes to values. What the schema has refused already is passed over here in silence."""

from __future__ import annotations

import dataclasses
import os
import re
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from framework.errors import Problem
from framework.model.secret import SecretRef
from framework.spec.failure import Failure
from framework.spec.keys import could_mean
from framework.spec.messages import bad_text, out_of_range
from framework.spec.node import Node
from framework.spec.options import Bound, Option, WrittenStep
from framework.spec.scalars import BOOL, NUMBER, WHOLE, Location
from framework.spec.shapes import (
    NO_OPTION,
    AnyShape,
    BoundClass,
    EnumShape,
    FilesShape,
    ListShape,
    MapShape,
    RecordShape,
    ScalarShape,
    Shape,
    Slot,
    UnionShape,
    item_option,
    record_shape,
)
from framework.spec.syntax import SECRET_NAME, SECRET_TEXT
from framework.spec.words import written

FAILED: Any = object()
_LOCATION = typing.get_args(Location)[1]
_FILE_SCHEMES = ("file:", "sqlite:")


def bind(cls: BoundClass, node: Node, root: Path, problems: list[Problem], passed_over: list[Node] | None = None) -> Any:
    """A document as the dataclass of its kind, or FAILED. In `passed_over` is what is wrong in a document that has not failed."""
    return _Binder(root, problems, [] if passed_over is None else passed_over).record(record_shape(cls), node, [])


def bind_part(shape: Shape, option: Option, node: Node) -> Any:
    """The value of one option, or FAILED. No path leaves the project here."""
    return _Binder(Path("/"), [], []).value(shape, option, node, [])


@dataclass(frozen=True)
class _Binder:
    root: Path  # the project's folder, which paths must not leave
    problems: list[Problem]
    passed_over: list[Node]

    def value(self, shape: Shape, option: Option, node: Node, path: list[str | int]) -> Any:
        if node.unknown:
            return FAILED
        if isinstance(shape, UnionShape):
            shape = self.alternative(shape, node)
        if isinstance(shape, AnyShape):
            return self.anything(node, path)
        if isinstance(shape, ScalarShape):
            return self.scalar(shape, option, node, path)
        if isinstance(shape, EnumShape):
            return self.enum(shape, node, path)
        if isinstance(shape, RecordShape):
            return self.record(shape, node, path)
        if isinstance(shape, ListShape) and node.kind == "list":
            items = [self.value(shape.item, item_option(option), item, [*path, index]) for index, item in enumerate(node.items)]
            fits = len(items) == shape.length if shape.length is not None else len(items) >= _least(option)
            return FAILED if _failed(items) or not fits else items if shape.as_list else tuple(items)
        if isinstance(shape, MapShape) and node.kind == "map":
            return self.map(shape, option, node, path)
        if isinstance(shape, FilesShape) and node.kind == "map" and len(node.entries) == 1:
            return self.step(shape, node, path)
        return FAILED

    def alternative(self, shape: UnionShape, node: Node) -> Shape:
        fitting = shape.fitting(node)
        enums: list[Shape] = [each for each in fitting if isinstance(each, EnumShape) and node.text in map(written, each.values)]
        return (enums or [each for each in fitting if not isinstance(each, EnumShape)] or fitting or [Shape()])[0]

    def record(self, shape: RecordShape, node: Node, path: list[str | int]) -> Any:
        if node.kind != "map":
            slot = shape.slots[shape.cls.short] if shape.cls.short else None
            value = self.value(slot.shape, slot.option, node, path) if slot else FAILED
            return FAILED if slot is None or value is FAILED else self.judged(shape.cls(**{slot.field: value}, node=node))
        given = {key.text: value for key, value in node.entries}
        values = {slot.field: self.slot(slot, given.get(name), path, name) for name, slot in shape.slots.items()}
        failed = {name for name, slot in shape.slots.items() if values[slot.field] is FAILED}
        # An unknown key that stands for no option that is missing takes nothing away: the rest is still looked at.
        unknown = [name for name in given if name not in shape.slots and name not in shape.later]
        missing = {meant for name in unknown for meant in could_mean(name, shape.slots, shape.later) if meant not in given}
        if not node.whole:
            missing |= shape.slots.keys() - given.keys()
        # An option that no other depends on has its default where it is wrong: that has been said, and the rest is still looked at.
        needed = {name for name in failed | missing if name not in shape.later and not _stands_alone(shape.slots[name])}
        only = len(given) - len(unknown) == 1 if shape.cls.exactly_one else True
        if not only or (needed and not shape.cls.partly):
            return FAILED
        values |= {shape.slots[name].field: self.part(shape.slots[name], given.get(name), path) for name in failed | needed}
        if _failed(values.values()):
            return FAILED
        if failed or not all(name in shape.slots and (not shape.cls.exactly_one or not given[name].is_null) for name in given):
            self.passed_over.append(node)
        gaps = frozenset(failed | (missing & shape.slots.keys()))
        bound = shape.cls(**{field: value for field, value in values.items() if value is not _ABSENT}, node=node, gaps=gaps)
        bound = _with_places(bound, [field for field, value in values.items() if value is _ABSENT])
        return bound if gaps and not shape.cls.partly else self.judged(bound)

    def part(self, slot: Slot, node: Node | None, path: list[str | int]) -> Any:
        """What could be read of an option's list or map; of another option its default, or None. Without a name there is nothing."""
        if slot.required and slot.field == "name":
            return FAILED
        if isinstance(slot.shape, ListShape):
            items = [self.value(slot.shape.item, item_option(slot.option), item, path) for item in (node.items if node else ())]
            if isinstance(slot.shape.item, RecordShape | FilesShape):  # each knows its own place
                return tuple(item for item in items if item is not FAILED)
            return tuple(takewhile(lambda item: item is not FAILED, items))
        if isinstance(slot.shape, MapShape):
            entries = node.entries if node else ()
            values = {key.text: self.value(slot.shape.value, NO_OPTION, value, path) for key, value in entries}
            return {name: value for name, value in values.items() if value is not FAILED}
        return None if slot.required else _ABSENT

    def judged(self, bound: Bound) -> Any:
        found = list(bound.problems())
        self.problems.extend(found)
        return FAILED if found and not bound.partly else bound

    def slot(self, slot: Slot, node: Node | None, path: list[str | int], name: str) -> Any:
        if node is None or (node.is_null and not node.unknown and not isinstance(slot.shape, AnyShape)):
            return FAILED if slot.required else _ABSENT
        return self.value(slot.shape, slot.option, node, [*path, name])

    def map(self, shape: MapShape, option: Option, node: Node, path: list[str | int]) -> Any:
        keys = [re.search(shape.key.scalar.pattern, key.text) for key, _ in node.entries]
        values = {key.text: self.value(shape.value, NO_OPTION, value, [*path, key.text]) for key, value in node.entries}
        fits = node.whole and None not in keys and len(values) >= _least(option)
        return FAILED if _failed(values.values()) or not fits else values

    def step(self, shape: FilesShape, node: Node, path: list[str | int]) -> Any:
        key, inner = node.entries[0]
        slot = shape.slots().get(key.text)
        value = FAILED if slot is None else self.slot(slot, inner, path, key.text)
        return FAILED if value is FAILED else WrittenStep(key.text, value, node)

    def anything(self, node: Node, path: list[str | int]) -> Any:
        if node.secret is not None:
            return self.refuse_secret(node, path)
        if SECRET_TEXT.search(node.text):
            return self.refuse_literal(node, path, False)
        parts = [*node.items, *(value for _, value in node.entries)]
        failed = _failed([self.anything(part, path) for part in parts])
        return FAILED if failed or node.unknown or not node.whole else node

    def enum(self, shape: EnumShape, node: Node, path: list[str | int]) -> Any:
        if node.secret is not None:
            return self.refuse_secret(node, path)
        return next((value for value in shape.values if node.kind == "scalar" and written(value) == node.text), FAILED)

    def scalar(self, shape: ScalarShape, option: Option, node: Node, path: list[str | int]) -> Any:
        if node.kind != "scalar" or node.is_null:
            return FAILED
        if node.secret is not None:
            return SecretRef(node.secret) if shape.secret != "no" else self.refuse_secret(node, path)
        if shape.secret == "must" or self.looks_secret(node, path):
            return self.refuse_literal(node, path, shape.secret != "no")
        if not _fits(shape, node):
            return FAILED
        return self.read(shape, option, node, path)

    def read(self, shape: ScalarShape, option: Option, node: Node, path: list[str | int]) -> Any:
        try:
            value = int(node.text) if shape.scalar is NUMBER and node.is_whole else shape.scalar.read(node.text)
        except ValueError:
            self.problems.append(
                bad_text(Failure(keyword="", node=node, shape=shape, option=option, path=path, is_key=False), shape)
            )
            return FAILED
        least, most = _bound(shape, option.at_least), _bound(shape, option.at_most)
        if (least is not None and value < least) or (most is not None and value > most):
            if isinstance(option.at_least, str) or isinstance(option.at_most, str):  # numbers: the schema has said so
                self.problems.append(
                    out_of_range(Failure(keyword="", node=node, shape=shape, option=option, path=path, is_key=False))
                )
            return FAILED
        if shape.scalar is _LOCATION and (
            wrong := self.misplaced(Failure(keyword="", node=node, shape=shape, option=option, path=path, is_key=False))
        ):
            self.problems.append(wrong)
            return FAILED
        return value

    def misplaced(self, failure: Failure) -> Problem | None:
        """Where a path leads that is none of this project's, or hides where it leads."""
        text = failure.node.text
        if self.leaves(text):
            hint = "write a path below the project's folder, such as `.sluice/…`"
            return failure.problem(
                "path-leaves-project", f"{failure.label} is {failure.said}, which is outside the project", hint
            )
        if ".." in text.split("/"):
            hint = "write where it leads, without `..`"
            return failure.problem("path-goes-up", f"{failure.label} is {failure.said}, which goes up by `..`", hint)
        return None

    def leaves(self, text: str) -> bool:
        if re.match(r"[a-z][a-z0-9+.-]+:", text) and not text.startswith(_FILE_SCHEMES):
            return False
        path = re.sub(r"^file:(//)?|^sqlite:(///)?", "", text).split("?")[0]
        root = os.path.normpath(self.root)
        return os.path.commonpath([root, os.path.normpath(os.path.join(root, path))]) != root

    def looks_secret(self, node: Node, path: list[str | int]) -> bool:
        named = len(path) > 1 and path[-2] in ("conf", "values") and SECRET_NAME.search(str(path[-1]))
        return bool(named or SECRET_TEXT.search(node.text))

    def refuse_literal(self, node: Node, path: list[str | int], capable: bool) -> Any:
        name = re.sub(r"[^A-Za-z0-9_]+", "_", str(path[-1])) if path else "name"
        where = f"`{path[-1]}`" if path else "this"
        message = f"{where} holds a secret itself" if not capable else f"{where} must be a reference to a secret"
        hint = f'keep the value in the secret store and write `"${{secret:{name}}}"`'
        if not capable:
            hint = "keep it in the secret store; an option that takes a secret refers to it by `${secret:NAME}`"
        self.problems.append(Problem(node.where, "literal-secret", message, hint))
        return FAILED

    def refuse_secret(self, node: Node, path: list[str | int]) -> Any:
        where = f"`{path[-1]}`" if path and isinstance(path[-1], str) else "this"
        self.problems.append(Problem(
            node.where, "secret-not-allowed", f"{where} is shown in plans and logs, so it cannot be a secret",
            "use `${var:…}` for what is no secret",
        ))  # fmt: skip
        return FAILED


_ABSENT: Any = object()


def _failed(values: Iterable[Any]) -> bool:
    return any(value is FAILED for value in values)


def _bound(shape: ScalarShape, written: float | str | None) -> Any:
    return shape.scalar.read(written) if isinstance(written, str) else written


def _least(option: Option) -> int:
    return int(option.at_least or 0)


def _stands_alone(slot: Slot) -> bool:
    return not slot.required and isinstance(slot.shape, (ScalarShape, EnumShape))


def _fits(shape: ScalarShape, node: Node) -> bool:
    if shape.scalar is WHOLE:
        return node.is_whole
    if shape.scalar is NUMBER:
        return node.is_number
    if shape.scalar is BOOL:
        return node.is_bool
    return re.search(shape.scalar.pattern, node.text) is not None


def _with_places(bound: Bound, absent: list[str]) -> Bound:
    """Defaults stand where the map stands that they are missing from."""
    defaults = {field: value for field in absent if isinstance(value := getattr(bound, field), Bound)}
    if not defaults:
        return bound
    here = Node("map", bound.node.where)
    placed: dict[str, Any] = {field: dataclasses.replace(value, node=here) for field, value in defaults.items()}
    return dataclasses.replace(bound, **placed)
