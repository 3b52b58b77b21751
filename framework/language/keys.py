"""Problems with keys that are unknown, missing or misplaced, with hints at the keys that were meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from framework.base.errors import Problem
from framework.base.spelling import closest, did_you_mean
from framework.language import extensions
from framework.language.failure import Misfit, line_of, not_in_this_version
from framework.language.kind import document_types
from framework.language.node import YamlNode
from framework.language.shapes import BoundClass, FilesShape, ListShape, RecordShape, Shape, Slot, record_shape
from framework.language.syntax import short
from framework.language.words import example, in_quotes


def unknown_keys(failure: Misfit) -> Iterator[Problem]:
    slots, later_names = _slots(failure.shape)
    has_step_name = _step_in_value(failure)
    if has_step_name:
        key, value = failure.node.entries[0]
        hint = f"the step's name is the key: `- {value.text}: …`"
        yield Problem(key.where, "unknown-step", f"there is no step `{key.text}`", hint)
        return
    for key, value in failure.node.entries:
        name = key.text
        if not failure.path and name in document_types() and name not in slots and not _owned(name, slots):
            hint = f"write `---` on a line above it, if a {name} begins here"
            yield Problem(key.where, "unknown-key", f"`{name}` is not an option of {failure.label}", hint)
            return  # the keys below belong to the new document
        if name in later_names:
            yield not_in_this_version(key, f"`{name}`", _instead(failure.shape, name, slots))
        elif name not in slots and isinstance(failure.shape, FilesShape):
            if name in extensions.extensions_of(failure.shape.files.components).broken:
                continue
            noun = failure.shape.files.noun
            hint = did_you_mean(name, [*slots, *later_names], f"{noun}s are: {in_quotes(slots)}")
            yield Problem(key.where, f"unknown-{noun}", f"there is no {noun} `{name}`", hint)
        elif name not in slots:
            hint = _above(failure, name) or _of_another(failure.shape, name) or _key_hint(name, slots, later_names)
            hint = "write numbers without commas" if name.isdigit() and value.is_null else hint
            yield Problem(key.where, "unknown-key", f"`{short(name)}` is not an option of {failure.label}", hint)


def missing_keys(failure: Misfit) -> Iterator[Problem]:
    slots, later_names = _slots(failure.shape)
    given_keys = {key.text for key, _ in failure.node.entries}
    if given_keys & set(later_names):
        return  # the missing key may be part of what this version lacks; it is reported once that is removed
    misspelt_options = {
        _meant_key(name, slots, later_names) for name in given_keys if name not in slots and name not in later_names
    }
    for name, slot in slots.items():
        if slot.required and name not in given_keys and name not in misspelt_options:
            text = slot.option.example or example(slot.shape)
            doc = f" ({slot.option.doc[0].lower()}{slot.option.doc[1:].rstrip('.')})" if slot.option.doc else ""
            yield failure.problem("missing-key", f"{failure.label} has no `{name}`", f"add `{name}: {text}`{doc}")


def unnamed(failure: Misfit, names: Iterable[str]) -> Iterator[Problem]:
    """A problem with a map that has none of the keys in `names`, of which it needs one."""
    first_key = next((key.text for key, _ in failure.node.entries), "")
    hint = did_you_mean(first_key, names, f"write one of: {in_quotes(names)}")
    yield failure.problem("missing-key", f"{failure.label} has none of {in_quotes(names)}", hint)


def wrong_count(failure: Misfit) -> Iterator[Problem]:
    """A problem with the number of a list's items or of a map's keys."""
    node, shape = failure.node, failure.shape
    if isinstance(shape, RecordShape | FilesShape):
        yield from _second_key(failure) if _counted(failure) else _no_key(failure)
    elif isinstance(shape, ListShape) and shape.length is not None:
        message = f"{failure.label} must have {shape.length} values, and has {len(node.items)}"
        yield failure.problem("wrong-count", message, f"write {line_of(failure)}")
    else:
        yield failure.problem("wrong-count", f"{failure.label} is empty", f"write {line_of(failure)}")


def _no_key(failure: Misfit) -> Iterator[Problem]:
    if failure.node.whole:
        names = [name for name in _slots(failure.shape)[0] if name not in _besides(failure.shape)]
        fault = f"has none of {in_quotes(names)}" if failure.node.entries else "is empty"
        yield failure.problem("missing-key", f"{failure.label} {fault}", f"write one of: {in_quotes(names)}")


def _counted(failure: Misfit) -> list[YamlNode]:
    """The keys of the map among which exactly one is allowed."""
    return [key for key, _ in failure.node.entries if key.text not in _besides(failure.shape)]


def _besides(shape: Shape) -> tuple[str, ...]:
    return shape.cls.besides if isinstance(shape, RecordShape) else ()


def _second_key(failure: Misfit) -> Iterator[Problem]:
    """A problem with a second key where only one is allowed."""
    node, shape = failure.node, failure.shape
    keys = _counted(failure)
    first_name, second_key = keys[0].text, keys[1]
    if _step_in_value(failure):
        return
    if is_not_indented(shape, node):
        message = f"`{second_key.text}` has the same indent as `{first_name}`, and belongs below it"
        yield Problem(second_key.where, "too-many-keys", message, f"indent it further than `{first_name}`")
    elif isinstance(shape, FilesShape):
        message = f"`{first_name}` and `{second_key.text}` are in one item, which holds one {shape.files.noun}"
        yield Problem(second_key.where, "too-many-keys", message, f"write `- {second_key.text}: …` as an item of its own")
    elif all(key.text in _slots(shape)[0] for key, _ in node.entries):
        names = " and ".join(f"`{key.text}`" for key in keys)
        yield Problem(second_key.where, "too-many-keys", f"{failure.label} has {names}, and only one is allowed", "keep one")


def _slots(shape: Shape) -> tuple[Mapping[str, Slot], Iterable[str]]:
    """The options of a map, and the options that this version lacks."""
    if isinstance(shape, FilesShape):
        return shape.slots(), shape.later()
    assert isinstance(shape, RecordShape)
    return shape.slots, shape.later


def _instead(shape: Shape, name: str, slots: Mapping[str, Slot]) -> str:
    """The hint for an option that this version lacks."""
    if isinstance(shape, FilesShape):
        return f"{shape.files.noun}s of this version: {in_quotes(slots)}"
    assert isinstance(shape, RecordShape)
    return shape.later[name].instead


def is_not_indented(shape: Shape, node: YamlNode) -> bool:
    """Whether a step, such as `derive:`, has its options at its own indent instead of below it."""
    if not isinstance(shape, FilesShape) or len(node.entries) < 2:
        return False
    first_key, value = node.entries[0]
    return first_key.text in shape.slots() and value.is_null


def _step_in_value(failure: Misfit) -> bool:
    """Whether the step's name is a value, as in `- name: filter`, which is how other tools write it."""
    key, value = failure.node.entries[0]
    if not isinstance(failure.shape, FilesShape) or failure.shape.files.noun != "step":
        return False
    return key.text in ("name", "type", "step", "kind", "action", "transform") and value.text in failure.shape.slots()


