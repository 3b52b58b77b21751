"""JSON texts by RFC 8259: what every parser must take, what none may take, and what each decides for itself."""

from __future__ import annotations

from typing import Any

_DEEP = 500  # levels that are taken


def bad() -> Any:
    from tests.test_values import BAD

    return BAD


ACCEPTED: dict[str, bytes] = {
    "list empty": b"[]", "list with space": b"[ ]", "list of null": b"[null]", "list that ends with a line break": b"[1\n]",
    "list of several": b'[1,null,true,"a",[],{}]', "list in a list": b"[[[]]]", "list with leading space": b" [1]",
    "list with false": b"[false]", "list of empty string": b'[""]', "list of several nulls": b"[1,null,null,null,2]",
    "list with trailing space": b"[2] ", "lists deep": b"[" * _DEEP + b"]" * _DEEP,
    "number": b"[123e65]", "number 0e+1": b"[0e+1]", "number 0e1": b"[0e1]", "number after space": b"[ 4]",
    "number close to zero": b"[-0.000000000000000000000000000000000000000000000000000000000000000000000000000001]",
    "number int with exponent": b"[20e1]", "number minus zero": b"[-0]", "number negative": b"[-123]", "number negative one": b"[-1]",
    "number with capital E": b"[1E22]", "number with capital E and minus": b"[1E-2]", "number with capital E and plus": b"[1E+2]",
    "number with fraction and exponent": b"[123.456e78]", "number with negative exponent": b"[1e-2]", "number simple": b"[123.456789]",
    "number alone": b"42", "number negative alone": b"-0.1", "number zero alone": b"0", "number with leading zeros in exponent": b"1e007",
    "object empty": b"{}", "object with empty key": b'{"":0}', "object": b'{"asd":"sdf","dfg":"fgh"}', "object of one": b'{"a":[]}',
    "object with equal keys": b'{"a":"b","a":"c"}', "object with equal keys and values": b'{"a":"b","a":"b"}',
    "object with escaped NUL in key": b'{"foo\\u0000bar": 42}', "object with extreme numbers": b'{"min":-1.0e+28,"max":1.0e+28}',
    "object with long strings": b'{"x":[{"id":"' + b"x" * 40 + b'"}],"id":"' + b"x" * 40 + b'"}',
    "object with unicode": '{"title":"\u041f\u043e\u043b\u0442\u043e\u0440\u0430"}'.encode(), "object with line breaks": b'{\n"a":"b"\n}',
    "object with escaped keys": b'{"\\u0061\\n\\"":1}',
    "string empty": b'""', "string one byte": b'"\\u0060"', "string two bytes": b'"\\u012a"', "string three bytes": b'"\\uFFFF"',
    "string surrogates": b'"\\uD801\\udc37"', "string two pairs": b'"\\ud83d\\ude39\\ud83d\\udc8d"', "string comments": b'"a/*b*/c/*d//e"',
    "string allowed escapes": b'"\\"\\\\\\/\\b\\f\\n\\r\\t"', "string escaped backslash and u": b'"\\\\u0000"',
    "string double escaped a": b'"\\\\a"', "string double escaped n": b'"\\\\n"', "string escaped control": b'"\\u0012"',
    "string noncharacter": b'"\\uFFFF"', "string nonchar U+1FFFF": b'"\\uD83F\\uDFFE"', "string nonchar U+10FFFE": b'"\\uDBFF\\uDFFE"',
    "string last surrogates": b'"\\uDBFF\\uDFFF"', "string U+FFFF in bytes": b'"\xef\xbf\xbf"', "string U+10FFFF in bytes": b'"\xf4\x8f\xbf\xbf"',
    "string nbsp": b'"new\\u00A0line"', "string null escape": b'"\\u0000"', "string one byte of UTF-8": b'"\\u002c"', "string pi": b'"\xcf\x80"',
    "string reserved character": b'"\xf0\x9b\xbf\xbf"', "string simple": b'"asd "', "string space": b'" "',
    "string U+2028": b'"\xe2\x80\xa8"', "string U+2029": b'"\xe2\x80\xa9"', "string U+200B": b'"\\u200B"', "string U+2064": b'"\\u2064"',
    "string unescaped DEL": b'"\x7f"', "string DEL behind a": b'"a\x7fa"', "string C1 control": b'"\xc2\x85"', "string BOM inside": b'"\xef\xbb\xbf"',
    "string uescaped newline": b'"new\\u000Aline"', "string with capital hex": b'"\\uA66D"', "string mixed hex": b'"\\uAbCd"',
    "string of euro and clef": b'"\xe2\x82\xac\xf0\x9d\x84\x9e"', "true": b"true", "false": b"false", "null": b"null",
    "structure space around": b" true ", "structure tabs": b"\t[\t1\t,\t2\t]\t", "structure carriage return": b"\r[\r]\r",
}  # fmt: skip

