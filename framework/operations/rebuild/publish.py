"""The one commit that swaps a rebuilt table in, and the checks before it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from framework.base.errors import BatchError, RefusedError, RolledBack, SourceLost, SparkEnded, Transient
from framework.core.context.context import Context
from framework.core.iceberg import removal, replaced_table
from framework.core.iceberg.commit import Outcome, commit, refused
from framework.core.iceberg.jvm_state import state
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.second_identity import GOING, second_pipeline
from framework.core.iceberg.updates import Commit
from framework.core.publish import hashing_keys, side_tables
from framework.core.publish.sweep import withdraw
from framework.core.publish.tables import write_properties
from framework.core.rules import attempts, daily_work, protocol, refusals
from framework.core.rules.protocol import Position, TableState
from framework.core.run.events import Rebuilt
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from framework.operations.rebuild import second_table
from framework.operations.rebuild.estimate import Estimate, current_table, foreign_commits
from framework.plan import Pipeline
from framework.plan.change import Change


class Publishing:
    """One try to publish, under an attempt's id. `use_id` is another id, which shows that the second table is in use. A single id for
    both tables would be forgotten with the first branch that is swept."""

    def __init__(
        self, context: Context, lake: TableStore, pipeline: Pipeline, estimate: Estimate, attempt: str, use_id: str
    ) -> None:
        self.context = context
        self.lake = lake
        self.pipeline = pipeline
        self.second = second_pipeline(pipeline)
        self.estimate = estimate
        self.attempt = attempt
        self.use_id = use_id
        self.cause = ""  # the catalog's error text when it last refused a commit

    def run(self) -> Rebuilt | None:
        """Publishes; returns None where the second table needs more batches first."""
        own_table, second = load_table(self.lake, self.pipeline), load_table(self.lake, self.second)
        own_state, second_state = state(own_table), state(second)
        self._refuse_others(own_state)
        position, second_position = position_of(own_state), position_of(second_state)
        if second.properties().get(protocol.OF) != own_state.uuid:
            return None  # an ordinary table, created after another rebuild had ended and deleted the second one
        if is_behind(second_position, position) or self.context.source(self.pipeline).ids() != second_position.topics:
            return None
        side_tables.roll_forward(self.lake, self.pipeline, own_state.uuid, position)
        side_tables.roll_forward(self.lake, self.second, second_state.uuid, second_position)
        number = position.batch + 1
        try:
            # A run that deletes the second table first checks for live attempts in it, then marks it.
            self.lake.branch_in_use(second, self.use_id, second_state.main)
            if GOING in load_table(self.lake, self.second).properties():
                self._withdraw()
                return None
            # While this branch exists, nobody takes the attempt for dead and sweeps its bad rows. Without it nothing is committed.
            self.lake.branch(own_table, self.attempt, own_state.main)
            bad_count = side_tables.copy_batches(
                self.lake, self.pipeline, self.second, self.attempt, own_state.uuid, number, second_position.batch
            )
            self.context.reached("rebuild_staged")
            new_position = Position(
                attempt=self.attempt, batch=number, cluster=second_position.cluster, topics=second_position.topics,
                ends=second_position.ends, spec=self.pipeline.spec, bad=bad_count, accepted=position.accepted,
                forget=(0, position.batch), rebuilt=number, newest=second_position.newest,
            )  # fmt: skip
            result = self._commit(own_state, second, second_state, new_position)
        except (CommitRefused, CommitUnknown) as error:
            self.cause, result = str(error), None
        except SparkEnded:
            raise  # perhaps after the commit: the next rebuild finds out
        except (BatchError, RefusedError):
            self._withdraw()
            raise
        if result is None:
            self._withdraw()
            return None
        self.context.reached("rebuild_published")
        return result

    def _withdraw(self) -> None:
        second = self.lake.load(self.second.table.identifier)
        with suppress(CommitRefused, CommitUnknown):
            if second is not None and second.snapshot(protocol.BRANCH + self.use_id) is not None:
                removal.sweep(self.lake, second, self.use_id)
            attempts.forget(self.use_id)
        with suppress(CommitRefused, CommitUnknown):
            own_table = load_table(self.lake, self.pipeline)
            if own_table.snapshot(protocol.BRANCH + self.attempt) is not None:
                removal.sweep(self.lake, own_table, self.attempt)
            withdraw(self.lake, self.pipeline, self.attempt, may_be_published=True)

    def _commit(self, own_state: TableState, second: Any, second_state: TableState, new_position: Position) -> Rebuilt | None:
        """Swaps the second table in; None if it needs more batches first, or has to begin again."""

        def judge() -> Outcome[Rebuilt | None] | Callable[[], Rebuilt]:
            swap = self.lake.begin(load_table(self.lake, self.pipeline))
            current = state(swap.table)
            if current.position is not None and current.position.attempt == self.attempt:
                return Outcome(Rebuilt(self.pipeline, new_position.batch, current.position.snapshot))
            if (current.uuid, current.main, current.position) != (own_state.uuid, own_state.main, own_state.position):
                return Outcome(None)
            if swap.table.snapshot(protocol.BRANCH + self.attempt) is None:
                return Outcome(None)  # another process took this attempt for dead
            changes = second_table.wanted_changes(self.lake, self.pipeline, swap.table)
            own_table = load_table(self.lake, self.pipeline)
            fits = replaced_table.can_swap(self.lake, own_table, changes, self.pipeline.table, second)
            if not fits or not second_table.knows_forgotten(swap.table, changes, second):
                return Outcome(
                    None
                )  # its columns were changed or a person was forgotten meanwhile: the second table begins again
            return partial(self._swap, swap, changes, second, second_state, new_position)

        identifier = self.pipeline.table.identifier
        hint = f"nothing was lost: `sluice rebuild {self.pipeline.name}` resumes from here"
        return commit(judge, partial(refused, identifier, hint=hint, code="not-published"))

    def _swap(
        self, swap: Commit, changes: tuple[Change, ...], second: Any, second_state: TableState, new_position: Position
    ) -> Rebuilt:
        self.context.reached("rebuild_checked")
        properties = {
            **write_properties(self.pipeline),
            **{name: value for name, value in second.properties().items() if name == hashing_keys.PROPERTY},
            protocol.REBUILT: second_state.uuid,
            protocol.OWNER: refusals.owner(self.pipeline),
            **daily_work.with_rebuild(swap.table.properties(), second.properties()),
            **second_table.forgotten_keys(swap.table, changes),
        }
        try:
            snapshot = replaced_table.swap_in(
                self.lake, swap, changes, self.pipeline.table, second, second_state.main, new_position, properties
            )
        except (CommitRefused, CommitUnknown) as error:
            self.cause = str(error)
            raise
        return Rebuilt(self.pipeline, new_position.batch, snapshot)

    def _refuse_others(self, own_state: TableState) -> None:
        """Refuses if another program has committed since the estimate was shown, unless a run computes the whole table anyway."""
        if check_rolled_back(self.context, self.pipeline, own_state) and not self.estimate.rolled_back:
            refusals.check(self.pipeline, own_state, self.context.source(self.pipeline).topic_state())
        if self.pipeline.read_tables:
            return
        shown_snapshots = {commit.snapshot for commit in self.estimate.foreign}
        new_commits = [
            commit for commit in foreign_commits(current_table(self.pipeline)) if commit.snapshot not in shown_snapshots
        ]
        if new_commits:
            raise RefusedError(
                "commits-of-others",
                f"another program changed {self.pipeline.table.identifier} during the rebuild, which would undo it: {new_commits[0].words}",
                f"nothing was published; `sluice rebuild {self.pipeline.name}` shows it and resumes from here",
            )


def check_rolled_back(context: Context, pipeline: Pipeline, state: TableState) -> bool:
    """Whether the table was rolled back or its source is lost, which a rebuild repairs. Raises every other refusal of a run."""
    try:
        refusals.check(pipeline, state, context.source(pipeline).topic_state())
    except (RolledBack, SourceLost):
        return True
    return False


def is_behind(second_position: Position, own_position: Position) -> bool:
    """Whether the pipeline's own table has messages that the second one lacks. Topics that were recreated do not count."""
    return any(
        second_position.ends.get(partition, 0) < end
        for partition, end in own_position.ends.items()
        if own_position.topics.get(protocol.parted(partition)[0]) == second_position.topics.get(protocol.parted(partition)[0])
    )


def load_table(lake: TableStore, pipeline: Pipeline) -> Any:
    table = lake.load(pipeline.table.identifier)
    if table is None:
        raise Transient(
            "table-dropped",
            f"the table {pipeline.table.identifier} was dropped during a rebuild",
            "`sluice run` creates it again",
        )
    return table


def position_of(state: TableState) -> Position:
    assert state.position is not None  # these tables were created with one
    return state.position