def _meant_key(name: str, slots: Mapping[str, Slot], later_names: Iterable[str]) -> str | None:
    option_name = next((option for option, slot in slots.items() if name.lower() in slot.option.aka), None)
    return option_name or closest(name, [*slots, *later_names])


def could_mean(name: str, slots: Mapping[str, Slot], later_names: Iterable[str]) -> set[str]:
    """The options that a hint for this unknown key can name."""
    option_name = _meant_key(name, slots, later_names)
    return {*_owners(name, slots), *([option_name] if option_name else [])}


def _owned(name: str, slots: Mapping[str, Slot]) -> bool:
    """Whether the name is another word for one of the options, as `topic` is for `from` in a pipeline."""
    return any(name in slot.option.aka for slot in slots.values())


def _owners(name: str, slots: Mapping[str, Slot]) -> list[str]:
    """The options that this one belongs under, the likeliest first."""
    inner_shapes = {option: slot.shape for option, slot in slots.items() if isinstance(slot.shape, RecordShape)}
    requiring_owners = [option for option, shape in inner_shapes.items() if name in shape.slots and shape.slots[name].required]
    possible_owners = [option for option, shape in inner_shapes.items() if name in shape.slots]
    return [*requiring_owners, *possible_owners, *(option for option, shape in inner_shapes.items() if name in shape.later)]


def _above(failure: Misfit, name: str) -> str:
    """A hint for an option that is one level too deep, or for a step outside of `steps`."""
    if not failure.path:
        list_shapes = [slot.shape for slot in _slots(failure.shape)[0].values() if isinstance(slot.shape, ListShape)]
        step_names = [
            step_name for shape in list_shapes if isinstance(shape.item, FilesShape) for step_name in shape.item.slots()
        ]
        return "it is a step: write it under `steps`" if name in step_names else ""
    kinds: Iterable[BoundClass] = document_types().values()
    options = [record_shape(kind).slots for kind in kinds]
    if any(failure.path[0] in slots and name in slots for slots in options) and len(failure.path) == 1:
        return f"it belongs one level up, next to `{failure.path[0]}`"
    return ""


def _of_another(shape: Shape, name: str) -> str:
    """A hint for an option that belongs to another component than the one that the map names."""
    chosen = shape.chosen if isinstance(shape, RecordShape) else None
    names = (
        [f"{chosen.by}: {component}" for component, options in chosen.records.items() if name in options.slots] if chosen else []
    )
    return f"remove it: only {in_quotes(names)} {'has' if len(names) == 1 else 'have'} it" if names else ""


def _key_hint(name: str, slots: Mapping[str, Slot], later_names: Iterable[str]) -> str:
    owners = _owners(name, slots)
    if owners:
        return f"it belongs under `{owners[0]}`"
    option_name = _meant_key(name, slots, later_names)
    if option_name:
        return f"did you mean `{option_name}`?"
    return f"its options are: {in_quotes(option for option, slot in slots.items() if slot.option.doc)}"
