"""The kinds of text that an option can hold: what each is called, its pattern, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timezone
from typing import Annotated, Any

from framework.spec import cron


@dataclass(frozen=True)
class Scalar:
    """How a text is read. `read` raises ValueError for a text that fits the pattern and still means nothing."""

    noun: str
    code: str
    example: str
    _: KW_ONLY
    pattern: str = ""
    read: Callable[[str], Any] = str
    rule: str = ""  # what the hint says in place of an example
    suggest: Callable[[str], str] | None = None  # what was probably meant by a text that does not fit


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_NAME = r"[a-z][a-z0-9_]{0,62}"
_COLUMN = r"""[^\s.,;:`'"(){}\[\]=<>$\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]{1,255}"""
# Behind each pattern's $ stands (?!\n): Python's $ alone lets a line break pass.


def read_duration(text: str) -> int:
    """Seconds."""
    return int(text[:-1]) * _SECONDS[text[-1]]


def read_size(text: str) -> int:
    """Bytes; a kilobyte has 1,024."""
    digits = text.rstrip("BKMGT")
    return int(digits) * _BYTES[text[len(digits) :]]


def read_rate(text: str) -> float:
    """Messages per second."""
    count, unit = text.split("/")
    return float(count) / _SECONDS[unit]


def read_time(text: str) -> datetime:
    """A moment; without a zone it is UTC."""
    text = re.sub(r"\.(\d+)", lambda match: "." + match[1][:6].ljust(6, "0"), text.replace("Z", "+00:00"))
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def meant_duration(text: str) -> str:
    several = re.fullmatch(r"\s*([0-9]{1,4})\s*h[a-z]*\s*([0-9]{1,4})\s*m[a-z]*\s*", text.lower())
    if several:
        return f"{int(several[1]) * 60 + int(several[2])}m"
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


TEXT = Scalar("text", "wrong-type", "")
WHOLE = Scalar("a whole number", "wrong-type", "5", read=int)
NUMBER = Scalar("a number", "wrong-type", "0.5", read=float)
BOOL = Scalar("`true` or `false`", "wrong-type", "true", read=lambda text: text == "true")

Duration = Annotated[
    int,
    Scalar("a duration", "bad-duration", "15s", pattern=r"^[1-9][0-9]{0,5}[smhd]$(?!\n)", read=read_duration,
           rule="a whole number and s, m, h or d: `15s`, `10m`, `6h`, `7d`", suggest=meant_duration),
]  # fmt: skip
Size = Annotated[
    int,
    Scalar("a size", "bad-size", "128MB", pattern=r"^[1-9][0-9]{0,8}(B|KB|MB|GB|TB)$(?!\n)", read=read_size,
           rule="a whole number and B, KB, MB, GB or TB: `512KB`, `128MB`", suggest=meant_size),
]  # fmt: skip
Memory = Annotated[
    str,
    Scalar("an amount of memory", "bad-memory", "4g", pattern=r"^[1-9][0-9]{0,5}[mg]$(?!\n)",
           rule="a whole number and m or g, as Spark writes it: `512m`, `4g`", suggest=meant_memory),
]  # fmt: skip
Rate = Annotated[
    float,
    Scalar("a rate", "bad-rate", "10/s", pattern=r"^(0\.[0-9]{0,5}[1-9]|[1-9][0-9]{0,8}(\.[0-9]{1,6})?)/[smhd]$(?!\n)", read=read_rate,
           rule="messages per second, minute, hour or day: `10/s`, `600/m`"),
]  # fmt: skip
Time = Annotated[
    datetime,
    Scalar("a time", "bad-time", "2026-01-05T10:00:00Z",
           pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?$(?!\n)",
           read=read_time, rule="ISO 8601, in UTC unless it names a zone: `2026-01-05` or `2026-01-05T10:00:00Z`"),
]  # fmt: skip
Name = Annotated[
    str,
    Scalar("a name", "bad-name", "stock_trades", pattern=rf"^{_NAME}$(?!\n)",
           rule="a small letter, then small letters, digits and _, 63 at most", suggest=meant_name),
]  # fmt: skip
TableName = Annotated[
    str,
    Scalar("a table's name", "bad-table-name", "markets.trades", pattern=rf"^{_NAME}\.{_NAME}$(?!\n)",
           rule="a namespace, a dot and a name, in small letters, digits and _: `markets.trades`", suggest=meant_table),
]  # fmt: skip
ColumnName = Annotated[
    str,
    Scalar("a column's name", "bad-column-name", "price", pattern=rf"^{_COLUMN}$(?!\n)",
           rule="a name without spaces, dots, commas, quotes and brackets", suggest=meant_name),
]  # fmt: skip
FieldPath = Annotated[
    str,
    Scalar("the name of a column or a field", "bad-column-name", "location.building",
           pattern=rf"^{_COLUMN}(\.{_COLUMN})*$(?!\n)",
           rule="a column, or a column, a dot and a field of its struct: `location.building`"),
]  # fmt: skip
ColumnType = Annotated[
    str,
    Scalar("a type", "bad-type", "string", pattern=r"\S",
           rule="a type as Spark writes it: `string`, `decimal(18,2)`, `array<string>`, `struct<a string, b int>`"),
]  # fmt: skip
Expression = Annotated[
    str,
    Scalar("an SQL expression", "bad-expression", "price > 0", pattern=r"\S",
           rule="a Spark SQL expression, such as `price > 0`"),
]  # fmt: skip
KafkaName = Annotated[
    str,
    Scalar("a Kafka topic's name", "bad-kafka-name", "sample_data_stock_trades", pattern=r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$(?!\n)",
           rule="letters, digits, `.`, `_` and `-`, 249 at most"),
]  # fmt: skip
Addresses = Annotated[
    str,
    Scalar("a Kafka address", "bad-address", "127.0.0.1:19092",
           pattern=r"^\s*(\[[0-9A-Fa-f:]+\]|[^\s,:/@]+):[0-9]{1,5}(\s*,\s*(\[[0-9A-Fa-f:]+\]|[^\s,:/@]+):[0-9]{1,5})*\s*$(?!\n)",
           rule="`host:port`, several with commas between: `kafka1:9092,kafka2:9092`"),
]  # fmt: skip
Url = Annotated[
    str,
    Scalar("an address", "bad-address", "http://127.0.0.1:18081", pattern=r"^https?://[^\s/\\@?#]+(/[^\s?#]*)?$(?!\n)",
           rule="`http://` or `https://`, a host and what follows it; a login is not part of it"),
]  # fmt: skip
Subject = Annotated[
    str,
    Scalar(
        "a subject",
        "bad-subject",
        "stock_trades-value",
        pattern=r"^[^\s](.{0,253}[^\s])?$(?!\n)",
        rule="the name as the registry has it",
    ),
]
Master = Annotated[
    str,
    Scalar("a Spark master", "bad-master", "local[*]",
           pattern=r"^(local(\[(\*|[1-9][0-9]{0,3})(, ?[1-9][0-9]{0,3})?\])?|yarn|(spark|k8s)://\S+)$(?!\n)",
           rule="`local[*]`, `spark://host:7077`, `k8s://…` or `yarn`"),
]  # fmt: skip
Owner = Annotated[
    str,
    Scalar("an owner", "bad-owner", "team:markets", pattern=r"^(team:[A-Za-z0-9_-]+|[^@\s:]+@[^@\s:.]+(\.[^@\s:.]+)+)$(?!\n)",
           rule="`team:markets` or a mail address"),
]  # fmt: skip
Schedule = Annotated[
    str,
    Scalar("a schedule", "bad-schedule", '"0 6 * * *"', pattern=cron.PATTERN, read=cron.read,
           rule='five fields as cron has them, in UTC: minute, hour, day, month, day of the week, such as `"0 6 * * *"` for 6:00 each day'),
]  # fmt: skip
Location = Annotated[
    str, Scalar("a path or an address", "bad-location", ".sluice/warehouse", pattern=r"^\S(.*\S)?$(?!\n)",
                rule="a path inside the project, or an address such as `s3://bucket/warehouse`"),
]  # fmt: skip
