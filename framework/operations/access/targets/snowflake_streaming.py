"""Send a topic to Snowflake directly, by Snowflake's connector in Kafka Connect, without Sluice in between."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from framework.core.kafka import acls
from framework.messages import formats
from framework.operations.access import connect, private_files, snowflake
from framework.operations.access.about import TopicSubject, name
from framework.operations.access.steps import SHELL, SNOWFLAKE, ScriptStep, Warned, check, create, query, shared
from framework.plan import Topic

OF = "topic"
_WRITER = "sluice_writer"
_DATABASE, _SCHEMA = "sluice_streaming", "kafka"
_CONNECT = "http://<Connect>:8083/connectors"
_SECRETS = "sluice-secrets.properties"
_WITHOUT_FIELDS = (".StringConverter", ".ByteArrayConverter")  # of Kafka Connect
_SECRETS_FILE = private_files.path(_SECRETS)
_WORKER_FILE = f"<folder>/{_SECRETS}"


def steps(about: TopicSubject) -> Iterator[ScriptStep | Warned]:
    topic = about.topic
    table = f"{_DATABASE}.{_SCHEMA}.{_table(topic)}"
    connector = f"sluice-{name(topic.name).replace('_', '-')}"
    dead_topic = f"{topic.kafka_name}_not_loaded"
    yield from _warnings(topic)
    yield from _snowflake(table, "" if _has_fields(topic) else "RECORD_CONTENT VARIANT, ")
    yield create(
        SHELL, "A topic for messages that the connector cannot load. Without it one such message stops the connector, or is lost silently.",
        shlex.join([*acls.tool(topic.cluster, "kafka-topics.sh"), "--create", "--topic", dead_topic, "--partitions", "1"]),
        shlex.join([*acls.tool(topic.cluster, "kafka-topics.sh"), "--delete", "--topic", dead_topic]),
    )  # fmt: skip
    yield from connect.rights(topic.cluster, connector, topic.kafka_name, dead_topic)
    yield from _connector(topic, connector, dead_topic)
    yield from _checks(topic, connector, table, dead_topic)
    yield snowflake.asking(_WRITER, snowflake.WAREHOUSE)
    yield query(SNOWFLAKE, "Rows.", f"SELECT * FROM {table} LIMIT 10;")
    yield query(SNOWFLAKE, "How many came.", f"SELECT count(*), max(RECORD_METADATA:CreateTime) FROM {table};")


def _warnings(topic: Topic) -> Iterator[Warned]:
    yield snowflake.key_note(_WRITER)
    yield private_files.unencrypted(_SECRETS, "that key and the other secrets of the connector")
    yield Warned(
        "rows come as they are in Kafka: no step, no flag, no mask and no dedup of the specs is applied, and repeats stay repeats"
    )
    yield Warned(
        "Kafka Connect (`apache/kafka` or `confluentinc/cp-kafka-connect`) needs the connector's jar of version 3, not 4, and beside it "
        "bc-fips-2.1.0.jar and bcpkix-fips-2.1.8.jar, or those that the page of that version names"
    )
    yield Warned(
        "its worker has to read secrets from files: `config.providers=file` and "
        "`config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider`"
    )
    if oauth := topic.cluster.security.oauth:
        yield Warned(
            "Kafka's clients ask only allowed endpoints for tokens: start each worker with "
            f"`KAFKA_OPTS=-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={oauth.token_endpoint}`"
        )
    if topic.cluster.security.tls:
        yield Warned(
            "in the file of secrets, certificates and keys are one line each, with `\\n` where lines end; the key is PKCS#8, as "
            "`openssl pkcs8 -topk8 -nocrypt` writes it"
        )
    if topic.cluster.security.protocol != "PLAINTEXT":
        yield Warned(
            f"{acls.ADMIN} holds an administrator's login to Kafka, for Kafka's own tools: `security.protocol` and what belongs to it"
        )
    yield Warned("Snowpipe Streaming costs by the hour of each client and by the bytes; one task is one client")
    if not _converter(topic):
        yield Warned(
            f"`value: {topic.value}` has no converter in Kafka Connect that is known here: its `value.converter` is left to you"
        )


def _snowflake(table: str, content: str) -> Iterator[ScriptStep]:
    yield snowflake.key_pair(_WRITER, "A key for the connector")
    yield snowflake.warehouse()
    yield from snowflake.places(_DATABASE, _SCHEMA)
    yield from snowflake.user(_WRITER, "The role.", "The user,")
    schema_name = f"{_DATABASE}.{_SCHEMA}"
    yield create(
        SNOWFLAKE, "The table." if content else "The table; the connector adds columns as messages have them.",
        f"CREATE TABLE IF NOT EXISTS {table} ({content}RECORD_METADATA VARIANT) ENABLE_SCHEMA_EVOLUTION = TRUE;",
        f"DROP TABLE IF EXISTS {table};",
    )  # fmt: skip
    yield create(
        SNOWFLAKE, "What the role may do.",
        f"GRANT ROLE {_WRITER} TO USER {_WRITER};\nGRANT USAGE ON WAREHOUSE {snowflake.WAREHOUSE} TO ROLE {_WRITER};\n"
        f"GRANT USAGE ON DATABASE {_DATABASE} TO ROLE {_WRITER};\n"
        f"GRANT USAGE, CREATE PIPE ON SCHEMA {schema_name} TO ROLE {_WRITER};\n"
        f"GRANT OWNERSHIP ON TABLE {table} TO ROLE {_WRITER} COPY CURRENT GRANTS;",
    )  # fmt: skip


def _connector(topic: Topic, connector: str, dead_topic: str) -> Iterator[ScriptStep]:
    lines = connect.secret_lines(topic.cluster)
    secrets = (f"printf '%s\\n' {private_files.quoted(line)} >> {_SECRETS_FILE}" for line in lines)
    key = f"echo \"private_key=$(grep -v '^-' {snowflake.private_key(_WRITER)} | tr -d '\\n')\" > {_SECRETS_FILE}"
    yield shared(
        SHELL, f"The secrets, for the folder <folder> of each machine of Connect; what is already in {_SECRETS_FILE} is replaced.",
        private_files.writing(f"rm -f {_SECRETS_FILE}", key, *secrets), f"rm {_SECRETS_FILE}",
    )  # fmt: skip
    file = private_files.path(f"{connector}.json")
    configuration = {"name": connector, "config": _configuration(topic, dead_topic)}
    yield create(
        SHELL, f"The connector, as {file}.",
        f"{private_files.writing(f'cat > {file}')} <<'END'\n{json.dumps(configuration, indent=2)}\nEND\n"
        f"curl --fail -X POST -H 'Content-Type: application/json' --data @{file} '{_CONNECT}'",
        f"curl --fail -X DELETE '{_CONNECT}/{connector}'\nrm {file}",
    )  # fmt: skip


def _configuration(topic: Topic, dead_topic: str) -> dict[str, str]:
    return {
        "connector.class": "com.snowflake.kafka.connector.SnowflakeSinkConnector",
        "tasks.max": "1",
        "topics": topic.kafka_name,
        "snowflake.topic2table.map": f"{topic.kafka_name}:{_table(topic)}",
        "snowflake.url.name": "<account>.snowflakecomputing.com:443",
        "snowflake.user.name": _WRITER,
        "snowflake.private.key": connect.in_file(_WORKER_FILE, "private_key"),
        "snowflake.role.name": _WRITER,
        "snowflake.database.name": _DATABASE,
        "snowflake.schema.name": _SCHEMA,
        "snowflake.ingestion.method": "SNOWPIPE_STREAMING",
        "snowflake.enable.schematization": str(_has_fields(topic)).lower(),
        "buffer.flush.time": "10",
        "buffer.count.records": "10000",
        "buffer.size.bytes": "20000000",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        **_converter(topic),
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "errors.deadletterqueue.topic.name": dead_topic,
        "errors.deadletterqueue.context.headers.enable": "true",
        **connect.logins(topic.cluster, _WORKER_FILE),
    }


def _table(topic: Topic) -> str:
    """The name of the topic's table. The connector takes no name in quotes, and none of one letter."""
    table = name(topic.name)
    return table if len(table) > 1 and snowflake.identifier(table) == table else f"topic_{table}"


