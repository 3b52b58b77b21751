"""Words and operators that MySQL, PostgreSQL, Snowflake, BigQuery and T-SQL have, and what to write in their place here.

This table is read before any guess by spelling. A function that Sluice gets is removed from this table; a test checks that.
"""

from __future__ import annotations

NOTHING = "no function here does that; a step of your own, in Python, can"
FIELDS = "give the field its type in the topic's `columns`, such as struct<building:string>, then write `place.building`"
_UTC = "times are in UTC here; a fixed distance is added: `t + interval 1 hour`"
_PLUS, _MINUS = "write `t + interval 1 day`", "write `t - interval 1 day`"
_CAST = "write `cast(s as int)`, or `try_cast(s as int)` for null where it is no number"
_CASE = "write `case s when 'a' then 1 when 'b' then 2 else 0 end`"
_BETWEEN = "write `datediff(d, date'2026-01-01')` for days, or `unix_timestamp(t) - unix_timestamp(t)` for seconds"

_WRITE = {
    "lcase": "write `lower(s)`",
    "ucase": "write `upper(s)`",
    "len character_length lengthb": "write `length(s)`",
    "mid substring_regex": "write `substring(s, 1, 3)`",
    "charindex position strpos": "write `instr(s, 'a')`: the text first, then the text to find",
    "split_part strtok": "write `try_element_at(split(s, ','), 2)`",
    "string_split string_to_array strtok_to_array regexp_split_to_array": "write `split(s, ',')`",
    "starts_with": "write `startswith(s, 'a')`",
    "ends_with": "write `endswith(s, 'a')`",
    "contains_substr": "write `contains(lower(s), 'a')`",
    "strcmp": "write `s = 'a'`",
    "repeat replicate": "write `rpad('', 6, 'ab')` for three times 'ab'",
    "space": "write `rpad('', 3, ' ')`",
    "btrim": "write `trim(s)`",
    "overlay stuff insert": "write `concat(substring(s, 1, 2), 'x', substring(s, 4))`",
    "format_string printf format": "write `concat('no. ', cast(i as string))`",
    "to_char to_varchar string text varchar str": "write `cast(n as string)`, or `date_format(t, 'yyyy-MM-dd')` for a time",
    "regexp_substr regexp_match regexp_matches": "write `regexp_extract(s, '([0-9]+)', 1)`",
    "regexp_contains regexp_instr": "write `s rlike '[0-9]+'`",
    "regexp_count": "write `size(split(s, 'a')) - 1`",
    "decode field elt choose switch": _CASE,
    "iff iif": "write `if(b, 1, 2)`",
    "nullifzero": "write `nullif(i, 0)`",
    "zeroifnull": "write `coalesce(i, 0)`",
    "equal_null": "write `s <=> 'a'`",
    "nanvl": "write `if(isnan(n), 0, n)`",
    "safe_divide div0 divide": "write `try_divide(n, i)`",
    "truncate": "write `floor(n)`",
    "square": "write `n * n`",
    "log": "write `ln(n)`, `log2(n)` or `log10(n)`",
    "convert try_convert to_number to_numeric to_decimal int integer bigint smallint tinyint double float real decimal number": _CAST,
    "safe_cast try_to_number try_to_decimal": "write `try_cast(s as int)`",
    "boolean bool to_boolean": "write `cast(s as boolean)`",
    "to_hex conv": "write `hex(i)` for digits to the base of 16",
    "sha sha1": "write `sha2(s, 256)`",
    "hash xxhash64 farm_fingerprint checksum": "write `crc32(s)` or `md5(s)`",
    "to_base64": "write `base64(cast(s as binary))`",
    "encode to_binary": "write `cast(s as binary)`",
    "extract date_part datepart": "write `year(t)`, `month(t)`, `day(t)`, `hour(t)` or `unix_timestamp(t)`",
    "week isoweek week_iso": "write `weekofyear(d)`",
    "dayname datename": "write `date_format(d, 'EEEE')`",
    "monthname": "write `date_format(d, 'MMMM')`",
    "dateadd timestampadd adddate timestamp_add datetime_add addtime": _PLUS,
    "subdate datesub timestamp_sub datetime_sub subtime": _MINUS,
    "date_diff timestampdiff timestamp_diff datetime_diff timediff age": _BETWEEN,
    "months_between": "write `(year(d) - year(t)) * 12 + month(d) - month(t)`",
    "timestamp_trunc datetime_trunc datetrunc": "write `date_trunc('month', t)`",
    "eomonth": "write `last_day(d)`",
    "datefromparts date_from_parts": "write `make_date(2026, 1, 31)`",
    "date str_to_date parse_date": "write `to_date(s, 'yyyy-MM-dd')`",
    "timestamp datetime strptime parse_timestamp parse_datetime to_timestamp_ntz to_timestamp_ltz to_timestamp_tz": (
        "write `to_timestamp(s, 'yyyy-MM-dd HH:mm:ss')`"
    ),
    "strftime format_date format_timestamp format_datetime time_format": "write `date_format(t, 'yyyy-MM-dd')`",
    "epoch to_unixtime unix_epoch": "write `unix_timestamp(t)`",
    "epoch_ms to_millis": "write `unix_millis(t)`",
    "from_utc_timestamp to_utc_timestamp convert_timezone convert_tz timezone": _UTC,
    "get_json_object json_extract json_value json_query json_extract_scalar json_extract_string json_unquote jsonb_path_query": FIELDS,
    "json_extract_path json_extract_path_text jsonb_extract_path_text parse_json try_parse_json variant_get get_path": FIELDS,
    "array_length array_count list_size": "write `size(list)`",
    "list_contains array_includes": "write `array_contains(list, 'a')`",
    "array_to_string": "write `array_join(list, ',')`",
    "unnest": "write `array_contains(list, 'a')`, or use the step `explode` to make a row of every item",
    "struct row object_construct json_object": "write `named_struct('building', s, 'floor', i)`",
    "object_keys json_keys": "write `map_keys(codes)`",
    "array_append array_cat array_concat slice sequence generate_series map map_concat next_day bin unhex": NOTHING,
    "make_timestamp sin cos tan asin acos atan atan2 pi degrees radians unbase64 from_base64 url_decode url_encode": NOTHING,
    "parse_url soundex levenshtein editdistance width_bucket regexp_extract_all to_json chr char": NOTHING,
}
WRITE: dict[str, str] = {word: hint for words, hint in _WRITE.items() for word in words.split()}
"""A function of other dialects, and what to write here. What stands in backquotes is an expression that is allowed."""

