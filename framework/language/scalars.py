"""The kinds of text that an option can hold: the noun for each, its pattern, and the function that reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Annotated, Any
from urllib.parse import urlsplit

from framework.base import iso_times
from framework.language import cron


@dataclass(frozen=True, kw_only=True)
class Scalar:
    """One kind of text. `read` raises ValueError for a text that fits the pattern and has no meaning."""

    noun: str
    code: str
    example: str
    pattern: str = ""
    read: Callable[[str], Any] = str
    rule: str = ""  # replaces the example in the hint
    suggest: Callable[[str], str] | None = None  # guesses the meant text from one that does not fit
    also: Callable[[str], str] | None = None  # returns a second hint, which follows the guess


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_NAME = r"[a-z][a-z0-9_]{0,62}"
_COLUMN = r"""[^\s.,;:`'"(){}\[\]=<>$\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]{1,255}"""
# Each pattern ends with $(?!\n), since Python's $ alone matches before a line break.


def read_duration(text: str) -> int:
    """The duration in seconds."""
    return int(text[:-1]) * _SECONDS[text[-1]]


def read_size(text: str) -> int:
    """The size in bytes. A kilobyte has 1,024 bytes."""
    digits = text.rstrip("BKMGT")
    return int(digits) * _BYTES[text[len(digits) :]]


def read_rate(text: str) -> float:
    """The rate in messages per second."""
    count, unit = text.split("/")
    return float(count) / _SECONDS[unit]


def read_time(text: str) -> datetime:
    """The time, which is in UTC if the text names no zone."""
    moment = iso_times.read(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def meant_duration(text: str) -> str:
    hours_and_minutes = re.fullmatch(r"\s*([0-9]{1,4})\s*h[a-z]*\s*([0-9]{1,4})\s*m[a-z]*\s*", text.lower())
    if hours_and_minutes:
        return f"{int(hours_and_minutes[1]) * 60 + int(hours_and_minutes[2])}m"
    match = re.fullmatch(r"\s*([1-9][0-9]{0,5})\s*(?!ms|mo)([smhdw])[a-z]*\s*", text.lower())
    if not match:
        return ""
    return f"{int(match[1]) * 7}d" if match[2] == "w" else match[1] + match[2]


def meant_size(text: str) -> str:
    match = re.fullmatch(r"\s*([1-9][0-9]*)\s*([kmgt])i?b?\s*", text.lower())
    return f"{match[1]}{match[2].upper()}B" if match else ""


def meant_memory(text: str) -> str:
    return meant_size(text)[:-1].lower()


def meant_name(text: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()
    return re.sub(r"[^a-z0-9]+", "_", snake).strip("_")


def meant_table(text: str) -> str:
    return ".".join(meant_name(part) for part in text.split("."))


def is_column_name(text: str) -> bool:
    return re.fullmatch(_COLUMN, text) is not None


def of_field(text: str) -> str:
    """A hint for the path of a struct's field: the step by which the field becomes a column. Empty for any other text."""
    path = re.fullmatch(rf"{_COLUMN}(\.{_COLUMN})+", text)
    return f"; a field of a struct becomes it by a step, `derive: {{{meant_name(text)}: {text}}}`" if path else ""


TEXT = Scalar(noun="text", code="wrong-type", example="")
WHOLE = Scalar(noun="a whole number", code="wrong-type", example="5", read=int)
NUMBER = Scalar(noun="a number", code="wrong-type", example="0.5", read=float)
BOOL = Scalar(noun="`true` or `false`", code="wrong-type", example="true", read=lambda text: text == "true")

Duration = Annotated[
    int,
    Scalar(noun="a duration", code="bad-duration", example="15s", pattern=r"^[1-9][0-9]{0,5}[smhd]$(?!\n)", read=read_duration,
           rule="a whole number and s, m, h or d: `15s`, `10m`, `6h`, `7d`", suggest=meant_duration),
]  # fmt: skip
Size = Annotated[
    int,
    Scalar(noun="a size", code="bad-size", example="128MB", pattern=r"^[1-9][0-9]{0,8}(B|KB|MB|GB|TB)$(?!\n)", read=read_size,
           rule="a whole number and B, KB, MB, GB or TB: `512KB`, `128MB`", suggest=meant_size),
]  # fmt: skip
Memory = Annotated[
    str,
    Scalar(noun="an amount of memory", code="bad-memory", example="4g", pattern=r"^[1-9][0-9]{0,5}[mg]$(?!\n)",
           rule="a whole number and m or g: `512m`, `4g`", suggest=meant_memory),
]  # fmt: skip
Rate = Annotated[
    float,
    Scalar(
        noun="a rate",
        code="bad-rate",
        example="10/s",
        pattern=r"^(0\.[0-9]{0,5}[1-9]|[1-9][0-9]{0,8}(\.[0-9]{1,6})?)/[smhd]$(?!\n)",
        read=read_rate,
        rule="messages per second, minute, hour or day: `10/s`, `600/m`",
    ),
]
Time = Annotated[
    datetime,
    Scalar(noun="a time", code="bad-time", example="2026-01-05T10:00:00Z",
           pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?$(?!\n)",
           read=read_time, rule="ISO 8601, in UTC unless it names a zone: `2026-01-05` or `2026-01-05T10:00:00Z`"),
]  # fmt: skip
Day = Annotated[
    date,
    Scalar(noun="a day", code="bad-day", example="2026-01-05", pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$(?!\n)", read=date.fromisoformat,
           rule="ISO 8601: `2026-01-05`"),
]  # fmt: skip
Name = Annotated[
    str,
    Scalar(noun="a name", code="bad-name", example="stock_trades", pattern=rf"^{_NAME}$(?!\n)",
           rule="lowercase letters, digits and _, starting with a letter, at most 63 characters", suggest=meant_name),
]  # fmt: skip
TableName = Annotated[
    str,
    Scalar(noun="a table's name", code="bad-table-name", example="markets.trades", pattern=rf"^{_NAME}\.{_NAME}$(?!\n)",
           rule="a namespace, a dot and a name, in lowercase letters, digits and _: `markets.trades`", suggest=meant_table),
]  # fmt: skip
ColumnName = Annotated[
    str,
    Scalar(noun="a column's name", code="bad-column-name", example="price", pattern=rf"^{_COLUMN}$(?!\n)",
           rule="a name without spaces, dots, commas, quotes and brackets", suggest=meant_name, also=of_field),
]  # fmt: skip
FieldPath = Annotated[
    str,
    Scalar(noun="the name of a column or a field", code="bad-column-name", example="location.building",
           pattern=rf"^{_COLUMN}(\.{_COLUMN})*$(?!\n)",
           rule="a column, or a column, a dot and a field of its struct: `location.building`"),
]  # fmt: skip
ColumnType = Annotated[
    str,
    Scalar(noun="a type", code="bad-type", example="string", pattern=r"\S",
           rule="a type in Spark's syntax: `string`, `decimal(18,2)`, `array<string>`, `struct<a string, b int>`"),
]  # fmt: skip
Expression = Annotated[
    str,
    Scalar(noun="an SQL expression", code="bad-expression", example="price > 0", pattern=r"\S",
           rule="a Spark SQL expression, such as `price > 0`"),
]  # fmt: skip
KafkaName = Annotated[
    str,
    Scalar(
        noun="a Kafka topic's name",
        code="bad-kafka-name",
        example="sample_data_stock_trades",
        pattern=r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$(?!\n)",
        rule="letters, digits, `.`, `_` and `-`, at most 249 characters",
    ),
]
Addresses = Annotated[
    str,
    Scalar(noun="a Kafka address", code="bad-address", example="127.0.0.1:19092",
           pattern=r"^\s*(\[[0-9A-Fa-f:]+\]|[^\s,:/@]+):[0-9]{1,5}(\s*,\s*(\[[0-9A-Fa-f:]+\]|[^\s,:/@]+):[0-9]{1,5})*\s*$(?!\n)",
           rule="`host:port`, several separated by commas: `kafka1:9092,kafka2:9092`"),
]  # fmt: skip


def _url(text: str) -> str:
    urlsplit(text).port  # noqa: B018 - raises ValueError where it is none
    return text


Url = Annotated[
    str,
    Scalar(noun="an address", code="bad-address", example="http://127.0.0.1:18081", pattern=r"^https?://[^\s/\\@?#]+(/[^\s?#]*)?$(?!\n)",
           read=_url,
           rule="`http://` or `https://`, a host, and a port or path if needed, without a login"),
]  # fmt: skip
Subject = Annotated[
    str,
    Scalar(
        noun="a subject",
        code="bad-subject",
        example="stock_trades-value",
        pattern=r"^[^\s](.{0,253}[^\s])?$(?!\n)",
        rule="the subject's name in the registry",
    ),
]
Master = Annotated[
    str,
    Scalar(noun="a Spark master", code="bad-master", example="local[*]",
           pattern=r"^(local(\[(\*|[1-9][0-9]{0,3})(, ?[1-9][0-9]{0,3})?\])?|yarn|(spark|k8s)://\S+)$(?!\n)",
           rule="`local[*]`, `spark://host:7077`, `k8s://…` or `yarn`"),
]  # fmt: skip
Owner = Annotated[
    str,
    Scalar(
        noun="an owner",
        code="bad-owner",
        example="team:markets",
        pattern=r"^(team:[A-Za-z0-9_-]+|[^@\s:]+@[^@\s:.]+(\.[^@\s:.]+)+)$(?!\n)",
        rule="`team:markets` or a mail address",
    ),
]
Schedule = Annotated[
    str,
    Scalar(noun="a schedule", code="bad-schedule", example='"0 6 * * *"', pattern=cron.PATTERN, read=cron.read,
           rule='the five fields of cron: minute, hour, day, month, day of the week, such as `"0 6 * * *"` for 6:00 each day'),
]  # fmt: skip
Location = Annotated[
    str, Scalar(noun="a path or an address", code="bad-location", example=".sluice/warehouse", pattern=r"^\S(.*\S)?$(?!\n)",
                rule="a path inside the project, or an address such as `s3://bucket/warehouse`"),
]  # fmt: skip
