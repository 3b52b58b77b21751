"""Messages whose bytes are damaged at random."""

from __future__ import annotations

import random


def broken(message: bytes, chance: random.Random) -> bytes:
    data = bytearray(message)
    for _ in range(chance.randint(1, 3)):
        index = chance.randrange(5, len(data) + 1)
        match chance.randrange(4):
            case 0:
                data = data[:index]
            case 1:
                data.insert(index, chance.randrange(256))
            case 2 if index < len(data):
                data[index] = chance.choice([0, 1, 255, 128, chance.randrange(256)])
            case _:
                data += data[index:]
    return bytes(data)
