"""What Spark throws while it reads and writes, by a name that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from framework.errors import BatchError
from framework.plan.model import Pipeline


@contextmanager
def named_errors(pipeline: Pipeline) -> Iterator[None]:
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    smaller = "give `engine` more `memory`, or the pipeline a smaller `batch: {rows: …}`; nothing of this batch was published"
    try:
        yield
    except Py4JError as error:
        if not isinstance(error, Py4JJavaError):
            raise BatchError("spark-ended", "Spark ended while it worked", smaller) from None
        if "OutOfMemoryError" in str(error):
            raise BatchError("out-of-memory", "Spark ran out of memory", smaller) from None
        _name(pipeline, error)
        raise
    except PySparkException as error:
        _name(pipeline, error)
        raise


def _name(pipeline: Pipeline, error: Exception) -> None:
    said = str(error)
    if any(text in said.lower() for text in ("data loss", "data may have been lost", "kafka_data_loss")):
        names = ", ".join(pipeline.sources)
        message = f"Kafka lost messages of {names} while they were read"
        raise BatchError("messages-gone", message, "run again: what is missing is then named") from None
    if "SslAuthenticationException" in said or "SaslAuthenticationException" in said:
        why = "does not trust its certificate" if "PKIX" in said or "SSL handshake" in said else "was not let in"
        hint = (
            "`JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=…` names a store that Java trusts; see `security` of the cluster, too"
        )
        raise BatchError("kafka-refused", f"Spark cannot read from Kafka at {_bootstrap(pipeline)}: Java {why}", hint) from None
    if "Cannot use branch (does not exist)" in said:
        # Of remembered deletes, which another run has forgotten or a rebuild has made anew.
        from framework.engine.answers import Refused

        raise Refused(said) from None
    if "No space left on device" in said:
        message = "the disk is full; nothing of this batch was published"
        raise BatchError("disk-full", message, "free some space and run again") from None


def _bootstrap(pipeline: Pipeline) -> str:
    return ", ".join(dict.fromkeys(topic.cluster.bootstrap for topic in pipeline.topics))
