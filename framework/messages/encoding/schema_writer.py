"""Messages by a schema of the registry, written outside of Spark of what people write or `generate` makes.

Values are what plain JSON has: dates and times are ISO text or the numbers that the schema has, decimals numbers or text, bytes base64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal as Number
from typing import Any

from framework.base.types import Array, Decimal, Map, Struct, Type
from framework.messages.encoding import json_values
from framework.messages.encoding.confluent_frame import prefix_bytes
from framework.messages.encoding.fields import WrittenType
from framework.messages.schemas.versions import Path
from framework.plan.schema import Schema


@dataclass(frozen=True)
class Way:
    """The way to write values of a schema. `single`: they have no fields. `types` say how JSON's times and decimals are written."""

    single: bool = False
    types: Mapping[str, Type] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Writes keys or values by one schema."""

    id: int
    schema: Schema
    way: Way
    encode: Callable[[Any], bytes]
    back: Mapping[tuple[Path, str], str]  # by its place and what columns call it: a field's own name

    @property
    def single(self) -> bool:
        return self.way.single

    def whole(self, value: Any) -> bytes:
        """A message, of a value as JSON has it."""
        if not self.single and not isinstance(value, Mapping):
            raise ValueError("it is no JSON object")
        try:
            return prefix_bytes(self.id) + self.encode(value)
        except ValueError as error:  # a library's own words may go on for lines
            raise ValueError(str(error).strip().splitlines()[0].rstrip(".")) from None

    def columns(self, values: Mapping[str, Any]) -> bytes:
        """A message, of the values of columns; what is not named is left out."""
        if self.single and len(values) > 1:
            raise ValueError(f"it is one value, and there are {', '.join(f'`{name}`' for name in values)}")
        wrong: ValueError | None = None
        for base64_ in (
            (False, True) if self.way.types else (False,)
        ):  # a decimal is a number, or text where the schema takes none
            written = {
                name: _written(value, self.way.types.get("value" if self.single else name), base64_)
                for name, value in values.items()
            }
            try:
                return self.whole(next(iter(written.values()), None) if self.single else _renamed(written, (), self.back))
            except ValueError as error:
                wrong = wrong or error
        assert wrong is not None
        raise wrong

    def column(self, field: str) -> str:
        """The column's name for a field of the message."""
        return next((column for (path, column), name in self.back.items() if not path and name == field), field)


def _renamed(value: Any, path: Path, back: Mapping[tuple[Path, str], str]) -> Any:
    """With the fields' own names."""
    if not back:
        return value
    if isinstance(value, list):
        return [_renamed(each, path, back) for each in value]
    if not isinstance(value, Mapping):
        return value
    named = {back.get((path, name), name): each for name, each in value.items()}
    return {name: _renamed(each, (*path, name), back) for name, each in named.items()}


def _written(value: Any, type_: Type | None, base64_: bool) -> Any:
    match type_:
        case Array() if isinstance(value, list):
            return [_written(each, type_.element, base64_) for each in value]
        case Map() if isinstance(value, Mapping):
            return {name: _written(each, type_.value, base64_) for name, each in value.items()}
        case Struct() if isinstance(value, Mapping):
            types_ = {each.name: each.type for each in type_.fields}
            return {name: _written(each, types_.get(name), base64_) for name, each in value.items()}
        case WrittenType(Decimal() as decimal, "base64") if base64_ and isinstance(value, (int, Number)):
            with suppress(ValueError):
                return json_values.base64_of(Number(value), decimal.scale)
        case WrittenType(inner, way) if isinstance(value, str) and way != "base64":
            with suppress(ValueError):
                number = json_values.epoch(json_values.moment(value, inner), way)
                return value if number is None else number
    return value
