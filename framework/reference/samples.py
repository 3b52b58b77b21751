"""Expressions and their values for the row `ROW`, as Spark prints them, for the page on expressions; a test compares with Spark."""

from __future__ import annotations

from framework import types

ROW = {
    "symbol": ("string", "'ZVZZT'"),
    "quantity": ("int", "10"),
    "price": ("double", "2.5"),
    "at": ("timestamp", "timestamp'2026-01-31 10:15:30'"),
    "day": ("date", "date'2026-01-31'"),
    "tags": ("array<string>", "array('new', 'big', 'new')"),
    "place": ("struct<building:string,floor:int>", "named_struct('building', 'A', 'floor', 3)"),
    "codes": ("map<string,int>", "map('x', 1, 'y', 2)"),
}
"""Each column's type and value."""
COLUMNS = {name: types.parse(type) for name, (type, _) in ROW.items()}

OPERATORS = """
Numbers
quantity + 1 -> 11
quantity - 1 -> 9
quantity * 2 -> 20
quantity / 4 -> 2.5
quantity % 4 -> 2
quantity div 4 -> 2
-quantity -> -10
+quantity -> 10
quantity & 3 -> 2
quantity | 3 -> 11
quantity ^ 3 -> 9
~quantity -> -11

Text
symbol || '-1' -> ZVZZT-1
symbol like 'ZV%' -> true
symbol ilike 'zv%' -> true
symbol rlike '^Z[A-Z]+$' -> true

Comparing
quantity = 10 -> true
quantity == 10 -> true
quantity <> 10 -> false
quantity != 10 -> false
quantity < 10 -> false
quantity <= 10 -> true
quantity > 10 -> false
quantity >= 10 -> true
quantity between 1 and 10 -> true
quantity in (5, 10) -> true
symbol is null -> false
symbol is not null -> true
quantity <=> 10 -> true
quantity is distinct from 10 -> false

Conditions
quantity > 0 and price > 5 -> false
quantity > 0 or price > 5 -> true
not price > 5 -> true
(price > 5) is true -> false
case when price > 5 then 'HIGH' else 'LOW' end -> LOW
case symbol when 'ZVZZT' then 1 else 0 end -> 1

Dates and times
at + interval 90 minutes -> 2026-01-31 11:45:30
at - interval 1 day -> 2026-01-30 10:15:30
day + interval 1 month -> 2026-02-28
day + 1 -> 2026-02-01
date'2026-01-05' -> 2026-01-05
timestamp'2026-01-05 10:00:00' -> 2026-01-05 10:00:00

Parts
place.building -> A
tags[0] -> new
codes['x'] -> 1

Types
cast('12' as int) -> 12
'12'::int -> 12
try_cast('twelve' as int) -> null
cast(price as decimal(10,2)) -> 2.50
"""

