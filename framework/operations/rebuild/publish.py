"""The one commit that swaps a rebuilt table in, and the checks before it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from framework.base.errors import BatchError, RefusedError, RolledBack, SourceLost, SparkEnded, Transient
from framework.core.context.context import Context
from framework.core.iceberg import removal, replaced_table
from framework.core.iceberg.jvm_state import state
from framework.core.iceberg.lake import Lake
from framework.core.iceberg.second_identity import GOING, second_pipeline
from framework.core.publish import side_tables
from framework.core.publish.sweep import withdraw
from framework.core.publish.tables import write_properties
from framework.core.rules import attempts, protocol, refusals
from framework.core.rules.protocol import Position, TableState
from framework.core.spark.causes import commit_failed
from framework.core.spark.java_errors import CommitRefused, CommitUnknown
from framework.operations.rebuild import second_table
from framework.operations.rebuild.estimate import Estimate, current_table, foreign_commits
from framework.plan import Pipeline

_COMMITS = 5  # how often one commit is tried


@dataclass(frozen=True)
class Published:
    """A published rebuild. `only_ended`: it was published before, and only the second table was left to delete."""

    number: int
    snapshot: int
    only_ended: bool = False


class Publishing:
    """One try to publish, under an attempt's id. `using` is another id, which shows others that the second table is in use. The same id
    in both tables would be forgotten with the first branch that is swept."""

    def __init__(self, context: Context, lake: Lake, pipeline: Pipeline, estimate: Estimate, attempt: str, using: str) -> None:
        self.context = context
        self.lake = lake
        self.pipeline = pipeline
        self.second = second_pipeline(pipeline)
        self.estimate = estimate
        self.attempt = attempt
        self.using = using
        self.cause = ""  # the catalog's error text when it last refused a commit

    def run(self) -> Published | None:
        """Publishes; returns None where the second table needs more batches first."""
        own, second = load_table(self.lake, self.pipeline), load_table(self.lake, self.second)
        opened, built = state(own), state(second)
        self._refuse_others(opened)
        position, reached = position_of(opened), position_of(built)
        if second.properties().get(protocol.OF) != opened.uuid:
            return None  # an ordinary table, created after another rebuild had ended and deleted the second one
        if is_behind(reached, position) or self.context.source(self.pipeline).ids() != reached.topics:
            return None
        side_tables.roll_forward(self.lake, self.pipeline, opened.uuid, position)
        side_tables.roll_forward(self.lake, self.second, built.uuid, reached)
        number = position.batch + 1
        try:
            # A run that deletes the second table first checks for live attempts in it, then marks it.
            self.lake.branch_in_use(second, self.using, built.main)
            if GOING in load_table(self.lake, self.second).properties():
                self._withdraw()
                return None
            # While it is there, nobody takes the attempt for dead and sweeps its bad rows, unless the commit is refused then.
            self.lake.branch(own, self.attempt, opened.main)
            bad = side_tables.copy_batches(
                self.lake, self.pipeline, self.second, self.attempt, opened.uuid, number, reached.batch
            )
            self.context.at("rebuild_staged")
            to = Position(
                attempt=self.attempt, batch=number, cluster=reached.cluster, topics=reached.topics, ends=reached.ends,
                spec=self.pipeline.spec, bad=bad, accepted=position.accepted,
                forget=(0, position.batch), rebuilt=number, newest=reached.newest,
            )  # fmt: skip
            published = self._commit(opened, second, built, to)
        except (CommitRefused, CommitUnknown) as error:
            self.cause, published = str(error), None
        except SparkEnded:
            raise  # perhaps behind the commit: the next one finds out
        except (BatchError, RefusedError):
            self._withdraw()
            raise
        if published is None:
            self._withdraw()
            return None
        self.context.at("rebuild_published")
        return published

    def _withdraw(self) -> None:
        second = self.lake.load(self.second.table.identifier)
        with suppress(CommitRefused, CommitUnknown):
            if second is not None and second.snapshot(protocol.BRANCH + self.using) is not None:
                removal.sweep(self.lake, second, self.using)
            attempts.forget(self.using)
        with suppress(CommitRefused, CommitUnknown):
            withdraw(self.lake, self.pipeline, self.attempt)

    def _commit(self, opened: TableState, second: Any, built: TableState, to: Position) -> Published | None:
        for left in reversed(range(_COMMITS)):
            try:
                transaction = self.lake.begin(load_table(self.lake, self.pipeline))
                current = state(transaction.table())
                if current.position is not None and current.position.attempt == self.attempt:
                    return Published(to.batch, current.position.snapshot)
                if (current.uuid, current.main, current.position) != (opened.uuid, opened.main, opened.position):
                    return None
                if transaction.table().snapshot(protocol.BRANCH + self.attempt) is None:
                    return None  # another took this attempt for dead
                changes = second_table.wanted_changes(self.lake, self.pipeline, transaction.table())
                if not replaced_table.can_swap(
                    self.lake, load_table(self.lake, self.pipeline), changes, self.pipeline.table, second
                ) or not second_table.knows_forgotten(transaction.table(), changes, second):
                    return None  # its columns were changed or a person was forgotten meanwhile: the second table begins again
                if left == 0:
                    break
                self.context.at("rebuild_checked")
                properties = {
                    **write_properties(self.pipeline),
                    protocol.REBUILT: built.uuid,
                    protocol.OWNER: refusals.owner(self.pipeline),
                    **second_table.forgotten_keys(transaction.table(), changes),
                }
                snapshot = replaced_table.swap_in(
                    self.lake, transaction, changes, self.pipeline.table, second, built.main, to, properties
                )
            except (CommitRefused, CommitUnknown) as error:
                self.cause = str(error)
                continue  # checked again, which also finds a commit whose answer was lost
            return Published(to.batch, snapshot)
        message = f"the catalog did not accept the commit to {self.pipeline.table.identifier} in {_COMMITS - 1} tries"
        hint = f"nothing was lost: `sluice rebuild {self.pipeline.name}` resumes from here"
        raise commit_failed("not-published", message, self.cause, hint)

    def _refuse_others(self, opened: TableState) -> None:
        """Refuses if another program has committed since the estimate was shown, unless a run computes the whole table anyway."""
        if check_rolled_back(self.context, self.pipeline, opened) and not self.estimate.rolled_back:
            refusals.check(self.pipeline, opened, self.context.source(self.pipeline).topic_state())
        if self.pipeline.source:
            return
        shown_snapshots = {each.snapshot for each in self.estimate.foreign}
        new_commits = [each for each in foreign_commits(current_table(self.pipeline)) if each.snapshot not in shown_snapshots]
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


def is_behind(second: Position, own: Position) -> bool:
    """Whether the pipeline's own table has messages that the second one lacks. Topics that were recreated do not count."""
    return any(
        second.ends.get(each, 0) < end
        for each, end in own.ends.items()
        if own.topics.get(protocol.parted(each)[0]) == second.topics.get(protocol.parted(each)[0])
    )


def load_table(lake: Lake, pipeline: Pipeline) -> Any:
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
