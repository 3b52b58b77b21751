"""The pages of docs/howto: specs that compile, commands and links that exist, and one page done as it is written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import click
import pytest

from framework.cli import main
from framework.init import project
from framework.plan.passes import draft
from framework.reference.options import anchor
from framework.spec.kinds import KINDS

ROOT = Path(__file__).resolve().parent.parent
HOWTO = ROOT / "docs" / "howto"
PAGES = sorted(HOWTO.glob("*.md"))
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
TOPIC, PIPELINE = ({field.name.rstrip("_") for field in fields(KINDS[each])} for each in ("topic", "pipeline"))
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXTS[name], re.MULTILINE | re.DOTALL)


def console(name: str) -> list[tuple[str, list[str]]]:
    """The commands of a page, each with the lines that it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for line in "".join(blocks(name, "console")).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def test_the_index_lists_every_page() -> None:
    assert set(re.findall(r"^\|.*\]\(([^)]+)\) \|$", TEXTS["index.md"], re.MULTILINE)) == set(TEXTS) - {"index.md"}
    assert len(TEXTS) > 10


@each_page
def test_a_page_is_short_and_of_no_machine(page: Path) -> None:
    text = TEXTS[page.name]
    assert len(text.splitlines()) <= 60
    assert max(map(len, text.splitlines())) <= 140
    assert not re.search(r"(?<![\w.…/])/(?!…)\w+/|127\.0\.0\.1:\d|localhost", text), "a path or an address of a machine"


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", TEXTS[page.name]):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.is_file(), link
        headings = re.findall(r"^#+ (.*)", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert not heading or heading in map(anchor, headings), link


@each_page
def test_every_command_exists(page: Path) -> None:
    """Those of blocks as a whole; those in running text as far as they are said."""
    whole = [line for line, _ in console(page.name) if line.startswith("sluice ")]
    said = re.findall(r"`(sluice [^`]+)`", re.sub(r"^```.*?^```$", "", TEXTS[page.name], flags=re.MULTILINE | re.DOTALL))
    assert whole or page.stem == "index"
    for line in whole:
        parse(line)
    for line in said:
        with suppress(click.MissingParameter):
            parse(line)


def parse(line: str) -> None:
    """Reads a command line as `sluice` would, without doing anything."""
    words = shlex.split(re.split(r" [<>|] ", line)[0])[1:]
    command: click.Command = main
    context: click.Context | None = None
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        context = click.Context(command, parent=context)
        found = command.get_command(context, words.pop(0))
        assert found is not None, f"there is no such command: {line}"
        command = found
    if not isinstance(command, click.Group):
        command.make_context(command.name, words, parent=context)


def test_a_command_that_does_not_exist_is_seen() -> None:
    with pytest.raises(AssertionError):
        parse("sluice frobnicate orders")
    with pytest.raises(click.NoSuchOption):
        parse("sluice status --fast > out")


def documents(text: str) -> list[str]:
    return re.split(r"^---\n", text, flags=re.MULTILINE)


def kind(document: str) -> tuple[str, str] | None:
    """Kind and name of a whole document; None of options alone."""
    found = re.search(r"^(\w+): (.*)", document, re.MULTILINE)
    return (found[1], found[2]) if found and found[1] in KINDS else None


def with_options(block: str, document: str) -> str:
    """The document with these options in place of its own."""
    mine = PIPELINE if kind(document) == ("pipeline", "orders") else TOPIC if kind(document) == ("topic", "orders") else ()
    for name, option in re.findall(r"^((\w+):.*\n(?:[ #].*\n)*)", block, re.MULTILINE):
        if option in mine:
            document = re.sub(rf"^{option}:.*\n(?:[ #].*\n)*", "", document, flags=re.MULTILINE) + name
    return document


SPECS = [(page.name, block) for page in PAGES for block in blocks(page.name, "yaml")]


def test_there_are_specs() -> None:
    assert {name for name, block in SPECS if kind(block)} == {
        "another-kafka.md",
        "history.md",
        "production.md",
        "read-again.md",
        "schema-registry.md",
        "upserts.md",
    }
    assert len(SPECS) > 8


@pytest.mark.parametrize(("page", "block"), SPECS)
def test_specs_compile(page: str, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents in place of those of the project that `sluice init` makes; options in place of those of its pipeline or topic."""
    monkeypatch.chdir(tmp_path)
    project.start(Path())
    place = re.match(r"# (specs/environments/(\w+)/\S+)\n", block)
    before = [each for path in Path("specs").iterdir() for each in documents(path.read_text())]
    for above in blocks(page, "yaml"):
        if above != block and (kind(above) or ("", ""))[0] == "cluster":  # what stands below is of this one
            before = [each for each in before if kind(each) != kind(above)] + [above]
    if place:
        Path(place[1]).parent.mkdir(parents=True)
        Path(place[1]).write_text(block)
    elif kind(block):
        written = documents(block)
        before = [each for each in before if kind(each) not in map(kind, written)] + written
    else:
        after = [with_options(block, each) for each in before]
        assert after != before
        before = after
    Path("specs/main.yaml").write_text("---\n".join(before))
    Path("specs/orders.yaml").unlink()
    for name in re.findall(r"`pipelines/steps/(\w+)\.py`", TEXTS[page]):
        Path("pipelines/steps").mkdir(parents=True)
        Path(f"pipelines/steps/{name}.py").write_text(blocks(page, "python")[0])
    plan, problems = draft(Path("specs"), place[2] if place else "local")
    assert [str(problem) for problem in problems] == []
    assert [pipeline.name for pipeline in plan.pipelines] == ["orders"]


def pattern(line: str) -> str:
    """What a line is to look like, whatever its numbers, times and gaps are."""
    parts = re.split(r"((?<![\w-])\d[\d,.]*(?: (?:s|min) ago)?|…| +)", line.strip())
    special = {"…": ".*", " ": r"\s+"}
    shapes = [special.get(part[:1], r"[\d,.]+(?: (?:s|min) ago)?" if part[:1].isdigit() else re.escape(part)) for part in parts]
    return "".join(shapes)


def test_a_pattern_sees_a_difference() -> None:
    said = "shop.orders  syncing        3  55 s ago       yes"
    assert re.search(pattern(said), "shop.orders syncing 12 2 min ago yes")
    assert not re.search(pattern(said), "shop.orders caught up 12 2 min ago yes")
    assert not re.search(pattern("o-9       NULL     NORMAL"), "o-8  NULL  NORMAL")


FIRST = {
    "missing-row.md": ("sluice generate orders --count 1000", "sluice run orders"),
    "upserts.md": (),
    "history.md": (),
}
"""Pages that are done as they are written, and what is done in the new folder before."""


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST)
def test_a_page_done_in_a_new_folder_prints_what_it_says(name: str, tmp_path: Path, kafka: str) -> None:
    environment = {each: value for each, value in os.environ.items() if not each.startswith("SLUICE_")}
    environment |= {"SLUICE_VAR_KAFKA": kafka, "COLUMNS": "120", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def done(line: str) -> str:
        command = ["bash", "-c", line]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False)
        assert ended.returncode == 0, f"{line}\n{ended.stdout}{ended.stderr}"
        return ended.stdout

    done("sluice init .")
    (tmp_path / ".sluice").mkdir()
    (tmp_path / ".sluice" / "jars").symlink_to(ROOT / ".sluice" / "jars")
    if specs := [block for block in blocks(name, "yaml") if kind(block)]:
        (tmp_path / "specs" / "orders.yaml").write_text("---\n".join(specs))
    # A topic of this test's own: the pages name offsets.
    topic = f"orders_{Path(name).stem}"
    done(f"sed -i 's/memory: 4g/memory: 1g/; s/^topic: orders/topic: orders\\nkafka_name: {topic}/' specs/*.yaml")
    for line in FIRST[name]:
        done(line)
    commands = console(name)
    assert len(commands) > 5
    for line, said in commands:
        printed = done(line).replace(topic, "orders")
        for each in said:
            found = re.search(pattern(each), printed)
            assert found, f"$ {line}\n{printed}\nthe page has: {each}"
            printed = printed[found.end() :]
