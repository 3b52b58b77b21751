"""Words and operators of MySQL, PostgreSQL, Snowflake, BigQuery and T-SQL, and what to write in their place here.

This table is read before any guess by spelling. A function that Sluice gets is removed from this table; a test checks that.
"""

from __future__ import annotations

FIELDS = "give the field its type in the topic's `columns`, such as struct<building:string>, then write `place.building`"
_JSON = "write `get_json_object(s, '$.a')`, or give the field its type in the topic's `columns`"
_UTC = "times are in UTC here; another zone's: `from_utc_timestamp(t, 'Europe/Berlin')`"
_PLUS, _MINUS = "write `t + interval 1 day`", "write `t - interval 1 day`"
_CAST = (
    "write `cast(s as int)`, or `try_cast(s as int)` for null where it is no number; with a fraction `cast(s as decimal(18, 2))`"
)
_SPLIT = "write `split(s, ',')`; the separator is a regular expression: `split(s, '[.]')` for a dot"
_CASE = "write `case s when 'a' then 1 when 'b' then 2 else 0 end`"
_BETWEEN = (
    "write `datediff(d, date'2026-01-01')` for days, or `timestampdiff(second, timestamp'2026-01-01 00:00:00', t)` for seconds"
)

_WRITE = {
    "lengthb": "write `octet_length(s)`",
    "substring_regex": "write `substring(s, 1, 3)`",
    "strtok": "write `try_element_at(split(s, ','), 2)`",
    "string_split string_to_array strtok_to_array regexp_split_to_array": _SPLIT,
    "contains_substr": "write `contains(lower(s), 'a')`",
    "strcmp": "write `s = 'a'`, `s < 'a'` or `s > 'a'`",
    "stuff insert": "write `overlay(s placing 'x' from 2 for 3)`",
    "format": "write `format_string('no. %d', i)`, or `format_number(n, 2)` for a number with commas",
    "text varchar str": "write `cast(n as string)`, or `date_format(t, 'yyyy-MM-dd')` for a time",
    "regexp_match regexp_matches": "write `s rlike '[0-9]+'` for whether it matches, or `regexp_extract(s, '([0-9]+)', 1)` for the text",
    "field choose switch": _CASE,
    "div0": "write `if(i = 0, 0, n / i)`",
    "divide": "write `n / i`",
    "truncate": "write `cast(n as bigint)`, or `cast(n * 100 as bigint) / 100` for two digits behind the point",
    "square": "write `n * n`",
    "convert try_convert integer": _CAST,
    "to_numeric to_decimal number": "write `cast(s as decimal(18, 2))`, with as many digits behind the point as you need",
    "real": "write `cast(s as float)`",
    "try_to_decimal": "write `try_cast(s as decimal(18, 2))`, with as many digits behind the point as you need",
    "bool to_boolean": "write `cast(s as boolean)`",
    "to_hex": "write `hex(i)` for digits to the base of 16",
    "farm_fingerprint checksum": "write `crc32(s)` or `md5(s)`",
    "week isoweek week_iso": "write `weekofyear(d)`",
    "datename": "write `date_format(d, 'EEEE')`",
    "adddate timestamp_add datetime_add addtime": _PLUS,
    "subdate datesub timestamp_sub datetime_sub subtime": _MINUS,
    "timestamp_diff datetime_diff timediff age": _BETWEEN,
    "timestamp_trunc datetime_trunc datetrunc": "write `date_trunc('month', t)`",
    "str_to_date parse_date": "write `to_date(s, 'yyyy-MM-dd')`",
    "datetime strptime parse_timestamp parse_datetime to_timestamp_tz": ("write `to_timestamp(s, 'yyyy-MM-dd HH:mm:ss')`"),
    "strftime format_date format_timestamp format_datetime time_format": "write `date_format(t, 'yyyy-MM-dd')`",
    "epoch to_unixtime unix_epoch": "write `unix_timestamp(t)`",
    "epoch_ms to_millis": "write `unix_millis(t)`",
    "convert_tz timezone": _UTC,
    "json_extract json_value json_query json_extract_scalar json_extract_string json_unquote jsonb_path_query": _JSON,
    "json_extract_path json_extract_path_text jsonb_extract_path_text get_path": _JSON,
    "array_count list_size": "write `size(list)`",
    "unnest": "write `array_contains(list, 'a')`, or use the step `explode` to make a row of every item",
    "row object_construct json_object": "write `named_struct('building', s, 'floor', i)`",
    "object_keys json_keys": "write `map_keys(codes)`",
    "array_cat array_concat": "write `concat(list, array('a'))`",
    "generate_series": "write `sequence(1, i)`",
}
WRITE: dict[str, str] = {word: hint for words, hint in _WRITE.items() for word in words.split()}
"""Functions of other dialects, and what to write here. Text in backquotes is an expression that is allowed."""

UNITS = frozenset(
    ("microsecond", "millisecond", "second", "minute", "hour", "day", "dow", "doy", "week", "month", "quarter", "year")
)
"""Units of time, which other dialects write without quotes."""

INFIX = {
    "mod": "write `i % 2`",
    "xor": "write `a <> b`, or `i ^ 3` for bits",
    "similar": "write `s like 'a%'`, or `s rlike '^[0-9]+$'` for a pattern of the whole text",
    "glob": "write `s like 'a%'`",
    "isnull": "write `s is null`",
    "notnull": "write `s is not null`",
    "at": _UTC,
    "collate": "write `lower(s) = 'a'`",
    "member": "write `array_contains(list, 'a')`",
    "starts": "write `startswith(s, 'a')`",
    "ends": "write `endswith(s, 'a')`",
    "contains": "write `contains(s, 'a')`",
    "unnest": "write `array_contains(list, 'a')`",
    "placing": "write `overlay(s placing 'x' from 2)`",
    "~": "write `s rlike '[0-9]+'`",
}
"""Words after a value. They are no operators here, so they end the value."""
PAIRS = {
    ("&", "&"): "write `a and b`",
    ("*", "*"): "write `pow(n, 2)`",
    ("/", "/"): "write `i div 2`",
    ("=", "<"): "write `i <= 1`",
    ("=", "!"): "write `i <> 1`",
    ("!", "~"): "write `not s rlike '[0-9]+'`, with (?i) in front of the pattern to ignore case",
    ("~", "*"): "write `s rlike '(?i)[a-z]+'`",
}
"""Two marks that are one operator elsewhere."""
MARKS = {
    "@>": "write `array_contains(list, 'a')`",
    "#>": FIELDS,
    "@": "a variable is ${var:NAME}",
    "#": "a comment stands above, as YAML has it: # …",
}
"""Hints for text that begins with a mark that has no meaning here."""
