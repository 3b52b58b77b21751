"""Words for messages: the nouns for shapes, and examples of their values."""

from __future__ import annotations

from collections.abc import Iterable

from framework.language import shapes


def in_quotes(names: Iterable[object]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def either(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " or " + parts[-1]


def written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def alternatives(shape: shapes.Shape) -> tuple[shapes.Shape, ...]:
    return shape.alternatives if isinstance(shape, shapes.UnionShape) else (shape,)


def describe(shape: shapes.Shape) -> str:
    return either([part for alternative in alternatives(shape) for part in _described(alternative)])


def _described(shape: shapes.Shape) -> list[str]:
    if isinstance(shape, shapes.AnyShape):
        return ["a value"]
    if isinstance(shape, shapes.ScalarShape):
        return ["a reference to a secret" if shape.secret == "must" else shape.scalar.noun]
    if isinstance(shape, shapes.EnumShape):
        return [f"`{written(value)}`" for value in shape.values]
    if isinstance(shape, shapes.ListShape):
        return ["a list"]
    if isinstance(shape, shapes.FilesShape):
        return [f"a {shape.files.noun} (one key and its options)"]
    if isinstance(shape, shapes.RecordShape) and shape.cls.short:
        short = shape.slots[shape.cls.short]
        return [*_described(short.shape), "a map"]
    if isinstance(shape, shapes.RecordShape) and shape.cls.known_by:
        return [f"a map with `{shape.cls.known_by}`"]
    if isinstance(shape, shapes.RecordShape) and len(shape.slots) <= 4:
        return [f"a map with {either([f'`{name}`' for name in shape.slots if name not in shape.cls.besides])}"]
    return ["a map"]


def example(shape: shapes.Shape) -> str:
    if isinstance(shape, shapes.AnyShape):
        return "value"
    if isinstance(shape, shapes.ScalarShape):
        return shape.scalar.example or "text"
    if isinstance(shape, shapes.EnumShape):
        return written(shape.values[0])
    if isinstance(shape, shapes.UnionShape):
        return example(shape.alternatives[0])
    if isinstance(shape, shapes.ListShape):
        return f"[{', '.join([example(shape.item)] * (shape.length or 1))}]"
    if isinstance(shape, shapes.RecordShape) and shape.cls.short:
        return example(shape.slots[shape.cls.short].shape)
    if isinstance(shape, shapes.RecordShape):
        preferred_slots = {name: slot for name, slot in shape.slots.items() if slot.required or name in shape.cls.in_example}
        used_slots = preferred_slots or dict(list(shape.slots.items())[:1])
        return "{" + ", ".join(f"{name}: {slot.option.example or example(slot.shape)}" for name, slot in used_slots.items()) + "}"
    if isinstance(shape, shapes.MapShape):
        return f"{{name: {example(shape.value)}}}"
    assert isinstance(shape, shapes.FilesShape)
    name, slot = next(iter(shape.slots().items()))
    return f"{{{name}: {example(slot.shape)}}}"
