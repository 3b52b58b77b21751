"""The key of a mask is replaced while a table grows: hashes stay equal; what any key encrypted can be revealed, replayed and forgotten."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from framework.base.errors import SluiceError
from framework.core.query.reveal import reveal
from framework.operations.keys.rotation import Rotation
from framework.operations.undo import replay
from framework.systems import secret_uses
from tests.support.people import forgotten
from tests.support.project import Project
from tests.support.rebuilds import rebuilt
from tests.support.runs import published

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow]
SPECS = """
secrets: main
store: file
path: {path}
---
keys: pii
of: mask
secret: pii
---
topic: trades
kafka_name: {{topic}}
value: json
key: {{{{format: string, as: email}}}}
columns: {{{{id: bigint, phone: string, price: double}}}}
---
pipeline: trades
from: {{{{topic: trades}}}}
steps:
  - mask: {{{{key: "${{{{secret:pii}}}}", columns: {{{{email: hmac, phone: encrypt}}}}}}}}
expect: [{{{{when: price {most}, else: quarantine}}}}]
into: {{{{table: {{namespace}}.trades}}}}
"""
ANN, BOB = "ann@example.com", "bob@example.com"
FIRST = "of-the-first-key-0123456789"


@pytest.fixture
def masked(project: Project) -> Iterator[Project]:
    path = Path(f"secrets-{uuid.uuid4().hex}")
    path.write_text(f"pii={FIRST}\n")
    path.chmod(0o600)
    project.template = SPECS.format(path=path, most="< 100")
    project.make_topic(1)
    with secret_uses.unnoted():  # this process makes keys, too
        yield project
    path.unlink()


def send(project: Project, *prices: float) -> None:
    """Sends an order of Ann's and of Bob's with each price."""
    project.produce(
        {"key": email, "value": json.dumps({"id": number, "phone": f"{number} of {email}", "price": price}).encode()}
        for number, price in enumerate(prices)
        for email in (ANN, BOB)
    )


def rotation(project: Project) -> Rotation:
    (document,) = project.plan.documents_of("keys")
    return Rotation(project.plan, document.value)


def ids(project: Project) -> list[str]:
    """The ids of the keys that encrypted the table's phones, in the order of the messages."""
    rows = sorted(project.rows(), key=lambda row: int(row["_kafka_offset"]))
    return [row["phone"].split(":")[1] for row in rows if row["phone"].startswith("enc:")]


def phones(project: Project) -> list[str | None]:
    """The plain phones."""
    return sorted(reveal(project.plan, project.pipeline, "phone", [row["phone"] for row in project.rows()]), key=str)


def grown(project: Project) -> Project:
    """The project after three batches by three keys, each with a bad row of either person."""
    for _ in range(3):
        send(project, 1, 200)
        project.run()
        rotation(project).rotate()
    return project


def test_a_new_key_encrypts_and_the_oldest_one_hashes(masked: Project) -> None:
    grown(masked)
    assert ids(masked) == ["pii"] * 2 + ["pii#2"] * 2 + ["pii#3"] * 2
    assert len({row["email"] for row in masked.rows()}) == 2, "one hash of each person"
    assert phones(masked) == [f"0 of {ANN}"] * 3 + [f"0 of {BOB}"] * 3
    rotation(masked).rotate(to=2)
    send(masked, 1)
    masked.run()
    assert ids(masked)[-2:] == ["pii#2"] * 2 and len({row["email"] for row in masked.rows()}) == 2


def test_bad_rows_of_former_keys_are_replayed(masked: Project) -> None:
    grown(masked)
    assert len(masked.rows(bad=True)) == 6
    masked.template = masked.template.replace("< 100", "< 1000")
    published(replay.replay(masked.context(), masked.pipeline, "true", lambda: False))
    assert not [row for row in masked.rows(bad=True) if row["state"] == "open"]
    assert len(masked.rows()) == 12
    assert phones(masked).count(f"1 of {ANN}") == 3 and len({row["email"] for row in masked.rows()}) == 2