def _has_fields(topic: Topic) -> bool:
    """Whether a message has fields, which can become columns."""
    return not _converter(topic).get("value.converter", "").endswith(_WITHOUT_FIELDS)


def _converter(topic: Topic) -> dict[str, str]:
    """The converter by which Kafka Connect reads the values; nothing where it cannot."""
    converter: dict[str, str] = formats.having("CONNECT").get(topic.value, {})
    by_registry = topic.cluster.registry and any(schema.of == "value" for schema in topic.registered)
    return {**converter, **(connect.registry(topic.cluster, _WORKER_FILE) if by_registry else {})}


def _checks(topic: Topic, connector: str, table: str, dead_topic: str) -> Iterator[ScriptStep]:
    yield check(SHELL, "Whether it runs, and the error of a task that failed.", f"curl '{_CONNECT}/{connector}/status'")
    logs = "What it logs: a wrong key says JWT token is invalid, a missing right Insufficient privileges, a closed network a timeout."
    yield check(SHELL, logs, "docker logs '<container of Connect>' 2>&1 | grep -i snowflake")
    lag = [*acls.tool(topic.cluster, "kafka-consumer-groups.sh"), "--describe", "--group", f"connect-{connector}"]
    yield check(SHELL, "How many messages it is behind.", shlex.join(lag))
    consumer = acls.tool(topic.cluster, "kafka-console-consumer.sh", "--consumer.config")
    not_loaded = [
        *consumer,
        "--topic",
        dead_topic,
        "--from-beginning",
        "--property",
        "print.headers=true",
        "--timeout-ms",
        "5000",
    ]
    yield check(SHELL, "What could not be loaded, and why.", shlex.join(not_loaded))
    yield check(SNOWFLAKE, "The offset that each partition has reached.", f"SHOW CHANNELS IN TABLE {table};")
    yield check(SNOWFLAKE, "Its pipes.", f"SHOW PIPES IN SCHEMA {_DATABASE}.{_SCHEMA};")
    pattern = f"LIKE '{_table(topic).upper()}%'"
    yield check(SNOWFLAKE, "What asks.", f"USE WAREHOUSE {snowflake.WAREHOUSE};")
    for title, columns, view, condition in (
        ("What its clients cost.", "start_time, credits_used", "SNOWPIPE_STREAMING_CLIENT_HISTORY", "ORDER BY start_time DESC"),
        ("What its bytes cost.", "start_time, credits_used", "SNOWPIPE_STREAMING_FILE_MIGRATION_HISTORY",
         f"WHERE table_name {pattern} ORDER BY start_time DESC"),
        ("What its pipe used.", "start_time, credits_used, bytes_inserted", "PIPE_USAGE_HISTORY",
         f"WHERE pipe_name {pattern} ORDER BY start_time DESC"),
        ("How the table grew.", "table_name, active_bytes, time_travel_bytes", "TABLE_STORAGE_METRICS", f"WHERE table_name {pattern}"),
    ):  # fmt: skip
        yield check(SNOWFLAKE, title, f"SELECT {columns} FROM SNOWFLAKE.ACCOUNT_USAGE.{view}\n  {condition} LIMIT 24;")
