"""Expressions and what they give for the row `ROW`, for the page on expressions; tests hold them against Spark."""

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
"""Of each column its type and its value."""
COLUMNS = {name: types.parse(type) for name, (type, _) in ROW.items()}

OPERATORS = """
Numbers
quantity + 1
quantity - 1
quantity * 2
quantity / 4
quantity % 4
quantity div 4
-quantity
+quantity
quantity & 3
quantity | 3
quantity ^ 3
~quantity
Text
symbol || '-1'
symbol like 'ZV%'
symbol ilike 'zv%'
symbol rlike '^Z[A-Z]+$'
Comparing
quantity = 10
quantity == 10
quantity <> 10
quantity != 10
quantity < 10
quantity <= 10
quantity > 10
quantity >= 10
quantity between 1 and 10
quantity in (5, 10)
symbol is null
symbol is not null
quantity <=> 10
quantity is distinct from 10
Conditions
quantity > 0 and price > 5
quantity > 0 or price > 5
not price > 5
(price > 5) is true
case when price > 5 then 'HIGH' else 'LOW' end
case symbol when 'ZVZZT' then 1 else 0 end
Dates and times
at + interval 90 minutes
at - interval 1 day
day + interval 1 month
day + 1
date'2026-01-05'
timestamp'2026-01-05 10:00:00'
Parts
place.building
tags[0]
codes['x']
Types
cast('12' as int)
'12'::int
try_cast('twelve' as int)
cast(price as decimal(10,2))
"""

FUNCTIONS = """
Null and choice
coalesce(null, symbol, 'none')
if(price > 5, 'HIGH', 'LOW')
ifnull(null, 0)
isnotnull(symbol)
isnull(symbol)
nullif(symbol, 'ZVZZT')
nvl(null, 0)
nvl2(symbol, 'known', 'unknown')
greatest(1, 3, 2)
least(1, 3, 2)
Numbers
abs(-2)
bround(2.5, 0)
cbrt(27)
ceil(2.1)
ceiling(2.1)
exp(0)
floor(2.9)
isnan(price)
ln(1)
log10(100)
log2(8)
mod(-7, 3)
negative(2)
pmod(-7, 3)
pow(2, 10)
power(2, 10)
round(2.567, 1)
sign(-2.5)
signum(-2.5)
sqrt(9)
try_add(1, 2)
try_divide(1, 0)
try_mod(1, 0)
try_multiply(2, 3)
try_subtract(3, 1)
Text
ascii('A')
base64(cast('abc' as binary))
char_length(symbol)
concat(symbol, '-', 'US')
concat_ws('-', symbol, cast(null as string), 'US')
contains(symbol, 'VZ')
crc32('abc')
endswith(symbol, 'T')
hex('abc')
initcap('new york')
instr(symbol, 'Z')
left(symbol, 2)
length(symbol)
locate('V', symbol)
lower(symbol)
lpad('7', 3, '0')
ltrim('  a ')
md5('abc')
regexp_extract('item-17', '([a-z]+)-([0-9]+)', 2)
regexp_like(symbol, '^Z')
regexp_replace('a1b22', '[0-9]+', '#')
replace(symbol, 'Z', '-')
reverse(symbol)
right(symbol, 2)
rpad('7', 3, '.')
rtrim('  a ')
sha2('abc', 256)
split('a,b,c', ',')
startswith(symbol, 'ZV')
substr(symbol, 2)
substring(symbol, 2, 3)
substring_index('a.b.c', '.', 2)
translate('2026-01', '-', '/')
trim('  a ')
upper('abc')
Dates and times
add_months(day, 1)
date_add(day, 1)
date_format(at, 'dd/MM/yyyy HH:mm')
date_from_unix_date(20000)
date_sub(day, 1)
date_trunc('hour', at)
datediff(day, date'2026-01-05')
day(at)
dayofmonth(at)
dayofweek(at)
dayofyear(at)
from_unixtime(1767225600, 'yyyy-MM-dd')
hour(at)
last_day(day)
make_date(2026, 1, 31)
minute(at)
month(at)
quarter(at)
second(at)
timestamp_micros(1767225600000000)
timestamp_millis(1767225600000)
timestamp_seconds(1767225600)
to_date('31/01/2026', 'dd/MM/yyyy')
to_timestamp('2026-01-31 10:15', 'yyyy-MM-dd HH:mm')
trunc(day, 'month')
try_to_date('31/02/2026', 'dd/MM/yyyy')
try_to_timestamp('no time', 'yyyy-MM-dd HH:mm')
unix_date(day)
unix_micros(at)
unix_millis(at)
unix_seconds(at)
unix_timestamp(at)
weekday(at)
weekofyear(at)
year(at)
Lists, maps and structs
array(1, 2, 3)
array_contains(tags, 'big')
array_distinct(tags)
array_join(tags, ', ')
array_max(tags)
array_min(tags)
array_size(tags)
cardinality(tags)
element_at(tags, 1)
flatten(array(tags, tags))
get(tags, 0)
map_contains_key(codes, 'x')
map_keys(codes)
map_values(codes)
named_struct('symbol', symbol, 'n', 1)
size(tags)
sort_array(tags, false)
try_element_at(tags, 9)
"""

REFUSED = (
    "now()",
    "rand()",
    "sum(quantity)",
    "row_number()",
    "lag(price)",
    "transform(tags, x -> upper(x))",
    "explode(tags)",
    "(select 1)",
    "price -- per share",
)
