"""Dagster's freshness policies, where one is true. Dagster judges a policy by the last materialization alone.

A table of a topic in which messages may stop has none: no new commit is no fault there. Its check `fresh` asks what waits.
"""

from __future__ import annotations

from datetime import timedelta

from dagster import FreshnessPolicy

from framework.language.cron import an_hour_later, earliest_in_each_hour
from framework.plan import Pipeline
from framework.plan.export import Export

# Between the start of a scheduled run and its deadline. One hour, because that moves a deadline by its time zone alone.
_GRACE = timedelta(hours=1)
_AN_HOUR_BEHIND_UTC = "Etc/GMT+1"  # POSIX counts to the west


def of_table(pipeline: Pipeline) -> FreshnessPolicy | None:
    """The policy of a pipeline's table. A schedule is the whole promise of a pipeline that has one."""
    if pipeline.run.cron:
        return _scheduled(pipeline.run.cron, pipeline.run.timezone)
    if pipeline.fresh_within and pipeline.is_steady:
        warn = timedelta(seconds=pipeline.warn_after) if pipeline.warn_after else None
        return FreshnessPolicy.time_window(fail_window=timedelta(seconds=pipeline.fresh_within), warn_window=warn)
    return None


def of_export(export: Export) -> FreshnessPolicy | None:
    """The policy of an export's file. One without a schedule has none."""
    return _scheduled(export.schedule, "UTC") if export.schedule else None


def _scheduled(cron: str, timezone: str) -> FreshnessPolicy | None:
    """A deadline one hour behind the first tick of each hour: what was materialized since the tick is in time. Several ticks in an hour
    have one deadline, since Dagster accepts no window that is longer than the time between two.

    No cron text is in general another one an hour later, across midnight and the ends of months. In UTC the same text in a time zone an
    hour behind is. Other time zones have no such zone: there, a schedule in the last hour of chosen days has no policy.
    """
    first_ticks = earliest_in_each_hour(cron)
    if timezone == "UTC":
        return FreshnessPolicy.cron(deadline_cron=first_ticks, lower_bound_delta=_GRACE, timezone=_AN_HOUR_BEHIND_UTC)
    deadline = an_hour_later(first_ticks)
    return FreshnessPolicy.cron(deadline_cron=deadline, lower_bound_delta=_GRACE, timezone=timezone) if deadline else None
