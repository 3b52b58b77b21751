"""Writes messages by a schema of the registry, outside of Spark, from values that people write or `generate` makes.

Values are those of plain JSON: dates and times are ISO text or the schema's own numbers, decimals are numbers or text, bytes are base64.
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
    own_names: Mapping[tuple[Path, str], str]  # a field's name in the schema, by its path and its column's name

    @property
    def single(self) -> bool:
        return self.way.single

    def whole(self, value: Any) -> bytes:
        """Returns the message of a value of JSON."""
        if not self.single and not isinstance(value, Mapping):
            raise ValueError("it is no JSON object")
        try:
            return prefix_bytes(self.id) + self.encode(value)
        except ValueError as error:  # a library's own words may go on for lines
            raise ValueError(str(error).strip().splitlines()[0].rstrip(".")) from None

    def columns(self, values: Mapping[str, Any]) -> bytes:
        """Returns the message of the values of columns. Columns that are not named are left out."""
        if self.single and len(values) > 1:
            raise ValueError(f"it is one value, and there are {', '.join(f'`{name}`' for name in values)}")
        first_error: ValueError | None = None
        for base64_ in (
            (False, True) if self.way.types else (False,)
        ):  # a decimal is a number, or text where the schema takes none
            written_values = {
                name: _written(value, self.way.types.get("value" if self.single else name), base64_)
                for name, value in values.items()
            }
            try:
                return self.whole(
                    next(iter(written_values.values()), None) if self.single else _renamed(written_values, (), self.own_names)
                )
            except ValueError as error:
                first_error = first_error or error
        assert first_error is not None
        raise first_error

    def column(self, field: str) -> str:
        """Returns the name of the column for a field of the message."""
        return next((column for (path, column), name in self.own_names.items() if not path and name == field), field)


def _renamed(value: Any, path: Path, own_names: Mapping[tuple[Path, str], str]) -> Any:
    """Returns a value whose fields have their names in the schema in place of their columns' names."""
    if not own_names:
        return value
    if isinstance(value, list):
        return [_renamed(item, path, own_names) for item in value]
    if not isinstance(value, Mapping):
        return value
    members = {own_names.get((path, name), name): item for name, item in value.items()}
    return {name: _renamed(item, (*path, name), own_names) for name, item in members.items()}


def _written(value: Any, type_: Type | None, base64_: bool) -> Any:
    match type_:
        case Array() if isinstance(value, list):
            return [_written(item, type_.element, base64_) for item in value]
        case Map() if isinstance(value, Mapping):
            return {name: _written(item, type_.value, base64_) for name, item in value.items()}
        case Struct() if isinstance(value, Mapping):
            types_ = {field.name: field.type for field in type_.fields}
            return {name: _written(item, types_.get(name), base64_) for name, item in value.items()}
        case WrittenType(Decimal() as decimal, "base64") if base64_ and isinstance(value, (int, Number)):
            with suppress(ValueError):
                return json_values.base64_of(Number(value), decimal.scale)
        case WrittenType(inner, way) if isinstance(value, str) and way != "base64":
            with suppress(ValueError):
                number = json_values.epoch(json_values.moment(value, inner), way)
                return value if number is None else number
    return value
