"""A short text for the offsets of many partitions: each commit has it in its snapshot's summary, and a metadata file has all of these."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from itertools import pairwise

_MAX_READABLE = 8  # up to so many partitions stay readable


def packed(ends: Mapping[str, int]) -> dict[str, int | str]:
    """The offsets of each topic of many partitions as one text: differences from partition to partition, seven bits a byte."""
    by_topic: dict[str, dict[int, int]] = {}
    for partition, end in ends.items():
        topic, _, number = partition.rpartition("/")
        by_topic.setdefault(topic, {})[int(number)] = end
    short: dict[str, int | str] = {}
    for topic, offsets in by_topic.items():
        if len(offsets) > _MAX_READABLE and offsets.keys() == set(range(len(offsets))):
            in_order = (0, *(offsets[number] for number in range(len(offsets))))
            data = b"".join(_bytes(end - previous) for previous, end in pairwise(in_order))
            short[topic] = base64.b64encode(data).decode()
        else:
            short |= {f"{topic}/{number}": end for number, end in offsets.items()}
    return short


def unpacked(short: Mapping[str, int | str]) -> dict[str, int]:
    ends: dict[str, int] = {}
    for name, value in short.items():
        if isinstance(value, int):
            ends[name] = value
            continue
        end = 0
        for number, difference in enumerate(_numbers(base64.b64decode(value, validate=True))):
            end += difference
            ends[f"{name}/{number}"] = end
    return ends


def _bytes(number: int) -> bytes:
    """Encodes a number. Small numbers are few bytes, negative ones too; the last byte has its highest bit clear."""
    rest = number * 2 if number >= 0 else -number * 2 - 1
    data = bytearray()
    while rest >= 128:
        data.append(rest % 128 + 128)
        rest //= 128
    data.append(rest)
    return bytes(data)


def _numbers(data: bytes) -> Iterator[int]:
    value = place = 0
    for byte in data:
        value += (byte & 127) << place
        place += 7
        if byte < 128:
            yield -(value + 1) // 2 if value % 2 else value // 2
            value = place = 0
    if place:
        raise ValueError("it is cut off")
