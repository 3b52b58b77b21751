"""Convert nodes to values. Only this module checks a document's shape. It reports all problems and keeps the parts without any."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Any

from framework.base.errors import MOST_PROBLEMS, Problem
from framework.language.failure import Misfit
from framework.language.keys import could_mean, is_not_indented, missing_keys, unknown_keys, unnamed, wrong_count
from framework.language.messages import bad_text, missing_value, unknown_value, wrong_type
from framework.language.node import YamlNode
from framework.language.options import Option, OptionGroup, StepDocument
from framework.language.shapes import (
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
from framework.language.syntax import SECRET_TEXT
from framework.language.texts import fits, literal_secret, read_scalar, refused_secret
from framework.language.words import written

FAILED: Any = object()
_ABSENT: Any = object()


def bind(cls: BoundClass, node: YamlNode, root: Path, problems: list[Problem]) -> Any:
    """A document as the dataclass of its kind, or FAILED. A document that has problems and did not fail has gaps."""
    return _Binder(root, problems).record(record_shape(cls), NO_OPTION, node, ())


def bind_part(shape: Shape, option: Option, node: YamlNode) -> Any:
    """The value of one option, or FAILED. Any path counts as inside the project here."""
    return _Binder(Path("/"), None).value(shape, option, node, ())


@dataclass
class _Binder:
    """Reads one document. Not frozen, because it collects problems."""

    root: Path  # the project's folder, which paths must not leave
    problems: list[Problem] | None  # None: problems are dropped

    def refuse(self, problems: Iterable[Problem]) -> Any:
        """Collect problems and return FAILED. The number is limited, because the search for each hint takes time."""
        if self.problems is not None:
            self.problems.extend(islice(problems, max(0, MOST_PROBLEMS + 1 - len(self.problems))))
        return FAILED

    def value(self, shape: Shape, option: Option, node: YamlNode, path: tuple[str | int, ...]) -> Any:
        if node.unknown:
            return FAILED
        if isinstance(shape, RecordShape) and shape.cls.short and node.kind == "scalar":
            return self.short(shape, shape.slots[shape.cls.short], node, path)
        failure = Misfit(node, shape, option, path=path)
        if isinstance(shape, AnyShape):
            return self.anything(failure)
        if node.is_null:
            return self.refuse(missing_value(failure))
        if isinstance(shape, UnionShape):
            return self.alternative(shape, failure)
        if node.kind != shape.form:
            return self.refuse(wrong_type(failure))
        if isinstance(shape, ScalarShape):
            return read_scalar(shape, failure, self.root, self.refuse)
        if isinstance(shape, EnumShape):
            return self.enum(shape, failure)
        if isinstance(shape, RecordShape):
            return self.record(shape, option, node, path)
        if isinstance(shape, ListShape):
            return self.list(shape, failure)
        if isinstance(shape, MapShape):
            return self.map(shape, failure)
        assert isinstance(shape, FilesShape)
        return self.step(shape, failure)

    def alternative(self, shape: UnionShape, failure: Misfit) -> Any:
        node, option, path = failure.node, failure.option, failure.path
        if shape.known_by and node.kind == "map" and not any(key.text in shape.known_by for key, _ in node.entries):
            return self.refuse(unnamed(failure, shape.known_by)) if node.whole else FAILED
        fitting = shape.fitting(node)
        if not fitting:
            return self.refuse(wrong_type(failure))
        if node.kind != "scalar":
            return self.value(fitting[0], item_option(option), node, path)
        texts = [candidate for candidate in fitting if isinstance(candidate, ScalarShape)]
        enums = [
            candidate
            for candidate in fitting
            if isinstance(candidate, EnumShape) and (not texts or node.text in map(written, candidate.values))
        ]
        chosen_shape = (*enums, *texts)[0]
        if isinstance(chosen_shape, ScalarShape) and node.secret is None and not fits(chosen_shape, node):
            return self.refuse(unknown_value(failure))
        return (
            self.enum(chosen_shape, failure)
            if isinstance(chosen_shape, EnumShape)
            else self.value(chosen_shape, option, node, path)
        )

    def short(self, shape: RecordShape, slot: Slot, node: YamlNode, path: tuple[str | int, ...]) -> Any:
        """The value of a scalar in place of a map."""
        value = self.value(slot.shape, slot.option, node, path)
        return FAILED if value is FAILED else self.judged(shape.cls(**{slot.field: value}, node=node))

    def record(self, shape: RecordShape, option: Option, node: YamlNode, path: tuple[str | int, ...]) -> Any:
        nodes = {key.text: value for key, value in node.entries}
        component_shape, shape = shape.named(node), shape.complete(node)
        self.keys(shape, Misfit(node, shape, option, path=path), nodes)
        values = {slot.field: self.slot(shape, name, nodes.get(name), path) for name, slot in shape.slots.items()}
        failed_names = {name for name, slot in shape.slots.items() if values[slot.field] is FAILED}
        # An unknown key may be a misspelt option. If it is close to no missing option, the rest is still checked.
        unknown_names = [name for name in nodes if name not in shape.slots and name not in shape.later]
        missing_names = {
            candidate
            for name in unknown_names
            for candidate in could_mean(name, shape.slots, shape.later)
            if candidate not in nodes
        }
        if not node.whole:
            missing_names |= shape.slots.keys() - nodes.keys()
        # A bad option that no other depends on is reported and takes its default, so that the rest is still checked.
        needed_names = {
            name for name in failed_names | missing_names if name not in shape.later and not _stands_alone(shape.slots[name])
        }
        is_single = len(nodes.keys() - {*unknown_names, *shape.cls.besides}) == 1 if shape.cls.exactly_one else True
        if not is_single or (needed_names and not shape.cls.partly):
            return FAILED
        values |= {
            shape.slots[name].field: self.part(shape.slots[name], nodes.get(name), path) for name in failed_names | needed_names
        }
        if _failed(values.values()):
            return FAILED
        gaps = frozenset(failed_names | (missing_names & shape.slots.keys()))
        if shape.chosen:
            if component_shape is None:
                return FAILED
            component_values = {slot.field: values.pop(slot.field) for slot in component_shape.slots.values()}
            values[shape.chosen.field] = self.built(component_shape, component_values, node, gaps & component_shape.slots.keys())
        return FAILED if _failed(values.values()) else self.built(shape, values, node, gaps)

    def built(self, shape: RecordShape, values: Mapping[str, Any], node: YamlNode, gaps: frozenset[str]) -> Any:
        bound = shape.cls(**{field: value for field, value in values.items() if value is not _ABSENT}, node=node, gaps=gaps)
        bound = _with_places(bound, [field for field, value in values.items() if value is _ABSENT])
        return bound if gaps and not shape.cls.partly else self.judged(bound)

    def keys(self, shape: RecordShape, failure: Misfit, nodes: Mapping[str, YamlNode]) -> None:
        if not nodes.keys() <= shape.slots.keys():
            self.refuse(unknown_keys(failure))
        if failure.node.whole and any(slot.required and name not in nodes for name, slot in shape.slots.items()):
            self.refuse(missing_keys(failure))
        if shape.cls.exactly_one and len(nodes.keys() - {*shape.cls.besides}) != 1:
            self.refuse(wrong_count(failure))

    def slot(self, shape: RecordShape, name: str, node: YamlNode | None, path: tuple[str | int, ...]) -> Any:
        slot = shape.slots[name]
        if node is None:
            return FAILED if slot.required else _ABSENT
        if slot.required or not node.is_null or node.unknown or isinstance(slot.shape, AnyShape):
            return self.value(slot.shape, slot.option, node, (*path, name))
        if shape.cls.exactly_one:
            self.refuse(missing_value(Misfit(node, slot.shape, slot.option, path=(*path, name))))
            return FAILED
        return _ABSENT

    def part(self, slot: Slot, node: YamlNode | None, path: tuple[str | int, ...]) -> Any:
        """The good parts of an option's list or map; for any other option its default, or None. FAILED for a missing name."""
        if slot.required and slot.field == "name":
            return FAILED
        binder = _Binder(self.root, None)
        if isinstance(slot.shape, ListShape):
            items = [binder.value(slot.shape.item, item_option(slot.option), item, path) for item in (node.items if node else ())]
            if isinstance(slot.shape.item, RecordShape | FilesShape):  # these items keep their own place
                return tuple(item for item in items if item is not FAILED)
            return tuple(takewhile(lambda item: item is not FAILED, items))
        if isinstance(slot.shape, MapShape):
            entries = node.entries if node else ()
            values = {key.text: binder.value(slot.shape.value, NO_OPTION, value, path) for key, value in entries}
            return {name: value for name, value in values.items() if value is not FAILED}
        return None if slot.required else _ABSENT

    def judged(self, bound: OptionGroup) -> Any:
        problems = list(bound.problems())
        self.refuse(problems)
        return FAILED if problems and not bound.partly else bound

    def list(self, shape: ListShape, failure: Misfit) -> Any:
        nodes, option = failure.node.items, item_option(failure.option)
        items = [self.value(shape.item, option, item, (*failure.path, index)) for index, item in enumerate(nodes)]
        if len(items) != shape.length if shape.length is not None else len(items) < _least(failure.option):
            return self.refuse(wrong_count(failure))
        return FAILED if _failed(items) else items if shape.as_list else tuple(items)

    def map(self, shape: MapShape, failure: Misfit) -> Any:
        node, option, path = failure.node, item_option(failure.option), failure.path
        bad_keys = [
            Misfit(key, shape.key, NO_OPTION, path=path, is_key=True) for key, _ in node.entries if not fits(shape.key, key)
        ]
        self.refuse(chain.from_iterable(map(bad_text, bad_keys)))
        values = {key.text: self.value(shape.value, option, value, (*path, key.text)) for key, value in node.entries}
        if node.whole and len(values) < _least(failure.option):
            return self.refuse(wrong_count(failure))
        return FAILED if _failed(values.values()) or bad_keys or not node.whole else values

    def step(self, shape: FilesShape, failure: Misfit) -> Any:
        node, slots = failure.node, shape.slots()
        if len(node.entries) != 1 and (node.whole or node.entries):
            self.refuse(wrong_count(failure))
        if is_not_indented(shape, node):
            return FAILED
        if any(key.text not in slots for key, _ in node.entries):
            self.refuse(unknown_keys(failure))
        steps = [(slots[key.text], key.text, value) for key, value in node.entries if key.text in slots]
        values = [self.value(slot.shape, slot.option, value, (*failure.path, name)) for slot, name, value in steps]
        return FAILED if len(node.entries) != 1 or not values or _failed(values) else StepDocument(steps[0][1], values[0], node)

    def anything(self, failure: Misfit) -> Any:
        node = failure.node
        if node.secret is not None:
            return self.refuse(refused_secret(failure))
        if SECRET_TEXT.search(node.text):
            return self.refuse(literal_secret(failure))
        parts = [*node.items, *(value for _, value in node.entries)]
        has_failed = _failed([self.anything(dataclasses.replace(failure, node=part)) for part in parts])
        return FAILED if has_failed or node.unknown or not node.whole else node

    def enum(self, shape: EnumShape, failure: Misfit) -> Any:
        if failure.node.secret is not None:
            return self.refuse(refused_secret(failure))
        value = next((value for value in shape.values if written(value) == failure.node.text), FAILED)
        return self.refuse(unknown_value(failure)) if value is FAILED else value


def _failed(values: Iterable[Any]) -> bool:
    return any(value is FAILED for value in values)


def _least(option: Option) -> int:
    return int(option.at_least or 0)


def _stands_alone(slot: Slot) -> bool:
    return not slot.required and isinstance(slot.shape, (ScalarShape, EnumShape))


def _with_places(bound: OptionGroup, absent_fields: list[str]) -> OptionGroup:
    """Give defaults the place of the map that lacks them."""
    defaults = {field: value for field in absent_fields if isinstance(value := getattr(bound, field), OptionGroup)}
    if not defaults:
        return bound
    map_node = YamlNode("map", bound.node.where)
    placed_defaults: dict[str, Any] = {field: dataclasses.replace(value, node=map_node) for field, value in defaults.items()}
    return dataclasses.replace(bound, **placed_defaults)
