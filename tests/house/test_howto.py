"""The tutorial and the pages of docs/howto: specs that compile, commands and links that exist, and every page followed as it is written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest
from confluent_kafka.admin import AdminClient

from framework.core.spark import warm_jvm
from framework.host.plans import draft
from framework.operations.init import project
from framework.operations.reference.options import anchor
from tests.support.docs_pages import Follower, console, first_difference, kind, parse, pattern, put
from tests.support.project import wait_for_partitions
from tests.support.rest_catalog import environment as logins

ROOT = Path(__file__).resolve().parents[2]
HOWTO = ROOT / "docs" / "howto"
TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGES = [*sorted(HOWTO.glob("*.md")), TUTORIAL]
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXTS[name], re.MULTILINE | re.DOTALL)


def test_the_index_lists_every_page() -> None:
    assert set(re.findall(r"^\|.*\]\(([^)]+)\) \|$", TEXTS["index.md"], re.MULTILINE)) == set(TEXTS) - {"index.md", TUTORIAL.name}
    assert len(TEXTS) > 10


@each_page
def test_a_page_is_short_and_of_no_machine(page: Path) -> None:
    text = TEXTS[page.name]
    assert len(text.splitlines()) <= 60 or page == TUTORIAL
    assert max(map(len, text.splitlines())) <= 140
    assert not re.search(r"(?<![\w.…/])/(?!…|api/|v1/)\w+/|127\.0\.0\.1:\d|localhost", text), "a path or an address of a machine"


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
    """Commands in blocks are complete; commands in running text may lack arguments."""
    whole = [line for block in blocks(page.name, "console") for line, _ in console(block) if line.startswith("sluice ")]
    inline = re.findall(r"`(sluice [^`]+)`", re.sub(r"^```.*?^```$", "", TEXTS[page.name], flags=re.MULTILINE | re.DOTALL))
    assert whole or page.stem == "index"
    for line in whole:
        parse(line)
    for line in inline:
        with suppress(click.MissingParameter):
            parse(line)


def test_a_command_that_does_not_exist_fails() -> None:
    with pytest.raises(AssertionError):
        parse("sluice frobnicate orders")
    with pytest.raises(click.NoSuchOption):
        parse("sluice status --fast > out")


SPECS = [(page.name, block) for page in PAGES for block in blocks(page.name, "yaml")]


def test_there_are_specs() -> None:
    assert {name for name, block in SPECS if kind(block)} == {
        "alerts.md",
        "another-kafka.md",
        "buckets.md",
        "cluster.md",
        "cost.md",
        "debezium.md",
        "delta.md",
        "duplicates.md",
        "exports.md",
        "history.md",
        "totals.md",
        "join.md",
        "kafka-logins.md",
        "keys.md",
        "select.md",
        "unusual.md",
        "lineage.md",
        "mail.md",
        "onward.md",
        "personal-data.md",
        "production.md",
        "publish.md",
        "read-again.md",
        "rest-catalog.md",
        "schema-registry.md",
        "tables-from-tables.md",
        "upserts.md",
    }
    assert len(SPECS) > 8


@pytest.mark.usefixtures("registry_away")
@pytest.mark.parametrize(("page", "block"), SPECS)
def test_specs_of_a_page_compile(page: str, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles the block in the project that `sluice init` makes, after the blocks above it."""
    monkeypatch.chdir(tmp_path)
    project.start(Path())
    for name in re.findall(r"`(pipelines/steps/\w+\.py)`", TEXTS[page]):
        Path(name).parent.mkdir(parents=True)
        Path(name).write_text(blocks(page, "python")[0])
    written = blocks(page, "yaml")
    for text in written[: written.index(block) + 1]:
        put(text, Path())
    plan, problems = draft(Path("specs"), (re.findall(r"specs/environments/(\w+)/", block) or ["local"])[0])
    assert len(problems) == block.count("# a mistake"), [str(problem) for problem in problems]
    assert problems or "orders" in [pipeline.name for pipeline in plan.pipelines]


def test_a_pattern_sees_a_difference() -> None:
    quoted = "shop.orders  syncing        3  55 s ago       yes"
    assert re.search(pattern(quoted), "shop.orders syncing 12 2 min ago yes")
    assert not re.search(pattern(quoted), "shop.orders caught up 12 2 min ago yes")
    assert not re.search(pattern("o-9       NULL     NORMAL"), "o-8  NULL  NORMAL")


