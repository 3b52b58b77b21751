"""Makes `framework/sql/spark_functions.txt`: `python -m tests.support.signature_table`, of the Spark that is installed.

Asks Spark's analyser for the type of each function with each combination of types, and writes the answers for a function as few
signatures: sets of types for each argument that can be combined at will. A test in `make test-long` asks again.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from framework.machine.jvm import build
from framework.sql import signatures as written
from framework.sql.functions import SPECIAL
from framework.sql.reserved import LEFT_OUT, words
from framework.sql.settings import SQL_SETTINGS

Ask = Callable[[Sequence[str]], Sequence[str]]
Types = tuple[str, ...]  # of a call's arguments

COLUMNS = {
    **{name: name for name in ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary")},
    **{name: name for name in ("date", "timestamp", "timestamp_ntz")},
    "decimal": "decimal(10,2)",
    "interval_months": "interval year to month",
    "interval_time": "interval day to second",
}
ARGUMENTS = {**{name: f"c_{name}" for name in COLUMNS}, "int!": "1", "string!": "'1'"}
VIEW = "sluice_every_type"
GROUPS = (
    "math_funcs",
    "datetime_funcs",
    "string_funcs",
    "hash_funcs",
    "bitwise_funcs",
    "url_funcs",
    "conditional_funcs",
    "predicate_funcs",
    "misc_funcs",
    "xml_funcs",
)
SYNTAX = words("and between case cast div extract ilike in like not or regexp rlike when")
"""Functions of Spark that are written as operators."""
_ANY_NUMBER = ("concat_ws", "elt", "format_string", "printf")
_MAX_COMBINATIONS = 6_000  # combinations of one function that are tried; of more, a sample
_RESULTS = {
    "interval year to month": "interval_months",
    "interval day to second": "interval_time",
    "interval day": "interval_time",
}
_HEAD = """\
# What Spark {version}'s analyser says of its functions; made by `python -m tests.support.signature_table`, not by hand.
# framework/sql/signatures.py tells how to read a line.
"""


def asking(spark: Any) -> Ask:
    """Returns a function that asks this session for the types of expressions over columns of every type."""
    schema = ", ".join(f"c_{name} {type_}" for name, type_ in COLUMNS.items())
    spark.createDataFrame([], schema).createOrReplaceTempView(VIEW)
    gateway = spark.sparkContext._gateway

    def ask(expressions: Sequence[str]) -> Sequence[str]:
        texts = gateway.new_array(gateway.jvm.java.lang.String, len(expressions))
        for index, text in enumerate(expressions):
            texts[index] = text
        return tuple(gateway.jvm.sluice.Analyser.types(spark._jsparkSession, VIEW, texts))

    return ask


def lines(spark: Any) -> Iterator[str]:
    ask = asking(spark)
    for name in sorted(names(spark)):
        yield from signatures(name, ask)


def names(spark: Any) -> Iterator[str]:
    """The names of functions of one row that are not left out."""
    registry = spark._jsparkSession.sessionState().functionRegistry()
    manual_names = {written.read(line).name for line in written.lines(written.BY_HAND)}
    left_out = {*LEFT_OUT, *SYNTAX, *SPECIAL, *manual_names} - {"to_binary", "to_char", "to_varchar", "try_make_timestamp"}
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    for (name,) in spark.sql("SHOW SYSTEM FUNCTIONS").collect():
        info = registry.lookupFunction(identifier(name))
        if name.isidentifier() and info.isDefined() and info.get().getGroup() in GROUPS and name not in left_out:
            yield name


def signatures(name: str, ask: Ask) -> Iterator[str]:
    """The lines of one function."""
    numbers, any_number = _numbers(name, ask)
    forms: list[tuple[list[str], str]] = []
    for number in numbers:
        forms += [(["|".join(_kind(types)) for types in box], result) for box, result in _boxes(_types(name, number, ask))]
    for arguments, result in _joined(forms):
        rest = "..." if any_number and arguments else ""
        yield f"{name}({', '.join(arguments)}{rest}) {result}"


def _numbers(name: str, ask: Ask) -> tuple[list[int], bool]:
    """The numbers of arguments that a function takes, and whether it takes any number of them."""
    (answer,) = ask([f"{name}({', '.join(['c_string'] * 25)})"])
    match = re.search(r"requires \[?([0-9, ]+)\]? parameters? but", answer)
    if match:
        # Other functions without an argument return the time of the run.
        return [int(number) for number in match[1].split(",") if int(number) or name in ("e", "pi")], False
    return ([2, 3], True) if name in _ANY_NUMBER else ([1], False)


def _types(name: str, number: int, ask: Ask) -> Mapping[Types, str]:
    """The type of each combination of arguments that the function takes."""
    combinations: Iterable[Types] = itertools.product(ARGUMENTS, repeat=number)
    if len(ARGUMENTS) ** number > _MAX_COMBINATIONS:
        combinations = _around(_find_example(name, number, ask), name, ask)
    return _ask_types(name, combinations, ask)


def _find_example(name: str, number: int, ask: Ask) -> Types | None:
    """A combination that the function takes, or None."""
    likely = ("string", "int", "string!", "int!", "timestamp", "date", "double", "decimal")
    for pool in (likely[:2], likely[:4], likely):
        combinations = list(itertools.islice(itertools.product(pool, repeat=number), _MAX_COMBINATIONS))
        if types := _ask_types(name, combinations, ask):
            return next(iter(types))
    return None


def _around(example: Types | None, name: str, ask: Ask) -> Iterator[Types]:
    """Combinations of all types that each argument of `example` can have while the others stay the same."""
    if example is None:
        return
    sets = []
    for index in range(len(example)):
        variants = [(*example[:index], argument, *example[index + 1 :]) for argument in ARGUMENTS]
        sets.append(sorted({types[index] for types in _ask_types(name, variants, ask)}))
    draw = random.Random(1)
    yield from (
        itertools.product(*sets)
        if math.prod(map(len, sets)) <= _MAX_COMBINATIONS
        else (tuple(map(draw.choice, sets)) for _ in range(_MAX_COMBINATIONS))
    )
    yield from ((*example[:index], argument, *example[index + 1 :]) for index in range(len(example)) for argument in sets[index])


def _ask_types(name: str, combinations: Iterable[Types], ask: Ask) -> dict[Types, str]:
    calls = list(dict.fromkeys(combinations))
    answers = ask([f"{name}({', '.join(ARGUMENTS[type_name] for type_name in types)})" for types in calls])
    return {
        types: _RESULTS.get(answer, answer)
        for types, answer in zip(calls, answers, strict=True)
        if answer[0] != "!" and not answer.endswith(" changing")
    }


def _boxes(results_by_types: Mapping[Types, str]) -> list[tuple[list[set[str]], str]]:
    """Sets of types for each argument with the type of the result, which together cover all calls. Small sets come first, since the first
    signature that fits a call counts. Results are named by arguments if that takes fewer sets."""
    argument_results = {
        types: next(
            (f"${position}" for position, type_name in enumerate(types, 1) if COLUMNS.get(type_name.rstrip("!")) == result),
            result,
        )
        for types, result in results_by_types.items()
    }
    results = min((dict(results_by_types), argument_results), key=lambda candidate: len(set(candidate.values())))
    by_result: dict[str, list[Types]] = {}
    for types, result in results.items():
        by_result.setdefault(result, []).append(types)
    boxes: list[tuple[list[set[str]], str]] = []
    covered_types: set[Types] = set()
    for result, combinations in sorted(by_result.items(), key=lambda item: (len(item[1]), item[0])):
        covered_types |= set(combinations)
        boxes.append((_wider_sets([_plain(set(column)) for column in zip(*combinations, strict=True)], covered_types), result))
    return boxes


def _wider_sets(sets: list[set[str]], covered_types: set[Types]) -> list[set[str]]:
    """The sets, each widened to a kind of types where earlier signatures cover the kind's other types."""
    for index, types in enumerate(sets):
        for kind in written.KINDS.values():
            if types < kind and all(
                types in covered_types for types in itertools.product(*sets[:index], kind - types, *sets[index + 1 :])
            ):
                sets[index] = types = set(kind)
    return sets


def _plain(types: set[str]) -> set[str]:
    """The types without literals of types that are in the set themselves."""
    return {type_name for type_name in types if type_name.rstrip("!") not in types - {type_name}}


def _kind(types: set[str]) -> list[str]:
    """The name of a kind of types if these are one; otherwise their names."""
    return next(([name] for name, kind in written.KINDS.items() if types == kind), sorted(types))


def _joined(forms: list[tuple[list[str], str]]) -> list[tuple[list[str], str]]:
    """Lines with and without a last argument as one line."""
    lines: list[tuple[list[str], str]] = []
    for arguments, result in forms:
        shorter_line = next(
            (line for line in lines if line[1] == result and [argument.rstrip("?") for argument in line[0]] == arguments[:-1]),
            None,
        )
        if shorter_line:
            shorter_line[0].append(f"{arguments[-1]}?")
        else:
            lines.append((arguments, result))
    return lines


def main() -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", str(build.built()))
    for key, value in SQL_SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    text = _HEAD.format(version=spark.version) + "".join(f"{line}\n" for line in lines(spark))
    written.OF_SPARK.write_text(text)


if __name__ == "__main__":
    main()
