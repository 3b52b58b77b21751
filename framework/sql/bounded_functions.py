"""Functions that could take all memory or days for one row, or whose literals are checked before any row: the SQL of their calls.

A message must not decide how large a result is: a result over the bound is an error of that row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from framework.base.types import STRING, TIMESTAMP, Array, Atom, Decimal
from framework.sql import intervals, patterns
from framework.sql.arguments import Use
from framework.sql.literals import whole
from framework.sql.pieces import Piece, guard

LONGEST = 1 << 27
"""The most bytes of a result in which a message decides how often one text is repeated."""
MOST_ITEMS = 1_000_000
"""The most items of a list that is made of numbers."""
LONGEST_PAD = 10_000
_COMPARED = 100_000_000  # pairs of characters or items
NO_KEY = "a key of the map is null"
SMALL = 16
"""The most bytes of a text that can be inserted anywhere: a result with this many for each byte of a message is not too large."""


def _bytes(piece: Piece) -> str:
    return f"cast(octet_length({piece.sql}) AS BIGINT)"


def _large(use: Use) -> str:
    return f"the result of {use.name} is too large"


def repeated(use: Use) -> str:
    """Returns SQL of `repeat`, `space` or `array_repeat`, with a limit on how often they repeat."""
    times = use.arguments[-1]
    if times.constant is not None:
        use.integer(times, 0, LONGEST_PAD)
        return use.sql()
    size = _bytes(use.arguments[0]) if use.name == "repeat" else "1"
    limit = MOST_ITEMS if use.name == "array_repeat" else LONGEST
    return use.sql(
        *(piece.sql for piece in use.arguments[:-1]), guard(f"{size} * {times.sql} <= {limit}", times.sql, _large(use))
    )


def padded(use: Use) -> str:
    length = use.arguments[1]
    if length.constant is not None:
        use.integer(length, 0, LONGEST_PAD)
        return use.sql()
    return use.sql(use.arguments[0].sql, guard(f"{length.sql} <= {LONGEST_PAD}", length.sql, _large(use)))


def sequence(use: Use) -> str:
    start, stop, *step = use.arguments
    start_number, stop_number = whole(start), whole(stop)
    if start_number is not None and stop_number is not None and abs(stop_number - start_number) > MOST_ITEMS:
        raise use.fault(f"makes at most {MOST_ITEMS:,} items", "name numbers that are nearer to each other")
    if start.type == TIMESTAMP:
        step_seconds = intervals.seconds(step[0].constant or "")
        if not step_seconds:
            raise use.fault("takes a literal interval here", "write for example interval 1 hour", step[0])
        limit = step_seconds * MOST_ITEMS
        fits = f"abs(cast(unix_seconds({stop.sql}) AS DOUBLE) - unix_seconds({start.sql})) <= {limit}"
        return use.sql(start.sql, guard(fits, stop.sql, _large(use)))
    distance = (
        f"datediff({stop.sql}, {start.sql})" if str(start.type) == "date" else f"(cast({stop.sql} AS DOUBLE) - {start.sql})"
    )
    divisor = f" / {step[0].sql}" if step and str(start.type) != "date" else ""
    return use.sql(start.sql, guard(f"abs({distance}{divisor}) <= {MOST_ITEMS}", stop.sql, _large(use)))


def small(piece: Piece, search: Piece | None = None) -> bool:
    """Whether a literal is small, alone or compared with the text `search` that it replaces."""
    replaced = len(search.constant.encode()) if search and search.constant else 1
    return piece.constant is not None and len(piece.constant.encode()) <= SMALL * replaced


def replace(use: Use) -> str:
    text, search, *replacements = use.arguments
    if not replacements or small(replacements[0], search):
        return use.sql()
    # The bound for a text that consists of nothing but the searched text.
    limit = f"{LONGEST}L * greatest(octet_length({search.sql}), 1)"
    fits = f"{text.sql} IS NULL OR {search.sql} IS NULL OR {_bytes(text)} * octet_length({replacements[0].sql}) <= {limit}"
    return use.sql(guard(fits, text.sql, _large(use)))


def regexp_replace(use: Use) -> str:
    text, pattern, replacement, *_ = use.arguments
    patterns.replacement(replacement, patterns.regular(pattern))
    if small(replacement):
        return use.sql()
    return use.sql(guard(f"{_bytes(text)} <= {LONGEST // len((replacement.constant or ' ').encode())}", text.sql, _large(use)))


def array_join(use: Use) -> str:
    items, separator, *_ = use.arguments
    if small(separator):
        return use.sql()
    fits = f"cast(size({items.sql}) AS BIGINT) * octet_length({separator.sql}) <= {LONGEST}"
    return use.sql(guard(fits, items.sql, _large(use)))


def concat_ws(use: Use) -> str:
    if not small(use.arguments[0]) and any(str(piece.type).startswith("array") for piece in use.arguments):
        problem = f"takes between the items of a list a literal of at most {SMALL} bytes"
        raise use.fault(problem, "array_join(x, separator) takes any text", use.arguments[0])
    return use.sql()


def levenshtein(use: Use) -> str:
    first_text, second_text, *_ = use.arguments
    fits = f"{_bytes(first_text)} * octet_length({second_text.sql}) <= {_COMPARED}"
    return use.sql(guard(fits, first_text.sql, "the texts of levenshtein are too long"))


def compared(use: Use) -> str:
    """Returns SQL of `array_distinct`, `array_union` and the like. In lists of structs, or of lists, Spark compares each item with each."""
    first_list, second_list = use.arguments[0], use.arguments[-1]
    if isinstance(first_list.type, Array) and isinstance(first_list.type.element, Atom | Decimal):
        return use.sql()
    fits = f"cast(size({first_list.sql}) AS BIGINT) * size({second_list.sql}) <= {_COMPARED}"
    return use.sql(guard(fits, first_list.sql, "the lists are too long to compare"))


def formatted(use: Use) -> str:
    """Returns SQL of `format_string`, whose widths are at most as large as a pad."""
    form = patterns.text(use.arguments[0], "a format")
    if any(len(number) > 9 or int(number) > LONGEST_PAD for number in re.findall(r"\d+", form)):
        raise use.fault(f"pads to at most {LONGEST_PAD:,} characters", "write a smaller width", use.arguments[0])
    return use.sql()


def item(use: Use) -> str:
    """Returns SQL of `element_at`. For the smallest int Spark reads outside the list, which ends the JVM."""
    items, index = use.arguments
    if not str(items.type).startswith("array") or index.constant is not None:
        return use.sql()
    return use.sql(items.sql, guard(f"{index.sql} > -2147483648", index.sql, "there is no such item"))


def keyed(use: Use) -> str:
    """Returns SQL of `map_from_arrays` or `transform_keys`. A null key would leave the row's other keys in Spark's builder, for
    the map of the next row."""
    if use.name == "transform_keys":
        function = use.arguments[1]
        return use.sql(
            use.arguments[0].sql,
            f"{function.arrow}coalesce({function.sql.removeprefix(function.arrow)}, raise_error('{NO_KEY}'))",
        )
    return use.sql(guard(f"NOT exists({use.arguments[0].sql}, k -> k IS NULL)", use.arguments[0].sql, NO_KEY))


def plain_xml(text: str) -> str:
    """Returns SQL of a text without a DOCTYPE: with one it could name files, and entities that grow without end."""
    return guard(f"NOT contains({text}, '<!DOCTYPE')", text, "XML with a DOCTYPE is not read")


def xpath(use: Use) -> str:
    patterns.text(use.arguments[1], "a path")
    return use.sql(plain_xml(use.arguments[0].sql))


def at_first(check: Callable[[Use, Piece], object], index: int) -> Callable[[Use], str]:
    """Returns a function that checks the literal at this index, and gives the call unchanged."""

    def checked(use: Use) -> str:
        if index < len(use.arguments):
            check(use, use.arguments[index])
        return use.sql()

    return checked


def grouped(use: Use) -> str:
    """Returns SQL of `regexp_extract` and the like, whose group must be one of the pattern's."""
    _, pattern, *group = use.arguments
    groups = patterns.regular(pattern)
    if not group and not groups:
        hint = "put parentheses around what is wanted, or give 0 for the whole match"
        raise use.fault("takes the first group, but the pattern has none", hint)
    if group:
        use.integer(group[0], 0, groups)
    return use.sql()


