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
"""The most bytes of a text that can be inserted anywhere: so many for each byte of a message are no danger."""


def _bytes(piece: Piece) -> str:
    return f"cast(octet_length({piece.sql}) AS BIGINT)"


def _large(use: Use) -> str:
    return f"the result of {use.name} is too large"


def repeated(use: Use) -> str:
    """`repeat`, `space`, `array_repeat`: so many times what stands before."""
    times = use.arguments[-1]
    if times.constant is not None:
        use.integer(times, 0, LONGEST_PAD)
        return use.sql()
    size = _bytes(use.arguments[0]) if use.name == "repeat" else "1"
    most = MOST_ITEMS if use.name == "array_repeat" else LONGEST
    return use.sql(*(each.sql for each in use.arguments[:-1]), guard(f"{size} * {times.sql} <= {most}", times.sql, _large(use)))


def padded(use: Use) -> str:
    length = use.arguments[1]
    if length.constant is not None:
        use.integer(length, 0, LONGEST_PAD)
        return use.sql()
    return use.sql(use.arguments[0].sql, guard(f"{length.sql} <= {LONGEST_PAD}", length.sql, _large(use)))


def sequence(use: Use) -> str:
    start, stop, *step = use.arguments
    first, last = whole(start), whole(stop)
    if first is not None and last is not None and abs(last - first) > MOST_ITEMS:
        raise use.fault(f"makes at most {MOST_ITEMS:,} items", "name numbers that are nearer to each other")
    if start.type == TIMESTAMP:
        each = intervals.seconds(step[0].constant or "")
        if not each:
            raise use.fault("takes a literal interval here", "write for example interval 1 hour", step[0])
        most = each * MOST_ITEMS
        fits = f"abs(cast(unix_seconds({stop.sql}) AS DOUBLE) - unix_seconds({start.sql})) <= {most}"
        return use.sql(start.sql, guard(fits, stop.sql, _large(use)))
    far = f"datediff({stop.sql}, {start.sql})" if str(start.type) == "date" else f"(cast({stop.sql} AS DOUBLE) - {start.sql})"
    by = f" / {step[0].sql}" if step and str(start.type) != "date" else ""
    return use.sql(start.sql, guard(f"abs({far}{by}) <= {MOST_ITEMS}", stop.sql, _large(use)))


def small(piece: Piece, each: Piece | None = None) -> bool:
    """Whether a literal is small, on its own or compared with the text that it replaces."""
    replaced = len(each.constant.encode()) if each and each.constant else 1
    return piece.constant is not None and len(piece.constant.encode()) <= SMALL * replaced


def replace(use: Use) -> str:
    text, search, *by = use.arguments
    if not by or small(by[0], search):
        return use.sql()
    # The bound for a text that consists of nothing but the searched text.
    most = f"{LONGEST}L * greatest(octet_length({search.sql}), 1)"
    fits = f"{text.sql} IS NULL OR {search.sql} IS NULL OR {_bytes(text)} * octet_length({by[0].sql}) <= {most}"
    return use.sql(guard(fits, text.sql, _large(use)))


def regexp_replace(use: Use) -> str:
    text, pattern, by, *_ = use.arguments
    patterns.replacement(by, patterns.regular(pattern))
    if small(by):
        return use.sql()
    return use.sql(guard(f"{_bytes(text)} <= {LONGEST // len((by.constant or ' ').encode())}", text.sql, _large(use)))


def array_join(use: Use) -> str:
    items, between, *_ = use.arguments
    if small(between):
        return use.sql()
    fits = f"cast(size({items.sql}) AS BIGINT) * octet_length({between.sql}) <= {LONGEST}"
    return use.sql(guard(fits, items.sql, _large(use)))


def concat_ws(use: Use) -> str:
    if not small(use.arguments[0]) and any(str(piece.type).startswith("array") for piece in use.arguments):
        why = f"takes between the items of a list a literal of at most {SMALL} bytes"
        raise use.fault(why, "array_join(x, separator) takes any text", use.arguments[0])
    return use.sql()


def levenshtein(use: Use) -> str:
    one, other, *_ = use.arguments
    fits = f"{_bytes(one)} * octet_length({other.sql}) <= {_COMPARED}"
    return use.sql(guard(fits, one.sql, "the texts of levenshtein are too long"))


def compared(use: Use) -> str:
    """`array_distinct`, `array_union`: of lists of structs, or of lists, Spark compares each item with each."""
    one, other = use.arguments[0], use.arguments[-1]
    if isinstance(one.type, Array) and isinstance(one.type.element, Atom | Decimal):
        return use.sql()
    fits = f"cast(size({one.sql}) AS BIGINT) * size({other.sql}) <= {_COMPARED}"
    return use.sql(guard(fits, one.sql, "the lists are too long to compare"))


def formatted(use: Use) -> str:
    """`format_string`: a width is at most as large as a pad."""
    form = patterns.text(use.arguments[0], "a format")
    if any(len(number) > 9 or int(number) > LONGEST_PAD for number in re.findall(r"\d+", form)):
        raise use.fault(f"pads to at most {LONGEST_PAD:,} characters", "write a smaller width", use.arguments[0])
    return use.sql()


def item(use: Use) -> str:
    """`element_at`: Spark reads outside the list for the smallest int, which ends the JVM."""
    of, at = use.arguments
    if not str(of.type).startswith("array") or at.constant is not None:
        return use.sql()
    return use.sql(of.sql, guard(f"{at.sql} > -2147483648", at.sql, "there is no such item"))


def keyed(use: Use) -> str:
    """`map_from_arrays`, `transform_keys`: a null key would leave the others in Spark's builder, for the map of the next row."""
    if use.name == "transform_keys":
        each = use.arguments[1]
        return use.sql(
            use.arguments[0].sql, f"{each.arrow}coalesce({each.sql.removeprefix(each.arrow)}, raise_error('{NO_KEY}'))"
        )
    return use.sql(guard(f"NOT exists({use.arguments[0].sql}, k -> k IS NULL)", use.arguments[0].sql, NO_KEY))


def plain_xml(text: str) -> str:
    """A text without a DOCTYPE: with one it could name files, and entities that grow without end."""
    return guard(f"NOT contains({text}, '<!DOCTYPE')", text, "XML with a DOCTYPE is not read")


def xpath(use: Use) -> str:
    patterns.text(use.arguments[1], "a path")
    return use.sql(plain_xml(use.arguments[0].sql))


def at_first(check: Callable[[Use, Piece], object], index: int) -> Callable[[Use], str]:
    """The call as it is, once the literal at this place is checked."""

    def checked(use: Use) -> str:
        if index < len(use.arguments):
            check(use, use.arguments[index])
        return use.sql()

    return checked


def grouped(use: Use) -> str:
    """`regexp_extract` and its like: the group is one of the pattern's."""
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