NOT_DONE = {
    "tutorial.md": ("sluice services",),  # the Kafka is that of the tests
    "another-kafka.md": ("sluice topics --env prod",),  # a Kafka with TLS and a login, under a name that is not there
    "buckets.md": ("sluice services", "export SLUICE_"),  # the store is that of the tests
    "mail.md": ("sluice services",),  # as is the mail server
    "alerts.md": ("sluice services",),
    "rest-catalog.md": ("sluice services", "export SLUICE_VAR", "export SLUICE_SECRET"),  # as for buckets.md
    "serve.md": ("sluice serve",),  # it never ends: tests/host/test_serve.py runs it, and what is typed in DuckDB
    "cluster.md": ("sluice plan",),  # without that environment: tests/core/test_cluster.py runs what it prints
    "production.md": ("export DAGSTER_HOME",),  # the daemon and the web server, which never end
}
"""Commands and `sh` blocks that are not typed, by how they begin. Besides, DuckDB's SQL in read-tables.md: `INSTALL` downloads."""
WITHOUT_JARS = {"another-kafka.md"}  # its last block is about a machine that could not get them
FOLLOWED = [pytest.param(name, id=Path(name).stem, marks=pytest.mark.long) for name in TEXTS if blocks(name, "console")]


@pytest.mark.slow
def test_a_page_with_other_output_fails(tmp_path: Path) -> None:
    def follow(page: str) -> list[str | None]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        return [first_difference(expected, printed) for _, expected, printed in Follower(folder, os.environ).follow(page)]

    command = "```console\n$ sluice check\n1 pipeline, 1 topic: no problems\n```\n"
    assert follow(f"To follow, `sluice check`:\n{command}") == [None, None]
    assert follow(command.replace("topic", "table")) == ["1 pipeline, 1 table: no problems"]
    with pytest.raises(AssertionError, match="did you mean `at`"):
        follow(f"```yaml\nevent_time: att\n```\n{command}")
    with pytest.raises(AssertionError, match="changes nothing"):
        follow("```yaml\nevent_time: at\n```\n")


@pytest.fixture
def no_topic(kafka: str) -> Iterator[str]:
    """A Kafka where nobody has followed a page yet: pages name offsets."""
    admin = AdminClient({"bootstrap.servers": kafka})

    def forget() -> None:
        if "orders" in admin.list_topics(timeout=10).topics:
            admin.delete_topics(["orders"])["orders"].result()
        wait_for_partitions(admin, "orders", 0)

    forget()
    yield kafka
    forget()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A new folder; at its end, the Spark that commands left there is ended."""
    yield tmp_path
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    warm_jvm.end()


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("name", FOLLOWED)
def test_a_page_done_in_a_new_folder_prints_what_it_says(
    name: str, folder: Path, no_topic: str, request: pytest.FixtureRequest
) -> None:
    environment = {variable: value for variable, value in os.environ.items() if not variable.startswith("SLUICE_")}
    environment |= {"SLUICE_VAR_KAFKA": no_topic, "HOME": str(folder)}
    if "${var:REGISTRY" in TEXTS[name]:
        environment["SLUICE_VAR_REGISTRY"] = request.getfixturevalue("registry")
    if "${var:MAIL_PORT" in TEXTS[name]:
        environment["SLUICE_VAR_MAIL_PORT"] = str(request.getfixturevalue("mail_port"))
    if "${var:STORE" in TEXTS[name]:
        store = "quick_store" if "${var:CATALOG" in TEXTS[name] else "object_store"  # the catalog is in front of that
        environment["SLUICE_VAR_STORE"] = request.getfixturevalue(store)
        environment |= logins()
    if "${var:CATALOG" in TEXTS[name]:
        environment["SLUICE_VAR_CATALOG"] = request.getfixturevalue("rest_catalog")
    (folder / ".sluice").mkdir()
    if name not in WITHOUT_JARS:
        (folder / ".sluice" / "jars").symlink_to(ROOT / ".sluice" / "jars")
    for line, expected, printed in Follower(folder, environment).follow(TEXTS[name], NOT_DONE.get(name, ())):
        missing = first_difference(expected, printed)
        assert missing is None, f"$ {line}\n{printed}\nthe page has: {missing}"
