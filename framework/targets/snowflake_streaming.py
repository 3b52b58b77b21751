"""Send a topic to Snowflake directly, by Snowflake's connector in Kafka Connect, without Sluice in between."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from framework import components, formats
from framework.access import snowflake
from framework.access.about import AboutTopic, name, secret
from framework.access.steps import SHELL, SNOWFLAKE, Step, Warned, check, create, query
from framework.engine.kafka import acls
from framework.model import Topic

OF = "topic"
_WRITER = "sluice_writer"
_DATABASE, _SCHEMA = "sluice_streaming", "kafka"
_CONNECT = "http://<Connect>:8083/connectors"


def steps(about: AboutTopic) -> Iterator[Step | Warned]:
    topic = about.topic
    table = f"{_DATABASE}.{_SCHEMA}.{name(topic.name)}"
    connector = f"sluice-{name(topic.name).replace('_', '-')}"
    yield Warned(
        "rows come as they are in Kafka: no step, no flag, no mask and no dedup of the specs is applied, and repeats stay repeats"
    )
    yield Warned(
        "Kafka Connect needs the connector's jar of version 3, not 4, with the jars bc-fips and bcpkix-fips that its release notes name"
    )
    yield Warned("Snowpipe Streaming costs by the hour of each client and by the bytes; one task is one client")
    if not _converter(topic):
        yield Warned(
            f"`value: {topic.value}` has no converter in Kafka Connect that is known here: its `value.converter` is left to you"
        )
    yield from _snowflake(table)
    dead = f"{topic.kafka_name}_not_loaded"
    yield create(
        SHELL, "A topic for messages that the connector cannot load. Without it one such message stops the connector, or is lost silently.",
        shlex.join([*_kafka(topic, "kafka-topics.sh"), "--create", "--topic", dead, "--partitions", "1"]),
        shlex.join([*_kafka(topic, "kafka-topics.sh"), "--delete", "--topic", dead]),
    )  # fmt: skip
    configuration = {"name": connector, "config": _configuration(topic, dead)}
    yield create(
        SHELL, f"The connector, as {connector}.json. Better than in it, secrets stand in a file that Connect reads: `${{file:…}}`.",
        f"cat > {connector}.json <<'END'\n{json.dumps(configuration, indent=2)}\nEND\n"
        f"curl --fail -X POST -H 'Content-Type: application/json' --data @{connector}.json '{_CONNECT}'",
        f"curl --fail -X DELETE '{_CONNECT}/{connector}'\nrm {connector}.json",
    )  # fmt: skip
    yield from _checks(topic, connector, table, dead)
    yield query(SNOWFLAKE, "Rows.", f"SELECT * FROM {table} LIMIT 10;")
    yield query(SNOWFLAKE, "How many came.", f"SELECT count(*), max(RECORD_METADATA:CreateTime) FROM {table};")


def _snowflake(table: str) -> Iterator[Step]:
    yield snowflake.key_pair(_WRITER, "A key for the connector")
    yield from snowflake.places(_DATABASE, _SCHEMA)
    yield from snowflake.user(_WRITER, "The role.", "The user,")
    where = f"{_DATABASE}.{_SCHEMA}"
    yield create(
        SNOWFLAKE, "The table; the connector adds columns as messages have them.",
        f"CREATE TABLE IF NOT EXISTS {table} (RECORD_METADATA VARIANT) ENABLE_SCHEMA_EVOLUTION = TRUE;", f"DROP TABLE IF EXISTS {table};",
    )  # fmt: skip
    yield create(
        SNOWFLAKE, "What the role may do.",
        f"GRANT ROLE {_WRITER} TO USER {_WRITER};\nGRANT USAGE ON DATABASE {_DATABASE} TO ROLE {_WRITER};\n"
        f"GRANT USAGE, CREATE PIPE ON SCHEMA {where} TO ROLE {_WRITER};\n"
        f"GRANT OWNERSHIP ON TABLE {table} TO ROLE {_WRITER} COPY CURRENT GRANTS;",
    )  # fmt: skip


def _configuration(topic: Topic, dead: str) -> dict[str, str]:
    security, kafka = topic.cluster.security, {}
    if security.username is not None:
        scram = str(security.mechanism).startswith("SCRAM")
        module = f"org.apache.kafka.common.security.{'scram.ScramLoginModule' if scram else 'plain.PlainLoginModule'}"
        login = f'{module} required username="{secret(security.username)}" password="{_password(topic)}";'
        kafka = {
            f"{who}.override.{key}": value
            for who in ("consumer", "producer")
            for key, value in (
                ("security.protocol", str(security.protocol)), ("sasl.mechanism", str(security.mechanism)), ("sasl.jaas.config", login),
            )
        }  # fmt: skip
    return {
        "connector.class": "com.snowflake.kafka.connector.SnowflakeSinkConnector",
        "tasks.max": "1",
        "topics": topic.kafka_name,
        "snowflake.topic2table.map": f"{topic.kafka_name}:{name(topic.name)}",
        "snowflake.url.name": "<account>.snowflakecomputing.com:443",
        "snowflake.user.name": _WRITER,
        "snowflake.private.key": f"<content of {_WRITER}.p8, without its first and last line>",
        "snowflake.role.name": _WRITER,
        "snowflake.database.name": _DATABASE,
        "snowflake.schema.name": _SCHEMA,
        "snowflake.ingestion.method": "SNOWPIPE_STREAMING",
        "snowflake.enable.schematization": "true",
        "buffer.flush.time": "10",
        "buffer.count.records": "10000",
        "buffer.size.bytes": "20000000",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        **_converter(topic),
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.context.headers.enable": "true",
        **kafka,
    }  # fmt: skip


def _password(topic: Topic) -> str:
    password = topic.cluster.security.password
    return secret(password) if password is not None else "<password>"


def _converter(topic: Topic) -> dict[str, str]:
    """How Kafka Connect reads the values; nothing where it does not."""
    converter: dict[str, str] = getattr(components.load(formats.FORMATS, topic.value), "CONNECT", {})
    by_registry = topic.cluster.registry and any(each.of == "value" for each in topic.registered)
    return {**converter, **({"value.converter.schema.registry.url": topic.cluster.registry or ""} if by_registry else {})}


def _checks(topic: Topic, connector: str, table: str, dead: str) -> Iterator[Step]:
    yield check(SHELL, "Whether it runs, and the error of a task that failed.", f"curl '{_CONNECT}/{connector}/status'")
    logs = "What it logs: a wrong key says JWT token is invalid, a missing right Insufficient privileges."
    yield check(SHELL, logs, "docker logs <container of Connect> 2>&1 | grep -i snowflake")
    lag = [*_kafka(topic, "kafka-consumer-groups.sh"), "--describe", "--group", f"connect-{connector}"]
    yield check(SHELL, "How many messages it is behind.", shlex.join(lag))
    not_loaded = [
        *_kafka(topic, "kafka-console-consumer.sh"),
        "--topic",
        dead,
        "--from-beginning",
        "--property",
        "print.headers=true",
    ]
    yield check(SHELL, "What could not be loaded, and why.", shlex.join([*not_loaded, "--timeout-ms", "5000"]))
    yield check(SNOWFLAKE, "The offset that each partition has reached.", f"SHOW CHANNELS IN TABLE {table};")
    yield check(SNOWFLAKE, "Its pipes.", f"SHOW PIPES IN SCHEMA {_DATABASE}.{_SCHEMA};")
    yield check(
        SNOWFLAKE, "What it costs.",
        "SELECT start_time, credits_used, num_bytes_migrated FROM SNOWFLAKE.ACCOUNT_USAGE.SNOWPIPE_STREAMING_FILE_MIGRATION_HISTORY\n"
        f"  WHERE table_name = '{name(topic.name).upper()}' ORDER BY start_time DESC LIMIT 24;",
    )  # fmt: skip


def _kafka(topic: Topic, tool: str) -> tuple[str, ...]:
    return acls.tool(topic.cluster, tool)
