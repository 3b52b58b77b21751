"""The connections that batches of one plan share: one Spark session, one per cluster and catalog, each opened when first needed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from framework.base.clock import Clock, utc_now
from framework.base.errors import SetupError
from framework.base.patience import REGISTRY
from framework.core.iceberg.lake import TableStore
from framework.core.iceberg.updates import CommitCall, commit_transaction
from framework.core.kafka.cluster import Kafka
from framework.core.rows.pins import NO_PINS, Pins
from framework.core.rules.protocol import Partition
from framework.core.schemas.schema_lookup import LiveSchemas
from framework.core.sources.readers import reader_of
from framework.core.sources.source import MessageStore, SourceWithCounts, TopicsReader
from framework.core.spark import session, start, warm
from framework.plan import Catalog, Pipeline, Plan
from framework.systems import mask_keys, secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SCHEMAS_HOLD = 1.0  # seconds: who keeps running need not ask for them before each batch
Until = datetime | Mapping[Partition, int]


def _continue(point: str) -> None:
    """Does nothing: kill points matter in tests only."""


class Context:
    """The shared state of batches. `reached` is called at each kill point; `commit` makes the publishing commits; `spark` gives the
    session; `source` replaces Kafka in tests; no batch reads beyond `until`. With `warm`, Spark runs in the warm JVM of this plan
    or of the plan given; False is for a process that keeps running. `clock` tells the time by which rows wait and
    snapshots and state expire."""

    def __init__(
        self,
        plan: Plan,
        spark: Callable[[], SparkSession] | None = None,
        reached: Callable[[str], None] = _continue,
        commit: CommitCall = commit_transaction,
        source: MessageStore | None = None,
        until: Until | None = None,
        warm: bool | Plan = True,
        clock: Clock = utc_now,
    ) -> None:
        # Who keeps running asks again soon, and meanwhile works on other pipelines.
        self.schemas = LiveSchemas(plan) if warm is not False else LiveSchemas(plan, patience=REGISTRY, rest=_SCHEMAS_HOLD)
        self.reached = reached
        self.clock = clock
        self._start = spark or (lambda: start.start(plan, plan if warm is True else warm or None, self.rows))
        self._own = spark is None
        self._stays = warm is False
        self.rows: int | None = None  # about how many rows are read next, if that is known
        self._commit = commit
        self._source = source
        self._until = until
        # By pipeline, the offsets at the time `until`, asked for once: a batch needs its source often.
        self._limits: dict[str, Mapping[Partition, int]] = {}
        self._spark: SparkSession | None = None
        self._kafka: dict[str, Kafka] = {}
        self._hashing: dict[str, str] = {}
        self._lakes: dict[str, TableStore] = {}
        self._host: Context | None = None  # whose JVM this one's session is in
        self._jvms = 0  # that have ended; of a sibling, those of its host when its session began
        self._lock = threading.RLock()

    def sibling(self, schemas: LiveSchemas | None = None) -> Context:
        """A context for another thread, with a session and connections of its own; of this one's plan, or of the one that the schemas are
        of. This one's JVM must outlast it."""
        schemas = schemas or self.schemas
        context = Context(
            schemas.plan, lambda: session.sibling(self.spark, schemas.plan), self.reached, self._commit, self._source, self._until,
            clock=self.clock,
        )  # fmt: skip
        context._host, context._jvms, context.schemas = self, self._jvms, schemas
        return context

    def take(self, plan: Plan) -> None:
        """Takes over another plan, for the siblings that are made from now on. Settings of the JVM stay as they are: a plan whose catalogs
        need more than that is refused."""
        if missing_sets := set(session.more_sets(plan)) - set(session.more_sets(self.plan)):
            message = f"the catalogs of the changed specs need other jars: {', '.join(sorted(missing_sets))}"
            raise SetupError("needs-restart", message, "start it again, which gets them")
        session.prepare(plan)
        self.schemas = LiveSchemas(plan, patience=self.schemas.patience, rest=self.schemas.rest)

    @property
    def plan(self) -> Plan:
        """The plan, with the registry's newest schemas."""
        return self.schemas.plan

    @property
    def spark(self) -> SparkSession:
        with self._lock:
            self._forget_session_of_former_jvm()
            if self._spark is None:
                handler = signal.getsignal(signal.SIGINT)
                self._spark = self._start()
                session.refuse_older(self._spark)
                # PySpark puts its own handler for Ctrl-C in place, which would end a batch in the middle.
                if threading.current_thread() is threading.main_thread():
                    signal.signal(signal.SIGINT, handler)
            return self._spark

    def expect(self, rows: int) -> None:
        """Prepares for work on about `rows` rows. A Spark that was started for few rows is ended if these are many; the next use
        starts another one."""
        if self._host is not None:  # whose JVM others use, too
            if not self._host._stays:
                self._host.rows = max(rows, self._host.rows or 0)
            return
        if self._stays:  # there is time for its Spark to become fast
            return
        self.rows = rows
        if self._own and self._spark is not None and session.is_outgrown(self._spark, rows):
            self.stop()

    def started(self) -> bool:
        """Whether Spark runs. While Spark starts, it writes to the terminal."""
        return self._spark is not None

    def memory(self) -> tuple[int, int] | None:
        """The bytes of memory that Java uses, and the most that it may use; None where no Java runs. Starts none, and waits for none."""
        spark = self._spark
        return None if spark is None else session.memory(spark)

    def kafka(self, pipeline: Pipeline) -> MessageStore:
        if self._source is not None:
            return self._source
        cluster = pipeline.topic.cluster
        client = self._kafka.get(cluster.name)
        # The specs may say another address, and a secret may be corrected, while a process runs.
        if client is None or client.cluster != cluster or not client.has_login(self.plan.secrets):
            client = self._kafka[cluster.name] = Kafka(cluster, self.plan.secrets)
        return client

    def source(self, pipeline: Pipeline, pins: Pins = NO_PINS) -> SourceWithCounts:
        """The source of the pipeline's rows: its topics or a table."""
        reader = reader_of(pipeline, lambda: self.kafka(pipeline), self.lake_of, pins)
        return replace(reader, until=self._limits_of(pipeline, reader.kafka)) if isinstance(reader, TopicsReader) else reader

    def _limits_of(self, pipeline: Pipeline, kafka: MessageStore) -> Mapping[Partition, int] | None:
        """The offsets at which this run stops."""
        if isinstance(self._until, datetime) and pipeline.name not in self._limits:
            assert isinstance(kafka, Kafka), "messages of a test have no times to stop at"
            topic_limits = (kafka.offsets_at(topic, self._until) for topic in pipeline.topics)
            self._limits[pipeline.name] = {partition: offset for offsets in topic_limits for partition, offset in offsets.items()}
        return self._limits.get(pipeline.name) if isinstance(self._until, datetime) else self._until

    def provide_keys(self, pipeline: Pipeline) -> None:
        """Gives the secrets of masks to the JVM, where SQL names them. Tests need none: a secret is its name there."""
        names = {key.secret.name for step in pipeline.steps for key in (step.masks.keys if step.masks else ())}
        for name in names:
            keys = cast(Any, self.spark)._jvm.sluice.Keys
            if self._source:
                keys.put(name, f"test key {name}")
            else:
                ring = mask_keys.ring(name, self.plan.secrets)
                keys.put(name, list(ring.suffixes), list(ring.values), ring.current)
                self._hashing[name] = ring.hashing

    def hashing(self, pipeline: Pipeline) -> dict[str, str]:
        """Digests of the keys that hash the pipeline's columns, by the names of their secrets, once they were provided."""
        names = (step.masks.keys[0].secret.name for step in pipeline.steps if step.masks and step.masks.keys)
        return {name: self._hashing[name] for name in names if name in self._hashing}

    def lake(self, pipeline: Pipeline) -> TableStore:
        return self.lake_of(pipeline.table.catalog)

    def lake_of(self, catalog: Catalog) -> TableStore:
        self._forget_session_of_former_jvm()
        lake = self._lakes.get(catalog.name)
        if lake is None or not lake.has_login():
            lake = self._lakes[catalog.name] = TableStore(self.spark, catalog, self._commit, former=lake)
        return lake

    def stop(self, patience: float = -1) -> None:
        """Ends the session, and the JVM if it is this one's. One that still starts after so many seconds ends with the process."""
        if not self._lock.acquire(timeout=patience):
            return
        try:
            if self._spark is not None:
                if self._host is not None:
                    session.leave(self._spark)
                else:
                    self._jvms += 1
                    if not warm.release(self._spark):
                        session.stop(self._spark)
                self._spark = None
                self._lakes.clear()
        finally:
            self._lock.release()

    def _forget_session_of_former_jvm(self) -> None:
        """Forgets a session whose JVM another thread has found gone; the next use begins another one."""
        if self._host is not None and self._jvms != self._host._jvms:
            self._jvms, self._spark = self._host._jvms, None
            self._lakes.clear()

    def has_lost_spark(self) -> bool:
        """Whether the JVM of the session that is in use has ended."""
        if self._host is not None and self._jvms != self._host._jvms:
            return True
        return self._spark is not None and session.is_gone(self._spark)

    def forget_what_failed(self) -> None:
        """Makes the next use look secrets up again, and start another session if the JVM of this one has ended."""
        secrets.forget(self.plan.secrets)
        with self._lock:
            if self._spark is not None and session.is_gone(self._spark):
                self.stop()
        if self._host is not None:
            self._host.forget_what_failed()
