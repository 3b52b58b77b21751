"""Alerts on keys that are to be replaced soon."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from framework.operations.alerts import key_ends
from framework.operations.alerts.judge import Judgement, judge
from framework.operations.alerts.key_ends import KeyEnds
from framework.operations.keys.rotation import Rotation
from framework.plan import Plan
from tests.support.alerting import ORDERS, alert
from tests.support.key_specs import write
from tests.support.project import BASE
from tests.support.shop import NOWHERE

pytestmark = pytest.mark.usefixtures("own_folder")
SPECS = f"{BASE.format(bootstrap=NOWHERE)}---{ORDERS}{alert('{key_ends_within: 7d}', notify='[]')}"
KEYS = "---\nkeys: readers\nof: serve\nsecret: readers\nrotate_every: 30d\n"
DAY = 86400


@pytest.fixture(autouse=True)
def _looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # A look at the store of secrets counts for minutes.
    monkeypatch.setattr(key_ends, "_FRESH", 0.0)


def made(days_ago: float) -> None:
    """Changes the age of the readers' key."""
    path = Path(".sluice/secrets")
    moment = time.time() - days_ago * DAY
    path.write_text(re.sub(r'("created": )[0-9.]+', rf"\g<1>{moment}", path.read_text()))


def why(judgement: Judgement) -> set[str]:
    return {judged.why for judged in judgement.judged if judged.holds}


def replace(plan: Plan) -> None:
    (document,) = plan.documents_of("keys")
    Rotation(plan, document.value).rotate()


def test_it_holds_before_a_key_ends_and_is_over_when_it_was_replaced() -> None:
    plan = write(SPECS + KEYS, {})
    assert why(judge(plan)) == {"the key readers is to be replaced now"}, "there is none yet"
    replace(plan)
    assert why(judge(plan)) == set()
    made(days_ago=24)
    assert why(judge(plan)) == {"the key readers is to be replaced in 6 d"}
    made(days_ago=31)
    assert why(judge(plan)) == {"the key readers is to be replaced now"}
    replace(plan)
    assert why(judge(plan)) == set()


def test_a_store_that_cannot_be_read_is_unknown() -> None:
    plan = write(SPECS + KEYS, {})
    replace(plan)
    Path(".sluice/secrets").chmod(0o644)
    judgement = judge(plan)
    assert all(judged.unknown for judged in judgement.judged)
    assert {error.code for error in judgement.failures} == {"open-secrets"}
    assert json.loads(Path(".sluice/alerts/local.json").read_text())["incidents"] == {}


def test_a_key_of_a_cluster_is_one_of_its_tables() -> None:
    security = 'security: {protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: "${secret:kafka_key}", password: "${secret:kafka_secret}"}'
    specs = SPECS.replace("---\ncatalog: lake", f"{security}\n---\ncatalog: lake", 1)
    keys = "---\nkeys: login\nof: kafka\nsecret: kafka\nrotate_every: 30d\n"
    plan = write(specs + keys, {"kafka_key": "a", "kafka_secret": "b"})
    left = [KeyEnds(plan).seconds_left(pipeline, time.time()) for pipeline in plan.pipelines]
    assert left == [{"login": 0.0}, {"login": 0.0}], "of unknown age"