FUNCTIONS = """
Null and choice
coalesce(codes['z'], 0) -> 0
if(price > 5, 'HIGH', 'LOW') -> LOW
ifnull(codes['z'], 0) -> 0
isnotnull(symbol) -> true
isnull(symbol) -> false
nullif(symbol, 'ZVZZT') -> null
nvl(codes['z'], 0) -> 0
nvl2(symbol, 'known', 'unknown') -> known
greatest(1, 3, 2) -> 3
least(1, 3, 2) -> 1

Numbers
abs(-2) -> 2
bround(2.5, 0) -> 2
cbrt(27) -> 3.0
ceil(2.1) -> 3
ceiling(2.1) -> 3
exp(0) -> 1.0
floor(2.9) -> 2
isnan(price) -> false
ln(1) -> 0.0
log10(100) -> 2.0
log2(8) -> 3.0
mod(-7, 3) -> -1
negative(2) -> -2
pmod(-7, 3) -> 2
pow(2, 10) -> 1024.0
power(2, 10) -> 1024.0
round(2.567, 1) -> 2.6
sign(-2.5) -> -1.0
signum(-2.5) -> -1.0
sqrt(9) -> 3.0
try_add(1, 2) -> 3
try_divide(1, 0) -> null
try_mod(1, 0) -> null
try_multiply(2, 3) -> 6
try_subtract(3, 1) -> 2

Text
ascii('A') -> 65
base64(cast('abc' as binary)) -> YWJj
char_length(symbol) -> 5
concat(symbol, '-', 'US') -> ZVZZT-US
concat_ws('-', symbol, cast(null as string), 'US') -> ZVZZT-US
contains(symbol, 'VZ') -> true
crc32('abc') -> 891568578
endswith(symbol, 'T') -> true
hex('abc') -> 616263
initcap('new york') -> New York
instr(symbol, 'Z') -> 1
left(symbol, 2) -> ZV
length(symbol) -> 5
locate('V', symbol) -> 2
lower(symbol) -> zvzzt
lpad('7', 3, '0') -> 007
ltrim('  a') -> a
md5('abc') -> 900150983cd24fb0d6963f7d28e17f72
regexp_extract('item-17', '([a-z]+)-([0-9]+)', 2) -> 17
regexp_like(symbol, '^Z') -> true
regexp_replace('a1b22', '[0-9]+', '#') -> a#b#
replace(symbol, 'Z', '-') -> -V--T
reverse(symbol) -> TZZVZ
right(symbol, 2) -> ZT
rpad('7', 3, '.') -> 7..
rtrim('a  ') -> a
sha2('abc', 256) -> ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
split('a,b,c', ',') -> [a, b, c]
startswith(symbol, 'ZV') -> true
substr(symbol, 2) -> VZZT
substring(symbol, 2, 3) -> VZZ
substring_index('a.b.c', '.', 2) -> a.b
translate('2026-01', '-', '/') -> 2026/01
trim('  a ') -> a
upper('abc') -> ABC

Dates and times
add_months(day, 1) -> 2026-02-28
date_add(day, 1) -> 2026-02-01
date_format(at, 'dd/MM/yyyy HH:mm') -> 31/01/2026 10:15
date_from_unix_date(20000) -> 2024-10-04
date_sub(day, 1) -> 2026-01-30
date_trunc('hour', at) -> 2026-01-31 10:00:00
datediff(day, date'2026-01-05') -> 26
day(at) -> 31
dayofmonth(at) -> 31
dayofweek(at) -> 7
dayofyear(at) -> 31
from_unixtime(1767225600, 'yyyy-MM-dd') -> 2026-01-01
hour(at) -> 10
last_day(day) -> 2026-01-31
make_date(2026, 1, 31) -> 2026-01-31
minute(at) -> 15
month(at) -> 1
quarter(at) -> 1
second(at) -> 30
timestamp_micros(1767225600000000) -> 2026-01-01 00:00:00
timestamp_millis(1767225600000) -> 2026-01-01 00:00:00
timestamp_seconds(1767225600) -> 2026-01-01 00:00:00
to_date('31/01/2026', 'dd/MM/yyyy') -> 2026-01-31
to_timestamp('2026-01-31 10:15', 'yyyy-MM-dd HH:mm') -> 2026-01-31 10:15:00
trunc(day, 'month') -> 2026-01-01
try_to_date('31/02/2026', 'dd/MM/yyyy') -> null
try_to_timestamp('no time', 'yyyy-MM-dd HH:mm') -> null
unix_date(day) -> 20484
unix_micros(at) -> 1769854530000000
unix_millis(at) -> 1769854530000
unix_seconds(at) -> 1769854530
unix_timestamp(at) -> 1769854530
weekday(at) -> 5
weekofyear(at) -> 5
year(at) -> 2026

Lists, maps and structs
array(1, 2, 3) -> [1, 2, 3]
array_contains(tags, 'big') -> true
array_distinct(tags) -> [new, big]
array_join(tags, ', ') -> new, big, new
array_max(tags) -> new
array_min(tags) -> big
array_size(tags) -> 3
cardinality(tags) -> 3
element_at(tags, 1) -> new
flatten(array(tags, tags)) -> [new, big, new, new, big, new]
get(tags, 0) -> new
map_contains_key(codes, 'x') -> true
map_keys(codes) -> [x, y]
map_values(codes) -> [1, 2]
named_struct('symbol', symbol, 'n', 1) -> {ZVZZT, 1}
size(tags) -> 3
sort_array(tags, false) -> [new, new, big]
try_element_at(tags, 9) -> null
"""

REFUSED = (
    "now()",
    "rand()",
    "sum(quantity)",
    "row_number()",
    "lag(price)",
    "current_user()",
    "explode(tags)",
    "(select 1)",
    "price -- per share",
)
