"""Hints that only a person can judge."""

from __future__ import annotations

from tests.support import cases

CASES = [*sorted(cases.CASES.glob("*.case")), *sorted(cases.PLANS.glob("*.case")), *sorted(cases.TOYS.glob("*/*.case"))]
# Hints that a person obeys by a decision, by their first words. Other hints are obeyed by `obeying.py`.
JUDGED: dict[str, tuple[str, ...]] = {
    "the author knows which column or table is meant": (
        "columns here: ", "the column is ", "the functions are ", "name one of the t", "name the columns that it needs", "name one: ",
        "take a column", "take columns", "take a `timestamp`", "sort by a plain column", "partition by side", "an event time is",
        "order by a", "add `order_by:` with", "a time is a timestamp", "it is string", "group by it", "join by ON in place of USING",
        "give it another name by `as`", "rename one", "rename or drop", "rename the column, or", "tables do not tell them apart",
        "`derive: {other_name", "make the step give it", "keep it in the table", "keep `order_id`", "did you mean `price`?",
        "mask it by", "take another method", "give pipelines the tags", "give the expectation a `name`",
    ),
    "the author knows the value, the path or the address": (
        "write a number", "write a value", "write values of", "write only values", "write the key as", "write it so", "write a path",
        "write the path without", "write `http://` or", "write a whole number", "to see what becomes", "generate each of its fields",
        "write letters, digits and _", "write a short name", "write one line", "write `{window_start", "write what tells all",
        "give `A21` a value", "give one of them a value", "set SLUICE_VAR_", "this version has", "write a limit", "repeat less often",
        "end the class", "a range goes up", "there are no", "use `one_of`", "write a condition, such as", "make `size`", "begin windows",
        "use _kafka_timestamp",
    ),
    "the hint names the options, and the author chooses one and writes it": (
        "write one of", "add a `window`", "add a document", "add `registry:`", "add `region`", "add `storage:", "add `file: ",
        "write `given: [", "put `- ` before each item, or write `flatten", "write two expectations", "give each a `name`",
        "keep the column of", "write `store: file`, `store: aws_secrets_manager` or", "write `registry_auth: {", "write `username: ",
        "write `mask: {key", "write `storage: {access",
        "begin with a line", "write select", "write JOIN",
        "did you mean `slip`", "did you mean `tally`",
    ),
    "another pipeline, catalog, topic or step is designed": (
        "dedup into a table", "flag into a table", "write it in a pipeline", "write a pipeline that writes it", "put it before `aggregate`",
        "join a table with", "join in the pipeline", "join where the topic", "one of them must", "send it to another topic",
        "make them alike", "give both the same login", "name another catalog", "name a catalog of that", "keep the table in an object",
        "give each export a file", "compute it in a step", "use `write: append` without", "tables are committed in Spark",
        "leave at least one", "`write: upsert` with `keys: [order_id]`", "use several steps", "give each its own measure",
        "`window: {column: at", "cut it into several steps", "only a list has items", "only a struct has fields",
    ),
    "the text of an expression or a type is written in another form": (
        "an expression is one value", "it takes ", "transform, filter and exists", "use characters, sets", "a sql step is one",
        "join the rows from before", "read a table that has", "name them in its select", "name the columns; UNION", "write it out behind",
        "repeat its expression", "use ${var:NAME}", "move it to a YAML comment", "close it with ", "write \\\\d", "write for example `(acc",
        "write for example `interval", "put a column of that name", "put a space between", "put text in", "put a name with",
        "a type is one word", "use a string key", "keep a number of seconds", "JSON's objects have", "write `cast(price as string)`",
    ),
    "the shape of the YAML is corrected, or other files": (
        "add the colon", "add ] where", "give all keys", "indent it further", "write `- derive", "write `---`", "write `key: value`",
        "put `topic: …` on", "the step's name is", "use `${…}` in values", "did you mean `string`?", "split it", "use fewer",
        "flatten the structure", "make the values of", "write the value", "`sluice init`", "rename it to specs", "move it ",
        "environments are", "keep the secret in",
    ),
}  # fmt: skip


def is_judged(hint: str) -> bool:
    return any(hint.startswith(begin) for begins in JUDGED.values() for begin in begins)