REFUSED: dict[str, bytes] = {
    "list 1 true without comma": b"[1 true]", "list invalid bytes": b"[a\xe5]", "list colon for comma": b'["": 1]', "list comma behind": b'[""],',
    "list comma and number": b"[,1]", "list double comma": b"[1,,2]", "list double extra comma": b'["x",,]', "list extra close": b'["x"]]',
    "list extra comma": b'["",]', "list incomplete": b'["x"', "list incomplete invalid": b"[x", "list inner lists without comma": b"[3[4]]",
    "list bad byte": b"[\xff]", "list just comma": b"[,]", "list just minus": b"[-]", "list missing value": b"[   , \"\"]",
    "list newlines unclosed": b'["a",\n4\n,1,', "list number and comma": b"[1,]", "list number and commas": b"[1,,]", "list spaces VT": b'["\x0ba"\\f]',
    "list star": b"[*]", "list unclosed": b'[""', "list unclosed trailing comma": b"[1,", "list unclosed with newlines": b"[1,\n1\n,1",
    "list unclosed with object": b"[{}", "list closed by brace": b"[1}", "list opened twice": b"[[]", "list of single quotes": b"['a']",
    "word fals": b"[fals]", "word nul": b"[nul]", "word tru": b"[tru]", "word True": b"True", "word TRUE": b"TRUE", "word truee": b"truee",
    "word nulll": b"nulll", "word with NUL": b"tr\0ue", "word undefined": b"undefined", "word None": b"None", "word alone n": b"n",
    "number ++": b"[++1234]", "number +1": b"[+1]", "number +Inf": b"[+Inf]", "number -01": b"[-01]", "number -1.0.": b"[-1.0.]",
    "number -2.": b"[-2.]", "number -NaN": b"[-NaN]", "number .-1": b"[.-1]", "number .2e-3": b"[.2e-3]", "number 0.1.2": b"[0.1.2]",
    "number 0.3e": b"[0.3e]", "number 0.3e+": b"[0.3e+]", "number 0.e1": b"[0.e1]", "number 0E": b"[0E]", "number 0E+": b"[0E+]",
    "number 0e": b"[0e]", "number 0e+": b"[0e+]", "number 1.0e": b"[1.0e]", "number 1.0e+": b"[1.0e+]", "number 1.0e-": b"[1.0e-]",
    "number 1_000": b"[1 000.0]", "number 1eE2": b"[1eE2]", "number 2.e+3": b"[2.e+3]", "number 2.e-3": b"[2.e-3]", "number 2.e3": b"[2.e3]",
    "number 9.e+": b"[9.e+]", "number expression": b"[1+2]", "number hex 1 digit": b"[0x1]", "number hex": b"[0x42]", "number infinity": b"[Infinity]",
    "number Inf": b"[Inf]", "number invalid +-": b"[0e+-1]", "number negative real": b"[-123.123foo]", "number minus infinity": b"[-Infinity]",
    "number minus sign trailing": b"[-foo]", "number minus space": b"[- 1]", "number negative starting with zero": b"[-012]",
    "number neg without int part": b"[-.123]", "number real garbage": b"[1.2a-3]", "number real without fraction": b"[1.]",
    "number real exponent bad": b"[1.8011670033376514H-308]", "number starting with dot": b"[.123]", "number full width digit": b"[\xef\xbc\x91]",
    "number with alpha": b"[1.2a]", "number with leading zero": b"[012]", "number NaN": b"[NaN]", "number with underscore": b"[1_0]",
    "number with suffix": b"[1L]", "number arabic digit": b"[\xd9\xa5]", "number bad bytes after": b"[123\xe5]", "number bad exponent": b"[1e1\xe5]",
    "object bad value": b'["x", truth]', "object bracket key": b"{[: \"x\"}", "object comma for colon": b'{"x", null}', "object double colon": b'{"x"::"b"}',
    "object emoji": b"{\xf0\x9f\x87\xa8\xf0\x9f\x87\xad}", "object garbage at end": b'{"a":"a" 123}', "object single quotes": b"{'a': 0}",
    "object missing colon": b'{"a" b}', "object missing key": b'{:"b"}', "object missing semicolon": b'{"a" "b"}', "object missing value": b'{"a":',
    "object no colon": b'{"a"', "object non string key": b"{1:1}", "object huge number key": b"{9999E9999:1}", "object null key": b"{null:null,null:null}",
    "object several trailing commas": b'{"id":0,,,,,}', "object trailing comma": b'{"id":0,}', "object trailing comment": b'{"a":"b"}/**/',
    "object trailing line comment": b'{"a":"b"}//', "object two commas": b'{"a":"b",,"c":"d"}', "object unquoted key": b'{a: "b"}',
    "object unterminated": b'{"a":"a', "object with single string": b'{ "foo" : "bar", "a" }', "object behind hash": b'{"a":"b"}#',
    "object closed by bracket": b'{"a":1]', "object of a comma": b"{,}", "object repeated": b'{"a":1}{"b":2}',
    "string escape x": b'"\\x00"', "string escaped backslash bad": b'"\\\\\\"', "string escaped tab": b'"\\\t"', "string escaped emoji": b'"\\\xf0\x9f\x8c\x80"',
    "string incomplete escape": b'"\\"', "string incomplete unicode": b'"\\u00A"', "string incomplete surrogate": b'"\\uD834\\uDd"',
    "string invalid escape": b'"\\a"', "string invalid unicode escape": b'"\\uqqqq"', "string invalid byte escaped": b'"\\\xe5"',
    "string leading escape": b"[\\u0020\"asd\"]", "string no quotes": b"[\\n]", "string single quote": b"'a'", "string single double quote": b'"',
    "string start of escape": b'"\\', "string start of unicode": b'"\\u', "string unescaped control": b'"a\x00a"', "string unescaped newline": b'"new\nline"',
    "string unescaped tab": b'"\t"', "string unescaped ESC": b'"\x1b"', "string unescaped US": b'"\x1f"', "string unicode capital u": b'"\\UA66D"',
    "string with trailing garbage": b'""x', "string escape 0": b'"\\0"', "string escape v": b'"\\v"', "string escape quote": b"\"\\'\"",
    "string overlong two": b'"\xc0\xaf"', "string overlong three": b'"\xe0\x80\xaf"', "string overlong six": b'"\xfc\x83\xbf\xbf\xbf\xbf"',
    "string surrogate in bytes": b'"\xed\xa0\x80"', "string beyond U+10FFFF": b'"\xf4\x90\x80\x80"', "string lone continuation": b'"\x81"',
    "string truncated UTF-8": b'"\xe0\xff"', "string latin 1": b'"\xe9"', "string UTF-16": b'"\0a\0"',
    "structure angle bracket": b"<.>", "structure angle null": b"[<null>]", "structure ascii unicode": b"a\xc3\xa5", "structure capital True": b"[True]",
    "structure close unopened": b"1]", "structure comma instead of brace": b'{"x": true,', "structure double list": b"[][]", "structure end": b"]",
    "structure lone bad byte": b"\xe5", "structure lone bracket": b"[", "structure no data": b"", "structure NUL outside string": b"[\0]",
    "structure number with garbage": b"2@", "structure object comment": b'{"a":/*comment*/"b"}', "structure object unclosed": b'{"asd":"asd"',
    "structure open list apostrophe": b"['", "structure open list comma": b"[,", "structure open list open object": b"[{", "structure open list string": b'["a"',
    "structure open object": b"{", "structure open object close list": b"{]", "structure open object comma": b"{,", "structure open object string": b'{"a',
    "structure single star": b"*", "structure U+2060": b"[\xe2\x81\xa0]", "structure nbsp": b"[\xc2\xa0]", "structure form feed": b"[\x0c]",
    "structure vertical tab": b"[\x0b]", "structure whitespace formfeed": b"\x0c1", "structure escaped": b"\\u007b", "structure too deep": b"[" * 100_000,
    "structure open objects": b'[{"":' * 50_000,
}  # fmt: skip