def _matches(use: Use, piece: Piece) -> object:
    return patterns.regular(piece)


def _reads(use: Use, piece: Piece) -> object:
    return patterns.dates(piece, parsing=True)


def _writes(use: Use, piece: Piece) -> object:
    return patterns.dates(piece, parsing=False)


def _of_time(use: Use, piece: Piece) -> object:
    return use.word(piece, _UNITS)


def _of_date(use: Use, piece: Piece) -> object:
    return use.word(piece, _UNITS[:8])


def _bits(use: Use, piece: Piece) -> object:
    if whole(piece) not in (0, 224, 256, 384, 512):
        raise use.fault("knows 224, 256, 384 and 512 bits", "write one of them, such as sha2(x, 256)", piece)
    return None


def _places(use: Use, piece: Piece) -> object:
    return patterns.text(piece, "a format") if piece.type == STRING else use.integer(piece, 0, 100)


def _is_text(use: Use, piece: Piece) -> object:
    return patterns.text(piece, f"this argument of {use.name}")


def _size_of_sketch(use: Use, piece: Piece) -> object:
    return use.integer(piece, 4, 26)


def _share(use: Use, piece: Piece) -> object:
    try:
        fits = 0 <= float(piece.constant or "") <= 1
    except ValueError:
        fits = False
    if not fits:
        raise use.fault("takes a literal number from 0 to 1 here", "0.5 is the median", piece)
    return fits