def test_a_person_is_found_by_the_hash_and_in_bad_rows_of_all_keys(masked: Project) -> None:
    grown(masked)
    lines = forgotten(masked, key={"email": ANN})
    assert phones(masked) == [f"0 of {BOB}"] * 3
    assert len(masked.rows(bad=True)) == 3, lines
    rotation(masked).rotate()
    send(masked, 1)
    masked.run()
    assert phones(masked) == [f"0 of {BOB}"] * 4, "who was forgotten does not come again, by a later key either"
    with pytest.raises(SluiceError, match="is encrypted by a key that is replaced"):
        forgotten(masked, key={"phone": f"0 of {BOB}"})


def test_a_key_whose_values_are_there_is_not_retired(masked: Project) -> None:
    grown(masked)
    with pytest.raises(SluiceError, match="cannot be read any more, and equal values get other hashes") as refused:
        rotation(masked).retire(1)
    assert refused.value.code == "key-needed"
    with pytest.raises(SluiceError, match=r"in n\w+\.trades and their bad rows cannot be read any more\n"):
        rotation(masked).retire(2)
    rotation(masked).new()
    rotation(masked).retire(5)  # nothing was masked by it
    rotation(masked).retire(2, also_used=True)
    assert phones(masked).count(None) == 2, "those by the second key"
    send(masked, 1)
    masked.run()
    assert ids(masked)[-1] == "pii#4" and len({row["email"] for row in masked.rows()}) == 2
    assert rotation(masked).rotate_due() == []


def test_a_short_key_is_refused(masked: Project) -> None:
    with pytest.raises(SluiceError, match="so it can be guessed"):
        rotation(masked).new({"pii": "short"})


def rewritten(project: Project, change: Callable[[list[str]], list[str]]) -> None:
    """Changes the lines of the file of secrets, as a person would."""
    path = Path(project.plan.secrets.options.path)
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")


def refused(project: Project) -> str:
    send(project, 1)
    with pytest.raises(SluiceError) as error:
        project.run()
    return error.value.code


def test_a_value_that_somebody_wrote_masks_nothing(masked: Project) -> None:
    grown(masked)
    rewritten(masked, lambda lines: [line.replace("pii=", "pii=x", 1) if line.startswith("pii=") else line for line in lines])
    assert refused(masked) == "mask-key-unknown"
    rotation(masked).rotate(to=3)
    masked.run()
    assert ids(masked)[-1] == "pii#3" and None not in phones(masked)


def test_a_damaged_line_of_a_key_masks_nothing(masked: Project) -> None:
    grown(masked)
    rewritten(masked, lambda lines: [line.replace('"used"', "used") if line.startswith("pii@1=") else line for line in lines])
    assert refused(masked) == "damaged-key"


def test_without_the_document_the_oldest_key_still_hashes(masked: Project) -> None:
    grown(masked)
    masked.template = masked.template.replace("keys: pii\nof: mask\nsecret: pii\n---\n", "")
    send(masked, 1)
    masked.run()
    assert ids(masked)[-1] == "pii#4" and len({row["email"] for row in masked.rows()}) == 2
    assert None not in phones(masked)


def test_another_key_hashes_no_row_of_the_table_before_a_rebuild(masked: Project) -> None:
    send(masked, 1)
    masked.run()
    rewritten(masked, lambda lines: ["pii=of-another-key-0123456789"])
    assert refused(masked) == "mask-key-changed"
    rebuilt(masked.context(), masked.pipeline)
    masked.run()
    assert len(masked.rows()) == 4 and len({row["email"] for row in masked.rows()}) == 2 and None not in phones(masked)
    assert ids(masked) == ["pii"] * 4


def test_of_two_lines_the_first_one_counts(masked: Project) -> None:
    send(masked, 1)
    masked.run()
    rewritten(masked, lambda lines: [*lines, "pii=of-another-key-0123456789"])
    send(masked, 1)
    masked.run()
    assert len({row["email"] for row in masked.rows()}) == 2