EITHER: dict[str, bytes] = {
    "number huge exponent": b"[0.4e00669999999999999999999999999999999999999999999999999999999999969999999006]", "number neg inf": b"[-1e+9999]",
    "number very big negative": b"[-123123e100000]", "number pos double huge": b"[1.5e+9999]", "number real underflow": b"[123e-10000000]",
    "number too big": b"[-123123123123123123123123123123]", "number int of 25 digits": b"[1000000000000000000000000]",
    "lists closed of 100,000": b"[" * 100_000 + b"]" * 100_000, "objects of 100,000": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "half a pair in a list": b'["\\uDADA"]', "two halves in a list": b'["\\uD888\\u1234"]', "inverted pair in a list": b'["\\uDd1e\\uD834"]',
    "half a pair as a name": b'{"\\uDFAA":0}', "half and a bad escape": b'["\\uD800\\n"]',
}  # fmt: skip
# Of these ours takes: numbers as their text, and halves of pairs that nobody reads as text.
TAKEN = {name for name in EITHER if name.startswith(("number", "half", "two halves", "inverted"))}

# No object, whatever stands there.
AROUND = [b"", b" ", b"\xff", b"\xff\xfe{\0}\0", b"\0{\0}", b"null", b"true", b"[]", b'""', b"0", b"{", b"}", b"{}a"]
