"""Follows a page of the docs as a new user would: writes its YAML into a project, types its commands, compares what they print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import click

from framework.host.cli import main
from framework.language.kind import document_types

TOPIC, PIPELINE = (
    {field.name.rstrip("_") for field in fields(document_types()[document_kind])} for document_kind in ("topic", "pipeline")
)
ITEM = re.compile(r"^```(\w*)\n(.*?)^```$|\b(To follow, .*?[.:])$", re.MULTILINE | re.DOTALL)
LATE = re.compile(r" LATE$", re.MULTILINE)
FAILS = re.compile(r"^\s*hint: |: holds, |^[1-9]\d* problems?$|, [1-9]\d* failed,", re.MULTILINE)
QUESTION = "? [y/N]: "


def parse(line: str) -> None:
    """Read a command line as `sluice` would, without running the command."""
    words = shlex.split(re.split(r" [<>|] ", line)[0])[1:]
    command: click.Command = main
    context: click.Context | None = None
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        context = click.Context(command, parent=context)
        subcommand = command.get_command(context, words.pop(0))
        assert subcommand is not None, f"there is no such command: {line}"
        command = subcommand
    if not isinstance(command, click.Group) and "--help" not in words:
        command.make_context(command.name, words, parent=context)


def console(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the output lines that the page quotes."""
    commands: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    return commands


def pattern(line: str) -> str:
    """A pattern of an output line, which leaves open its numbers, times and gaps."""
    parts = re.split(r"((?<![\w-])\d[\d,.]*(?: (?:s|min) ago)?|…| +)", line.strip())
    special = {"…": ".*", " ": r"\s+"}
    shapes = [special.get(part[:1], r"[\d,.]+(?: (?:s|min) ago)?" if part[:1].isdigit() else re.escape(part)) for part in parts]
    return "".join(shapes)


def documents(text: str) -> list[str]:
    return re.split(r"^---\n", text, flags=re.MULTILINE)


def kind(document: str) -> tuple[str, str] | None:
    """Kind and name of a whole document; None of options alone."""
    heading = re.search(r"^(\w+): (.*)", document, re.MULTILINE)
    return (heading[1], heading[2]) if heading and heading[1] in document_types() else None


def with_options(block: str, document: str) -> str:
    """The document of the pipeline or topic `orders` with these options in place of its own."""
    keys = {("pipeline", "orders"): PIPELINE, ("topic", "orders"): TOPIC}.get(kind(document) or ("", ""), set())
    for option_text in re.finditer(r"^(\w+):.*\n(?:[ #].*\n)*", block, re.MULTILINE):
        option = option_text[1]
        if option in keys:
            before = re.search(rf"^{option}:.*\n(?:[ #].*\n)*", document, re.MULTILINE)
            document = document.replace(before[0], option_text[0]) if before else document + option_text[0]
    return document


def put(block: str, project: Path) -> None:
    """Put a yaml block into the specs: a file that it names, documents in place of those of their kind and name, or options."""
    if place := re.match(r"# (specs/environments/\S+)\n", block):
        (project / place[1]).parent.mkdir(parents=True)
        (project / place[1]).write_text(block)
        return
    before = {path: documents(path.read_text()) for path in sorted((project / "specs").glob("*.yaml"))}
    after = dict(before)
    if kind(block):
        new_documents = {kind(document): document for document in documents(block)}
        for path, texts in before.items():
            after[path] = [new_documents.pop(kind(text), text) for text in texts]
        after[project / "specs" / "orders.yaml"] += new_documents.values()
    else:
        after = {path: [with_options(block, text) for text in texts] for path, texts in before.items()}
    assert after != before, f"this changes nothing in the specs:\n{block}"
    for path, texts in after.items():
        path.write_text("---\n".join(texts))


@dataclass(frozen=True)
class Follower:
    """Follows a page in a new project."""

    project: Path
    environment: Mapping[str, str]

    def follow(self, page: str, not_done: tuple[str, ...] = ()) -> Iterator[tuple[str, list[str], str]]:
        """Each command of a page, its quoted output lines, and its real output; commands that begin with `not_done` are left out."""
        if "$ sluice init ." not in page:
            self.do("sluice init .")
        for language, block, to_follow in ITEM.findall(page):
            commands: list[tuple[str, list[str]]] = []
            if language == "yaml":
                put(block, self.project)
            elif language == "python" and (step := re.search(r"`(pipelines/steps/\w+\.py)`", page)):
                (self.project / step[1]).parent.mkdir(parents=True)
                (self.project / step[1]).write_text(block)
            elif language == "python" and (file := re.match(r"# (\w+\.py)\n", block)):
                (self.project / file[1]).write_text(block)
            elif language == "python":
                commands = [(f"python - <<'END'\n{block}END", [])]
            elif language == "sh":
                commands = [(block, [])]
            elif language == "console":
                commands = console(block)
            elif to_follow:
                commands = [(command, []) for command in re.findall(r"`(sluice (?!init|setup|services)[^`]+)`", to_follow)]
            for line, expected in commands:
                if not line.startswith(not_done or "\n"):
                    yield line, expected, self.do(line, expected)

    def do(self, line: str, expected: list[str] | None = None) -> str:
        """The output of a command. Its exit status must be 1 if the page quotes a hint or a failure, 3 if a late table, else 0."""
        quoted = "\n".join(expected or [])
        answer = quoted.partition(QUESTION)[2].partition("\n")[0]
        result = subprocess.run(
            ["bash", "-c", line],
            cwd=self.project,
            env={**self.environment, "COLUMNS": "140", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            input=answer,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
            check=False,
        )
        output = result.stdout.replace(QUESTION, f"{QUESTION}{answer}\n")
        status = 1 if FAILS.search(quoted) else 3 if LATE.search(quoted) else 0
        assert result.returncode == status, f"$ {line}\n{output}\nended with {result.returncode}"
        if line == "sluice init .":
            main = self.project / "specs" / "main.yaml"
            main.write_text(main.read_text().replace("memory: 4g", "memory: 1g"))
        return output


def first_difference(expected: list[str], output: str) -> str | None:
    """The first quoted line that is missing in the output, below the lines before it."""
    for line in expected:
        place = re.search(pattern(line), output)
        if place is None:
            return line
        output = output[place.end() :]
    return None
