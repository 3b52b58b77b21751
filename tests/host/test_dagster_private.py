"""The private names of Dagster that Sluice imports: few, each with its reason, and each still with its meaning in this Dagster."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.repository import ROOT

if TYPE_CHECKING:
    from dagster import DagsterInstance

pytestmark = pytest.mark.slow
# The test of each name stands below. A name that only annotations use is here, too.
TESTED = {
    "AssetCheckEvaluationTargetMaterializationData": "test_a_check_targets_the_materialization_that_it_names",
    "AssetCheckExecutionRecord": "test_the_history_of_a_check_is_read_by_the_status_of_its_records",
    "AssetCheckExecutionRecordStatus": "test_the_history_of_a_check_is_read_by_the_status_of_its_records",
    "AUTOMATION_CONDITION_TAG": "test_a_run_that_an_automation_condition_starts_has_the_tag",
    "DATA_VERSION_TAG": "test_a_data_version_is_the_tag_of_its_event",
    "IMPLICIT_ASSET_JOB_NAME": "test_the_job_of_all_assets_has_the_name",
    "SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION": "test_an_output_with_the_mark_is_no_materialization_and_skips_nothing",
}


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    from dagster import DagsterInstance

    with DagsterInstance.ephemeral() as ephemeral_instance:
        yield ephemeral_instance


def test_each_private_name_has_a_reason_and_a_test() -> None:
    names: list[str] = []
    for file in (file for folder in ("framework", "sluice", "pipelines") for file in (ROOT / folder).rglob("*.py")):
        lines = file.read_text().splitlines()
        for number, line in enumerate(lines):
            private = re.match(
                r"\s*from dagster\w*\._[\w.]* import (.*)|\s*import dagster\w*\._|\s*from dagster\w* import _", line
            )
            if private:
                assert private[1] and re.fullmatch(r"\w+", private[1]), f"{file}:{number + 1}: one name a line"
                assert lines[number - 1].lstrip().startswith("# "), f"{file}:{number + 1}: the line above says why"
                names.append(private[1])
    assert sorted(names) == sorted(TESTED)
    assert all(callable(globals()[test]) for test in TESTED.values())


def test_the_history_of_a_check_is_read_by_the_status_of_its_records(instance: DagsterInstance) -> None:
    from dagster import AssetCheckEvaluation, AssetCheckKey, AssetKey
    from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

    from framework.host.assets import check_records

    key = AssetKey(["lake", "m", "p"])
    for verdict in (True, False):
        instance.report_runless_asset_event(
            AssetCheckEvaluation(asset_key=key, check_name="fresh", passed=verdict, metadata={"n": 1})
        )
        check = AssetCheckKey(key, "fresh")
        records = check_records.latest(instance, [check])
        assert [type(record) for record in records.values()] == [AssetCheckExecutionRecord]
        assert check_records.is_judged(records[check])
        (last_check,) = check_records.as_last_judged(instance, [AssetCheckKey(key, "fresh")])
        assert (last_check.passed, last_check.metadata["n"].value, last_check.blocking) == (verdict, 1, False)


def test_a_check_targets_the_materialization_that_it_names(instance: DagsterInstance) -> None:
    """Else the page shows it as not evaluated."""
    from dagster import AssetCheckEvaluation, AssetCheckKey, AssetKey, AssetMaterialization
    from dagster._core.loader import LoadingContextForTest

    from framework.host.assets import check_records

    key = AssetKey(["lake", "m", "p"])
    verdict = AssetCheckEvaluation(asset_key=key, check_name="fresh", passed=True, metadata={})
    instance.report_runless_asset_event(verdict)
    instance.report_runless_asset_event(AssetMaterialization(key))
    (record,) = instance.fetch_materializations(key, limit=1).records
    target = check_records.Materialization(storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp)
    instance.report_runless_asset_event(check_records.of_materialization(verdict, target))
    check = AssetCheckKey(key, "fresh")
    latest = check_records.latest(instance, [check])[check]
    assert asyncio.run(latest.targets_latest_materialization(LoadingContextForTest(instance)))


def test_a_run_that_an_automation_condition_starts_has_the_tag() -> None:
    """The tags with which Dagster's sensor daemon requests a run after it evaluated conditions."""
    from dagster import DagsterRun
    from dagster._core.storage.tags import AUTOMATION_CONDITION_TAG

    assert AUTOMATION_CONDITION_TAG in DagsterRun.tags_for_tick_id("1", has_evaluations=True)
    assert AUTOMATION_CONDITION_TAG not in DagsterRun.tags_for_tick_id("1", has_evaluations=False)


def test_a_data_version_is_the_tag_of_its_event(instance: DagsterInstance) -> None:
    from dagster import DataVersion, MaterializeResult, asset, materialize
    from dagster._core.definitions.data_version import DATA_VERSION_TAG

    @asset
    def table():  # type: ignore[no-untyped-def]
        return MaterializeResult(data_version=DataVersion("snapshot 7"))

    (event,) = materialize([table], instance=instance).get_asset_materialization_events()
    tags = event.step_materialization_data.materialization.tags
    assert tags is not None and tags[DATA_VERSION_TAG] == "snapshot 7"


def test_the_job_of_all_assets_has_the_name() -> None:
    from dagster import Definitions, asset
    from dagster._core.definitions.assets.job.asset_job import IMPLICIT_ASSET_JOB_NAME

    @asset
    def table() -> None: ...

    assert Definitions(assets=[table]).resolve_implicit_global_asset_job_def().name == IMPLICIT_ASSET_JOB_NAME


def test_an_output_with_the_mark_is_no_materialization_and_skips_nothing(instance: DagsterInstance) -> None:
    from dagster import AssetKey, AssetSpec, asset, materialize, multi_asset

    from framework.host.assets import results

    @multi_asset(specs=[AssetSpec("table")])
    def table():  # type: ignore[no-untyped-def]
        return results.nothing_new(AssetKey("table"))

    @asset(deps=["table"])
    def later() -> None: ...

    result = materialize([table, later], instance=instance)
    assert [event.asset_key for event in result.get_asset_materialization_events()] == [AssetKey("later")]


@pytest.mark.parametrize(("name", "reserved"), [("class", True), ("context", True), ("input", True), ("orders", False)])
def test_names_that_dagster_refuses_for_a_step_are_known_without_its_list(name: str, reserved: bool) -> None:
    from framework.host.assets.translator import _is_reserved

    assert _is_reserved(name) is reserved
