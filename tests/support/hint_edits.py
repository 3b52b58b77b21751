"""Obeys the hint of a problem of a spec literally, as an edit of the YAML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from framework.base.errors import Problem
from tests.support.spec_edits import Document, Unclear, parsed

Rule = Callable[[Document, "re.Match[str]"], "Iterator[Document] | None"]
RULES: list[tuple[str, Rule]] = []


def rule(pattern: str) -> Callable[[Rule], Rule]:
    """The rule for hints that match: it edits the document, or yields one document for each way to obey."""

    def decorate(function: Rule) -> Rule:
        RULES.append((pattern, function))
        return function

    return decorate


def wrong_words(problem: Problem) -> list[str]:
    """The words of a message that may be the wrong ones, the likeliest first."""
    patterns = (r"and is `([^`]*)`", r"no (?:type|column|field|table) ([\w.]+)", r"^(\w+) is not an allowed", r"`([^`]+)`")
    words = [word for pattern in patterns for word in re.findall(pattern, problem.message)]
    return [word.strip('"').replace("\\n", "\n") for word in words]


def rename(document: Document, new: str) -> None:
    for word in wrong_words(document.problem):
        try:
            return document.rename(word, new)
        except Unclear:
            continue
    raise Unclear("no word of the message is there")


def steps_of(document: Document) -> tuple[SequenceNode, int]:
    """The list of steps around the place, and the number of the step at the place; its length where there is none."""
    for index, node in enumerate(document.around):
        for key, value in node.value if isinstance(node, MappingNode) else []:
            if key.value == "steps" and isinstance(value, SequenceNode):
                indexes = [
                    number for number, step in enumerate(value.value) if any(step is inner for inner in document.around[index:])
                ]
                return value, (indexes or [len(value.value)])[0]
    root = document.around[0]
    assert isinstance(root, MappingNode)
    root.value.append((ScalarNode("tag:yaml.org,2002:str", "steps"), SequenceNode("tag:yaml.org,2002:seq", [])))
    return root.value[-1][1], 0


@rule(
    r"`((?:cast|derive|rename|aggregate): \{[^`]+\})`(?: before| in a step|$|, in a select)|(?:rename the first|a step before): `(.*)`$"
)
def _step_before(document: Document, match: re.Match[str]) -> None:
    steps, number = steps_of(document)
    text = next(group for group in match.groups() if group)
    steps.value.insert(number, parsed(f"{{{text}}}"))


@rule(r"^move `(\w+)` behind `(\w+)`|^put it before `(\w+)`")
def _move(document: Document, match: re.Match[str]) -> None:
    steps, number = steps_of(document)
    names = [step.value[0][0].value for step in steps.value]
    if match[3]:
        steps.value.insert(names.index(match[3]), steps.value.pop(number))
        return
    moved_step = steps.value.pop(names.index(match[1]))
    steps.value.insert(max(index for index, name in enumerate(names) if name == match[2]), moved_step)


def steps_named(document: Document, name: str) -> list[tuple[MappingNode, Any]]:
    """The steps of this name, each with its options."""
    steps, _ = steps_of(document)
    return [(step, step.value[0][1]) for step in steps.value if step.value[0][0].value == name]


@rule(r"^keep `(\w+)` in the table$")
def _keep(document: Document, match: re.Match[str]) -> None:
    for step, names in steps_named(document, "drop"):
        names.value = [name for name in names.value if name.value != match[1]]
        if not names.value:
            steps_of(document)[0].value.remove(step)


@rule(r"^leave `(\w+)` out of `mask`$")
def _unmask(document: Document, match: re.Match[str]) -> None:
    for step, options in steps_named(document, "mask"):
        columns = next(value for key, value in options.value if key.value == "columns")
        columns.value = [(key, value) for key, value in columns.value if key.value != match[1]]
        if not columns.value:
            steps_of(document)[0].value.remove(step)


@rule(r"^let `derive` write into another column, and keep `(\w+)`")
def _another_column(document: Document, match: re.Match[str]) -> None:
    for _, expressions in steps_named(document, "derive"):
        for key, _ in expressions.value:
            key.value = f"another_{key.value}" if key.value == match[1] else key.value


@rule(r"^the old name comes first: `(\w+): (\w+)`")
def _swap(document: Document, match: re.Match[str]) -> None:
    document.remove()
    mapping = next(document.maps())
    mapping.value.append((ScalarNode("tag:yaml.org,2002:str", match[1]), parsed(match[2])))


@rule(r"^give each a `name`")
def _name(document: Document, _: re.Match[str]) -> None:
    document.add("name", "another name")


@rule(r"^join on (\w+)$")
def _join_on(document: Document, match: re.Match[str]) -> None:
    document.set("on", f"[{match[1]}]")


@rule(r"^name each \w+ once")
def _once(document: Document, _: re.Match[str]) -> None:
    document.remove()


@rule(r"^(?:warn first, fail later: )?`(\w+): ([^`]+)`(?:(?:,| with) `(\w+): ([^`]+)`)?")
def _pairs(document: Document, match: re.Match[str]) -> Iterator[Document]:
    copy = document.copy()
    into = next((value for mapping in copy.maps() for key, value in mapping.value if key.value == "into"), None)
    if match[1] in ("write", "keys") and into is not None:
        copy.around.append(into)
    copy.set(match[1], match[2])
    if match[3]:
        copy.set(match[3], match[4])
    yield copy


def put(document: Document, example: str) -> None:
    document.replace(parsed(example))


@rule(r'^write `derive: \{(\w+): "(.*)"\}` in place of this')
def _derive_in_place(document: Document, match: re.Match[str]) -> None:
    steps, number = steps_of(document)
    document.remove()
    steps.value.insert(number + 1, parsed(f'{{derive: {{{match[1]}: "{match[2]}"}}}}'))


@rule(r"^write `(\w+): ([^`]+)` in place of `(\w+)` and `(\w+)`$")
def _in_place_of_two(document: Document, match: re.Match[str]) -> None:
    document.set(match[1], match[2])
    document.remove(match[3])
    document.remove(match[4])


@rule(r"did you mean `?([^`]+?)`?\?$")
def _suggested(document: Document, match: re.Match[str]) -> None:
    rename(document, match[1])


@rule(r"`|_kafka_|^delete|^compare")
def _sql(document: Document, match: re.Match[str]) -> Iterator[Document]:
    """Put the SQL of the hint in place of any part of the expression, or delete a part."""
    problem = document.problem
    if not problem.code.startswith(("sql-", "not-a-condition")) or not isinstance(document.node, ScalarNode):
        raise Unclear("no SQL")
    text = document.node.value
    words = list(re.finditer(r"'[^']*'|\w+|[^\w\s]", text))
    ends = [word.end() for word in words]
    suggested = re.findall(r"`([^`]+)`", problem.hint) + re.findall(r"_kafka_\w+|_event_time", problem.hint)
    for sql in [""] if problem.hint.startswith("delete") else suggested:
        for start, word in enumerate(words):
            for end in ends[start:]:
                copy = document.copy()
                copy.touched = copy.path(copy.node)
                copy.node.value = text[: word.start()] + sql + text[end:]
                yield copy


@rule(
    r"^(?:remove it|delete it|remove one of (?:the two|them)|rename or remove one of the two|keep one\b|name only one|remove the|delete)\b"
)
def _remove(document: Document, _: re.Match[str]) -> None:
    if document.problem.code.startswith("sql-") or document.problem.code == "bad-character":
        raise Unclear("a part of a text")
    document.remove()


@rule(r"^(?:leave it out|leave the rest out)\b")
def _leave_out(document: Document, _: re.Match[str]) -> None:
    document.remove()


@rule(r"(?:^|: |or |, )remove `(\w+)`")
def _remove_named(document: Document, match: re.Match[str]) -> None:
    document.remove(match[1])


@rule(r"^write `(\w+): ([^`]+)`(?: with `keys`)? under `into`|^write `(write: \w+|format_version: 3)`")
def _into(document: Document, match: re.Match[str]) -> None:
    name, _, value = (match[3] or f"{match[1]}: {match[2]}").partition(": ")
    into = next(value for mapping in document.maps() for key, value in mapping.value if key.value == "into")
    document.around.append(into)
    document.set(name, value)


@rule(r"^it belongs under `(\w+)`")
def _belongs(document: Document, match: re.Match[str]) -> None:
    assert document.key is not None
    name, value = document.key.value, document.node
    document.remove()
    outer = next(document.maps())
    for key, inner in outer.value:
        if key.value == match[1] and isinstance(inner, MappingNode):
            inner.value.append((ScalarNode("tag:yaml.org,2002:str", name), value))
            return
    outer.value.append((ScalarNode("tag:yaml.org,2002:str", match[1]), parsed("{}")))
    outer.value[-1][1].value.append((ScalarNode("tag:yaml.org,2002:str", name), value))


@rule(r"^(?:write|add|.* or write|.*; write|.*add)(?: one of them, such as)? `(\w+): ([^`]+)`")
def _write_pair(document: Document, match: re.Match[str]) -> Iterator[Document]:
    value = match[2].replace("…", "x")
    if match[0].startswith("add"):
        copy = document.copy()
        copy.add(match[1], value)
        yield copy
    copy = document.copy()
    copy.set(match[1], value)
    yield copy
    copy = document.copy()
    copy.replace(parsed(f"{{{match[1]}: {value}}}"))
    yield copy


@rule(r"^add `columns:` with a name and a type per field, such as `([^`]+)`")
def _columns(document: Document, match: re.Match[str]) -> None:
    document.add("columns", f"{{{match[1]}}}")


@rule(r"write the smaller (?:value|number) first")
def _smaller_first(document: Document, _: re.Match[str]) -> None:
    for node in (document.node, *document.around[::-1]):
        if isinstance(node, SequenceNode):
            node.value.reverse()
            return


@rule(r"^(?:choose another name|give it another name|give one of them|give the measure|rename|.*: rename|the other is at)")
def _another_name(document: Document, match: re.Match[str]) -> Iterator[Document]:
    suggested = re.search(r"such as `(\w+)`", document.problem.hint)
    for word in wrong_words(document.problem):
        copy = document.copy()
        try:
            copy.rename(word, suggested[1] if suggested else f"{word}_2")
        except Unclear:
            continue
        yield copy


NAMING = "columns here|fields here|kinds are|steps are|steps of this version|name one|this version has|environments are|its options are"


@rule(rf"^(?:(?:{NAMING}): |types are |(?:the table|the topic) has |the \w+ (?:is|are) )`?([\w.-]+)`?")
def _any_of(document: Document, match: re.Match[str]) -> Iterator[Document]:
    for word in re.findall(r"[\w.-]+", document.problem.hint[match.start(1) :]):
        copy = document.copy()
        rename(copy, word)
        yield copy


WRITING = "write|use|partition by|name its field:|put the value into the secret store and write|make the secret the whole value:"


@rule(rf"^(?:.*\b(?:such as|for example)|.*: write `|{WRITING}) .*")
def _example(document: Document, match: re.Match[str]) -> Iterator[Document]:
    """Put an example of the hint in place of the value."""
    examples = re.findall(r"`([^`]+)`", match[0]) or re.findall(
        r"(?:such as|for example|write|partition by) ([^\s,;]+)", match[0]
    )
    for example in examples:
        for edit in (put, rename):
            copy = document.copy()
            try:
                edit(copy, example.replace("…", "x"))
            except (Unclear, yaml.YAMLError):
                continue
            yield copy


@dataclass
class Obeyed:
    """A file after a hint was obeyed; `touched` is the path of what was edited, which is empty where something was removed."""

    text: str
    touched: tuple[str, ...] = ()

    def leads_to(self, problem: Problem, hint: str) -> bool:
        """Whether a new problem comes from the edit. A name of an example does not count: the author writes his own."""
        message_words = {name.partition("_2")[0] for name in re.findall(r"[\w.]+", problem.message)}
        if problem.code in LATER_CODES:
            return False
        if problem.code.startswith("unknown-") and message_words & set(re.findall(r"[\w.]+", hint.replace("did you mean", ""))):
            return False
        if not self.touched:
            return False
        try:
            place = Document.read(self.text, problem)
        except Unclear:
            return False
        path = place.path(place.node)
        return path[: len(self.touched)] == self.touched


def obeyed(text: str, problem: Problem) -> Iterator[Obeyed]:
    """The file after the hint was obeyed, for each way in which it can be."""
    if problem.code in BY_LINE:
        yield from map(Obeyed, by_line(text, problem))
        return
    for pattern, function in RULES:
        if match := re.search(pattern, problem.hint):
            try:
                document = Document.read(text, problem)
                documents = function(document, match)
                for edited_document in [document] if documents is None else documents:
                    # Another mistake in a misspelled document is not one of the hint.
                    yield Obeyed(edited_document.text(), () if "did you mean" in match[0] else edited_document.touched)
            except (Unclear, yaml.YAMLError, StopIteration, RecursionError):
                continue


LATER_CODES = ("missing-key", "needs-keys", "duplicate-key")
"""Codes of problems that tell the author to go on with what he has begun, or that he has it already."""
BY_LINE = ("yaml-syntax", "unquoted-comma", "tab", "bad-character", "unknown-anchor")


def by_line(text: str, problem: Problem) -> Iterator[str]:
    """Corrects a mistake of YAML in its line."""
    lines = text.split("\n")
    index, column = problem.where.line - 1, problem.where.column - 1
    line = lines[index]
    indent = line[: len(line) - len(line.lstrip())]
    new_lines: list[str] = []
    if match := re.match(r"write ((?:- )?\w+: .*)$", problem.hint):
        new_lines = [indent + match[1]]
    elif match := re.match(r'write ("(.*)")', problem.hint):
        raw = re.sub(r"\\(.)", r"\1", match[2])
        new_lines = [
            line.replace(raw, match[1], 1),
            line[:column] + line[column:].replace(raw, match[1], 1),
            f"{line[:column]}{match[1]}",
        ]
    elif match := re.match(r"add ([\]}]) where it ends", problem.hint):
        new_lines = [line + match[1]]
    elif problem.hint.startswith(("remove it", "replace it", "text that starts with")):
        new_lines = [line[:column] + replacement + line[column + 1 :] for replacement in ("", " ")]
    elif problem.hint.startswith("use spaces"):
        yield text.replace("\t", "  ")
    elif problem.hint.startswith("use single quotes"):
        new_lines = [line.replace('"', "'")]
    elif problem.hint.startswith("close it"):
        new_lines = [line + line[column : column + 1]]
    elif problem.hint.startswith("remove `"):
        new_lines = [""]
    elif problem.hint.startswith("put the whole text in quotes"):
        key, _, value = line.partition(": ")
        new_lines = [f"{key}: '{value}'"]
    elif problem.hint.startswith("give") or "indent" in problem.hint:
        new_lines = ["  " + line.lstrip(), line.lstrip(), "    " + line.lstrip()]
    for new_line in new_lines:
        yield "\n".join([*lines[:index], new_line, *lines[index + 1 :]])