UNITS = frozenset(
    ("microsecond", "millisecond", "second", "minute", "hour", "day", "dow", "doy", "week", "month", "quarter", "year")
)
"""Units of time, which other dialects write without quotes."""

INFIX = {
    "mod": "write `i % 2`",
    "xor": "write `a <> b`, or `i ^ 3` for bits",
    "similar": "write `s rlike '[0-9]+'`",
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
    "placing": "write `concat(substring(s, 1, 2), 'x', substring(s, 4))`",
    "from": "the arguments stand between commas: `substring(s, 1, 3)`, `trim(s)`",
    "~": "write `s rlike '[0-9]+'`",
}
"""Words after a value. They are no operators here, so they end the value."""
PAIRS = {
    ("&", "&"): "write `a and b`",
    ("*", "*"): "write `pow(n, 2)`",
    ("/", "/"): "write `i div 2`",
    ("=", "<"): "write `i <= 1`",
    ("=", "!"): "write `i <> 1`",
    ("!", "~"): "write `not s rlike '[0-9]+'`",
}
"""Two marks that are one operator elsewhere."""
MARKS = {
    "@>": "write `array_contains(list, 'a')`",
    "#>": FIELDS,
    "@": "a variable is ${var:NAME}",
    "#": "a comment stands above, as YAML has it: # …",
}
"""Hints for text that begins with a mark that has no meaning here."""
