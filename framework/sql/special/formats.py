"""Functions that read JSON, CSV, XML and variants into the type that a literal names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from framework.base import type_text, types
from framework.base.types import STRING, VARIANT, Map, Struct, Type
from framework.sql import comparisons, patterns
from framework.sql.arguments import Use
from framework.sql.bounded_functions import plain_xml
from framework.sql.pieces import Piece, composed
from framework.sql.quote import literal
from framework.sql.suggested import cast_hint


def parsed(use: Use) -> Piece:
    """Returns `from_json(text, 'a int, b string')`, `from_csv` or `from_xml`, whose schema is a literal."""
    piece, schema = use.some(2, 2)
    if piece.type != STRING:
        raise use.fault(f"takes a text here, not {comparisons.name(piece.type)}", cast_hint(piece, "string"), piece)
    type = _schema(use, schema)
    if any(isinstance(part, Map) and part.key != STRING for part in types.parts(type)):
        raise use.fault("gives maps whose keys are texts", "write `'a map<string, int>'`", schema)
    if use.name != "from_json" and not isinstance(type, Struct):
        raise use.fault("gives a struct", "write `'a int, b string'`", schema)
    text = plain_xml(piece.sql) if use.name == "from_xml" else piece.sql
    return composed(use.offset, f"{use.name}({text}, {literal(type.sql)})", type, (piece,))


def _schema(use: Use, piece: Piece) -> Type:
    text = patterns.text(piece, "a schema")
    try:
        return type_text.parse(text if re.match(r"\s*(struct|array|map)\s*<", text, re.IGNORECASE) else f"struct<{text}>")
    except type_text.TypeTextError as error:
        raise use.fault(f"takes a schema here: {error.message}", error.hint or "write `'a int, b string'`", piece) from None


_PATH = re.compile(r"""\$(\.[^.\[\s]+|\[[0-9]{1,9}\]|\['[^']+'\]|\["[^"]+"\])*""")


def variant(use: Use) -> Piece:
    """Returns `variant_get(parse_json(text), '$.a[0]', 'int')`, whose path and type are literals."""
    piece, path, type_name = use.some(3, 3)
    if piece.type != VARIANT:
        raise use.fault(f"takes a variant, not {comparisons.name(piece.type)}", f"{use.name}(parse_json(x), '$.a', 'int')", piece)
    if not _PATH.fullmatch(patterns.text(path, "a path")):
        raise use.fault(f"does not know the path '{path.constant}'", "write for example '$.a.b[0]'", path)
    try:
        type = type_text.parse(patterns.text(type_name, "a type"))
    except type_text.TypeTextError as error:
        raise use.fault(f"takes a type here: {error.message}", error.hint or "write 'int'", type_name) from None
    return composed(use.offset, use.sql(piece.sql, path.sql, literal(type.sql)), type, (piece,))


TABLE: Mapping[str, Callable[[Use], Piece]] = {
    **dict.fromkeys(("from_csv", "from_json", "from_xml"), parsed),
    **dict.fromkeys(("try_variant_get", "variant_get"), variant),
}
