"""Spelling help: the existing name that was probably meant by an unknown one. No other module
writes hints about names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

LONGEST = 100
"""The longest name, in characters, that is compared."""
MOST_COMPARED = 150
"""The most names that are compared; two take some ten microseconds."""
MOST_LISTED = 20


def did_you_mean(name: str, names: Iterable[str], otherwise: str) -> str:
    """The hint for a name that does not exist."""
    closest_name = closest(name, names)
    return f"did you mean `{closest_name}`?" if closest_name else otherwise


def listed(names: Iterable[str]) -> str:
    """The names for a hint; if there are very many, only the first."""
    all_names = list(names)
    rest = f" and {len(all_names) - MOST_LISTED:,} more" if len(all_names) > MOST_LISTED else ""
    return ", ".join(all_names[:MOST_LISTED]) + rest


def joined(texts: Sequence[str]) -> str:
    """The texts for a sentence: "a, b and c"."""
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else "".join(texts)


def the_names(noun: str, names: Iterable[str]) -> str:
    """The hint that names all things of a kind: "the topics are `orders` and `trades`"."""
    quoted_names = [f"`{name}`" for name in names]
    if len(quoted_names) == 1:
        return f"the {noun} is {quoted_names[0]}"
    if 1 < len(quoted_names) <= MOST_LISTED:
        return f"the {noun}s are {joined(quoted_names)}"
    return f"the {noun}s are {listed(quoted_names)}"


def closest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant; None if the distance is large, because a wrong guess costs more than none."""
    if not name or len(name) > LONGEST:
        return None
    plain = _plain(name)
    named = _likely(plain, {_plain(candidate): candidate for candidate in names if candidate})
    close_candidates = [
        (steps, candidate)
        for candidate in named
        if (steps := distance(plain, candidate, limit := _limit(plain, candidate))) <= limit
    ]
    if close_candidates:
        return named[min(close_candidates)[1]]
    prefix_matches = [candidate for candidate in named if _begins(plain, candidate) or _begins(candidate, plain)]
    return named[min(prefix_matches, key=len)] if prefix_matches else None


def _limit(name: str, candidate: str) -> int:
    """The allowed distance: one for three to six letters, two for seven to ten, and so on."""
    longer = max(len(name), len(candidate))
    return (longer + 1) // 4 if longer > 2 else 0


def distance(source: str, target: str, limit: int) -> int:
    """The number of letters to add, delete, replace or swap with a neighbour; any number above `limit` if it is more than that."""
    if abs(len(source) - len(target)) > limit:
        return limit + 1
    above: list[int] = []
    row = list(range(len(target) + 1))
    for index, letter in enumerate(source, 1):
        two_above, above, row = above, row, [index]
        for place, second in enumerate(target, 1):
            cost = min(above[place] + 1, row[-1] + 1, above[place - 1] + (letter != second))
            if index > 1 and place > 1 and letter == target[place - 2] and source[index - 2] == second:
                cost = min(cost, two_above[place - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def _plain(name: str) -> str:
    """The name in one spelling: `orderId` and `order-id` become `order_id`."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def _likely(name: str, named: Mapping[str, str]) -> Mapping[str, str]:
    """The names to compare; if there are very many, only those with the same first letter and about the same length."""
    if len(named) <= MOST_COMPARED:
        return named
    alike = [candidate for candidate in named if candidate[:1] == name[:1] and abs(len(candidate) - len(name)) < 3]
    return {candidate: named[candidate] for candidate in alike[: MOST_COMPARED // 3]}


def _begins(short: str, long: str) -> bool:
    """Whether the long name begins with the short one, as `value` with `val`."""
    return len(short) > 2 and long.startswith(short)