def _delimiters(use: Use) -> str:
    for piece in use.arguments[1:]:
        patterns.regular(piece)
    return use.sql()


_UNITS = (
    "year", "yyyy", "yy", "quarter", "month", "mon", "mm", "week",
    "day", "dd", "hour", "minute", "second", "millisecond", "microsecond",
)  # fmt: skip
_READING = (
    "to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz", "try_to_date", "try_to_timestamp", "unix_timestamp",
    "to_unix_timestamp",
)  # fmt: skip

TABLE: Mapping[str, Callable[[Use], str]] = {
    **dict.fromkeys(("repeat", "space", "array_repeat"), repeated),
    **dict.fromkeys(("lpad", "rpad"), padded),
    "sequence": sequence,
    "replace": replace,
    "regexp_replace": regexp_replace,
    "array_join": array_join,
    "concat_ws": concat_ws,
    "levenshtein": levenshtein,
    **dict.fromkeys(("array_distinct", "array_except", "array_intersect", "array_union", "arrays_overlap"), compared),
    **dict.fromkeys(("format_string", "printf"), formatted),
    **dict.fromkeys(("element_at", "try_element_at"), item),
    **dict.fromkeys(("regexp_extract", "regexp_extract_all"), grouped),
    **dict.fromkeys(("regexp_count", "regexp_instr", "regexp_like", "regexp_substr", "split"), at_first(_matches, 1)),
    "str_to_map": _delimiters,
    **dict.fromkeys(("map_from_arrays", "transform_keys"), keyed),
    **dict.fromkeys(_READING, at_first(_reads, 1)),
    **dict.fromkeys(("date_format", "from_unixtime"), at_first(_writes, 1)),
    "date_trunc": at_first(_of_time, 0),
    "trunc": at_first(_of_date, 1),
    "sha2": at_first(_bits, 1),
    **dict.fromkeys(("parse_url", "try_parse_url"), at_first(_is_text, 2)),
    **dict.fromkeys(("to_char", "to_varchar", "to_binary", "try_to_binary"), at_first(_is_text, 1)),
    "format_number": at_first(_places, 1),
    "theta_union": at_first(_size_of_sketch, 2),
    **dict.fromkeys((f"kll_sketch_get_quantile_{type}" for type in ("bigint", "double", "float")), at_first(_share, 1)),
    **dict.fromkeys(
        ("xpath", *(f"xpath_{type}" for type in ("boolean", "double", "float", "int", "long", "number", "short", "string"))),
        xpath,
    ),
}
