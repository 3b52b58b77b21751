"""`sluice access`: each target for tables in each type of catalog, as its golden text, and what holds of all of them. A toy is among the
targets, `tests/toys/targets/smoke_signals.py`, of which nothing else knows. REWRITE=1 writes the texts again: read the diff."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
import sqlglot
from botocore.exceptions import ClientError
from sqlglot.expressions import Command

from framework.base.errors import SluiceError
from framework.host.plans import make
from framework.host.serve import server
from framework.machine.services import aws as service
from framework.operations.access import aws, connect, described, script, targets
from framework.operations.access.about import AccessSubject, TopicSubject
from framework.operations.access.steps import PARTS, ScriptStep
from framework.operations.reference import access
from framework.plan import Cluster, Login, Plan, SecretRef, Security
from framework.systems.aws_policy import below
from tests import toys
from tests.support.access_scripts import about, run_in_duckdb, steps_of
from tests.support.commands import Commands
from tests.support.moto_rights import asks, for_moto
from tests.support.served_tables import CLIENT, SECRET, fill, planned

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[1] / "access"
CANARY = "canary-of-a-secret"
PIPELINES, TOPICS = ("flagged", "totals", "sensors", "here", "listed"), ("stock_trades", "sensor_data")
with toys.installed():
    TARGETS = {name: file.OF for name, file in targets.targets().items()}
CASES = [(target, name) for target, kind in TARGETS.items() for name in (TOPICS if kind == "topic" else PIPELINES)]
# Commands that create something lasting.
MAKES = re.compile(r"^(CREATE (?!ICEBERG TABLE IF|OR REPLACE SECRET)|aws iam create-|ATTACH )", re.MULTILINE)


@pytest.fixture(autouse=True, scope="module")
def with_toys() -> Iterator[None]:
    with toys.installed():
        yield


@pytest.fixture(scope="module")
def plan() -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("KAFKA_PASSWORD", "OC_ID", "OC_SECRET"):
            patch.setenv(f"SLUICE_SECRET_{name}", CANARY)
        return make(FOLDER)


def refusal_or_steps(plan: Plan, target: str, name: str) -> tuple[SluiceError | None, list[ScriptStep]]:
    try:
        return None, steps_of(plan, target, name)[1]
    except SluiceError as error:
        return error, []


def text_of(plan: Plan, target: str, name: str) -> str:
    try:
        warned, steps = steps_of(plan, target, name)
    except SluiceError as error:
        return f"{error}\n"
    return "".join(f"{line}\n" for line in script.as_text(f"{name} in {target}", warned, steps, PARTS))


every_case = pytest.mark.parametrize(("target", "name"), CASES)


@every_case
def test_each_script_has_its_golden_text(plan: Plan, target: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for secret in ("KAFKA_PASSWORD", "OC_ID", "OC_SECRET"):
        monkeypatch.setenv(f"SLUICE_SECRET_{secret}", CANARY)
    golden, text = FOLDER / f"{target}.{name}.txt", text_of(plan, target, name)
    if os.environ.get("REWRITE") == "1" and target != "smoke-signals":
        golden.write_text(text, encoding="utf-8")
    assert CANARY not in text
    if target != "smoke-signals":
        assert text == golden.read_text(encoding="utf-8")


def test_no_golden_text_is_left_over() -> None:
    file_names = {f"{target}.{name}.txt" for target, name in CASES if target != "smoke-signals"}
    assert {path.name for path in FOLDER.glob("*.txt")} == file_names


@every_case
def test_what_is_created_is_taken_back_the_last_first(plan: Plan, target: str, name: str) -> None:
    refusal, steps = refusal_or_steps(plan, target, name)
    assert refusal is None or refusal.hint
    created = [step for step in steps if step.part == "create"]
    cleanup = [step for step in steps if step.part == "cleanup"]
    undone = [step.run.replace(f"{step.system.comment} ", "") for step in cleanup if step.run != step.system.begins]
    assert undone == [step.undo for step in reversed(created) if step.undo]
    assert all(step.run.startswith(step.system.comment) for step in cleanup if "if nothing else needs it" in step.why)
    for step in created:
        assert not MAKES.search(step.run) or step.undo, step.run
        if step.undo and (name_match := re.search(r"(?:CREATE|create)[\w -]*?(?:IF NOT EXISTS |-name )([\w.-]+)", step.run)):
            assert name_match.group(1).rpartition(".")[2] in step.undo, step.undo


@every_case
def test_a_table_is_called_as_in_the_plan(plan: Plan, target: str, name: str) -> None:
    subject = about(plan, target, name)
    refusal, steps = refusal_or_steps(plan, target, name)
    if isinstance(subject, TopicSubject):
        names = {subject.topic.kafka_name}
    else:
        table, topics = subject.pipeline.table, subject.pipeline.topics
        assert refusal is None or table.catalog.name in refusal.message
        names = {*table.identifier.split("."), table.catalog.name, *(topic.kafka_name for topic in topics)}
    assert not steps or any(word in step.run for word in names for step in steps)


def test_a_toy_is_a_target_with_one_file(plan: Plan) -> None:
    assert "smoke-signals" in TARGETS
    text = text_of(plan, "smoke-signals", "sensors")
    assert text.index("# drop blanket wool") < text.index("\ndrop fire sensors")
    assert "# Note: smoke is read by everybody" in text


def test_every_target_says_what_it_does() -> None:
    for file in targets.TARGETS.load_all().values():
        assert script.says(file).endswith(".")
        assert file.OF in ("table", "topic")


def test_the_command_prints_parts_and_reads_a_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(tmp_path, monkeypatch)
    commands = Commands()
    assert "== In DuckDB: create" in commands.ok("access", "duckdb", "orders")
    assert commands.ok("access", "duckdb", "orders", "--part", "cleanup").rstrip().endswith("DROP SECRET sluice_lake_login;")
    result = commands.run("access", "duckdb", "orders", "--describe", str(next(Path("specs").rglob("*.yaml"))))
    assert result.exit_code == 2
    assert "duckdb takes no --describe: it is for aws-trust" in result.output
    document = json.loads(commands.ok("access", "duckdb", "orders", "--json"))
    assert {step["part"] for step in document["steps"]} == {"create", "check", "query"}
    output = commands.refused("access", "snowflake", "orders")
    assert "not-reachable: Snowflake finds no table in the catalog `lake`" in output
    assert "by `publish` of the pipeline `orders`" in " ".join(output.split())
    assert "there is no pipeline `nothing`" in commands.refused("access", "duckdb", "nothing")


ANSWERS = {
    "STORAGE_AWS_IAM_USER_ARN": "arn:aws:iam::9:user/a",
    "STORAGE_AWS_EXTERNAL_ID": "X_1",
    "GLUE_AWS_IAM_USER_ARN": "arn:aws:iam::9:user/b",
    "GLUE_AWS_EXTERNAL_ID": "X_2",
}
LOCATION = json.dumps({"NAME": "lake", **{name: value for name, value in ANSWERS.items() if name.startswith("STORAGE")}})
DESCRIBED = {
    "a table": f"""
| parent_property   | property           | property_type | property_value | property_default |
|-------------------+--------------------+---------------+----------------+------------------|
|                   | ALLOW_WRITES       | Boolean       | false          | true             |
| STORAGE_LOCATIONS | STORAGE_LOCATION_1 | String        | {LOCATION.replace(", ", ", " + chr(10))} | |
| GLUE_AWS_IAM_USER_ARN | String | arn:aws:iam::9:user/b | |
| GLUE_AWS_EXTERNAL_ID  | String | X_2                   | |
""",
    "CSV": f"""parent_property,property,property_type,property_value,property_default
,ALLOW_WRITES,Boolean,false,true
STORAGE_LOCATIONS,STORAGE_LOCATION_1,String,"{LOCATION.replace('"', '""')}",
property,property_type,property_value,property_default
GLUE_AWS_IAM_USER_ARN,String,arn:aws:iam::9:user/b,
"GLUE_AWS_EXTERNAL_ID","String","X_2",""
""",
    "JSON": json.dumps([
        [{"property": "STORAGE_LOCATION_1", "property_type": "String", "property_value": LOCATION, "property_default": ""}],
        [{"property": "GLUE_AWS_IAM_USER_ARN", "property_type": "String", "property_value": "arn:aws:iam::9:user/b"},
         {"property": "GLUE_AWS_EXTERNAL_ID", "property_type": "String", "property_value": "X_2"}],
    ], indent=1),
}  # fmt: skip


@pytest.mark.parametrize("form", DESCRIBED)
def test_what_the_other_system_printed_is_filled_in(plan: Plan, form: str, tmp_path: Path) -> None:
    file = tmp_path / "described.txt"
    file.write_text(DESCRIBED[form])
    answers = described.read(file)
    assert {name: answers.get(name) for name in ANSWERS} == ANSWERS
    pipeline = plan.pipeline("totals")
    assert pipeline is not None
    warnings, steps = script.script(targets.targets()["aws-trust"], AccessSubject(plan, pipeline, described=answers))
    assert not any("once it is set up" in warning.says for warning in warnings)
    (command,) = [shlex.split(step.run) for step in steps if step.run.startswith("aws iam create-role")]
    statements = json.loads(command[command.index("--assume-role-policy-document") + 1])["Statement"]
    assert [
        (statement["Principal"]["AWS"], statement["Condition"]["StringEquals"]["sts:ExternalId"]) for statement in statements
    ] == [("arn:aws:iam::9:user/a", "X_1"), ("arn:aws:iam::9:user/b", "X_2")]


def test_a_name_that_was_not_described_is_asked_for(plan: Plan, tmp_path: Path) -> None:
    file = tmp_path / "described.txt"
    file.write_text(f'"{LOCATION}"')
    pipeline = plan.pipeline("totals")
    assert pipeline is not None
    warned, _ = script.script(targets.targets()["aws-trust"], AccessSubject(plan, pipeline, described=described.read(file)))
    assert "the other side tells GLUE_AWS_IAM_USER_ARN, GLUE_AWS_EXTERNAL_ID once it is set up" in warned[0].says
    file.write_text("nothing of this kind")
    with pytest.raises(SluiceError, match="nothing-described"):
        described.read(file)


def test_duckdb_runs_the_script_of_a_table_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path, monkeypatch)
    fill(plan)
    _, steps = steps_of(plan, "duckdb", "orders")
    with server.running(plan, plan.catalogs[0], 0, lambda _: {(CLIENT, SECRET)}) as url:
        answers = run_in_duckdb(steps, {"http://127.0.0.1:18183": url, "<secret of sluice serve>": SECRET})
    assert [rows for part, rows in answers if part == "query"][-1] == [(3,)]  # how many there are


def test_pyiceberg_runs_the_script_of_a_table_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(tmp_path, monkeypatch)
    fill(plan)
    _, steps = steps_of(plan, "pyiceberg", "orders")
    exec("\n".join(step.run for step in steps if step.system.language == "python"), {})
    assert capsys.readouterr().out.splitlines()[-1] == "3"


ACTIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "write": ("s3", "put_object", {"Bucket": "example-lake", "Key": "tables/markets.db/totals/a", "Body": b"x"}),
    "write elsewhere": ("s3", "put_object", {"Bucket": "example-lake", "Key": "other/a", "Body": b"x"}),
    "write bad rows": (
        "s3",
        "put_object",
        {"Bucket": "example-lake", "Key": "tables/markets.db/totals__bad_rows/a", "Body": b"x"},
    ),
    "read": ("s3", "get_object", {"Bucket": "example-lake", "Key": "tables/markets.db/totals/there"}),
    "read bad rows": ("s3", "get_object", {"Bucket": "example-lake", "Key": "tables/markets.db/totals__bad_rows/there"}),
    "read another table": ("s3", "get_object", {"Bucket": "example-lake", "Key": "tables/markets.db/others/there"}),
    "read elsewhere": ("s3", "get_object", {"Bucket": "example-lake", "Key": "other/there"}),
    "list": ("s3", "list_objects_v2", {"Bucket": "example-lake"}),
    "delete": ("s3", "delete_object", {"Bucket": "example-lake", "Key": "tables/markets.db/totals/gone"}),
    "remove the bucket": ("s3", "delete_bucket", {"Bucket": "example-lake"}),
    "find": ("glue", "get_table", {"DatabaseName": "markets", "Name": "totals"}),
    "create": ("glue", "create_table", {"DatabaseName": "markets", "TableInput": {"Name": "totals"}}),
    "commit": ("glue", "update_table", {"DatabaseName": "markets", "TableInput": {"Name": "totals"}}),
    "drop": ("glue", "delete_table", {"DatabaseName": "markets", "Name": "nothing"}),
    "log in as another": ("iam", "create_access_key", {"UserName": "admin"}),
}
ALLOWED = {
    "read": {"read", "list", "find"},
    "ingest": {"read", "read bad rows", "list", "find", "write", "write bad rows", "delete", "create", "commit"},
    "maintain": {"read", "read bad rows", "list", "find", "write", "write bad rows", "delete", "create", "commit", "drop"},
}


@pytest.mark.long
@pytest.mark.parametrize("use", ALLOWED)
def test_a_policy_allows_what_it_says_and_nothing_else(plan: Plan, use: str, tmp_path: Path) -> None:
    """Moto asks for each action what the user may do; of Glue it knows no single tables, and of listings no condition."""
    _, steps = steps_of(plan, "aws-policy", "totals")
    (command,) = [
        shlex.split(step.run)
        for step in steps
        if step.run.startswith(f"aws iam create-policy --policy-name sluice-aws-markets-totals-{use}")
    ]
    document = json.loads(command[command.index("--policy-document") + 1])
    statements = list(map(for_moto, document["Statement"]))
    with service.running(tmp_path / "aws") as url:
        admin = {"endpoint_url": url, "region_name": "us-east-1", "aws_access_key_id": "any", "aws_secret_access_key": "any"}
        store = boto3.client("s3", **admin)
        store.create_bucket(Bucket="example-lake")
        tables = [f"tables/markets.db/{name}" for name in ("totals", "totals__bad_rows", "others")]
        for key in (*(f"{table}/there" for table in tables), "other/there", "tables/markets.db/totals/gone"):
            store.put_object(Bucket="example-lake", Key=key, Body=b"x")
        glue = boto3.client("glue", **admin)
        glue.create_database(DatabaseInput={"Name": "markets"})
        glue.create_table(DatabaseName="markets", TableInput={"Name": "totals"})
        iam = boto3.client("iam", **admin)
        iam.create_user(UserName="someone")
        key = iam.create_access_key(UserName="someone")["AccessKey"]
        policy = {"Version": "2012-10-17", "Statement": statements}
        iam.put_user_policy(UserName="someone", PolicyName="own", PolicyDocument=json.dumps(policy))
        login = {**admin, "aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
        asks(url, strictly=True)
        assert {name for name, action in ACTIONS.items() if allowed(login, *action)} == ALLOWED[use]


def allowed(login: dict[str, str], service: str, action: str, parameters: dict[str, Any]) -> bool:
    try:
        getattr(boto3.client(service, **login), action)(**parameters)
    except ClientError as error:
        return error.response["Error"]["Code"] not in ("AccessDenied", "AccessDeniedException", "403")
    return True


SNOWFLAKE_ALONE = (
    "CREATE ROLE",
    "CREATE USER",
    "GRANT",
    "CREATE EXTERNAL VOLUME",
    "CREATE CATALOG INTEGRATION",
    "DROP",
    "CREATE INTERACTIVE",
    "ALTER WAREHOUSE",
    "SHOW",
)


DIALECTS = {"In Snowflake": "snowflake", "In Trino": "trino", "In Athena": "athena", "In Databricks": "databricks"}
ALONE = {
    "In Snowflake": SNOWFLAKE_ALONE,
    "In Databricks": ("CREATE CONNECTION", "CREATE FOREIGN CATALOG", "DROP", "GRANT", "REVOKE"),
}


@every_case
def test_what_is_for_others_is_their_sql(plan: Plan, target: str, name: str) -> None:
    """Each statement parses. Sqlglot takes a statement without syntax of its own as a command: `ALONE` has their first words."""
    _, steps = refusal_or_steps(plan, target, name)
    for step in steps:
        if dialect := DIALECTS.get(step.system.name):
            for tree in sqlglot.parse(step.run, dialect=dialect):
                commands = ALONE.get(step.system.name, ())
                assert not isinstance(tree, Command) or step.run.lstrip().startswith(commands), step.run


def test_the_connector_is_told_what_it_is_documented_to_take(plan: Plan) -> None:
    """`connector_keys.csv` has each key with the page of Snowflake's or Kafka's documentation that describes it."""
    with (FOLDER / "connector_keys.csv").open(encoding="utf-8") as file:
        sources = {row["key"]: row["source"] for row in csv.DictReader(file)}
    assert all(sources.values())
    configured_keys: set[str] = set()
    for topic in TOPICS:
        _, steps = steps_of(plan, "snowflake-streaming", topic)
        (command,) = [step.run for step in steps if step.part == "create" and "curl" in step.run]
        configuration = json.loads(command.partition("<<'END'\n")[2].partition("\nEND")[0])
        assert set(configuration) == {"name", "config"}
        assert all(isinstance(value, str) for value in configuration["config"].values())
        configured_keys |= set(configuration["config"])
    assert configured_keys == set(sources)


def test_the_connector_logs_in_to_the_registry() -> None:
    login = Login("reader", SecretRef("registry_password"))
    cluster = Cluster(
        name="main", bootstrap="a:1", security=Security(), registry="https://registry.example.com", registry_auth=login
    )
    assert connect.registry(cluster, "/s")["value.converter.basic.auth.user.info"] == (
        "${file:/s:registry_user}:${file:/s:registry_password}"
    )
    assert list(connect.secret_lines(cluster)) == ["registry_user=reader", "registry_password=<secret registry_password>"]


HOSTILE = r"""
cluster: main
bootstrap: 127.0.0.1:1
registry: http://127.0.0.1:1
registry_auth: {username: "o'brien; touch stolen; '", password: "${secret:pw}"}
---
catalog: lake
type: rest
uri: http://127.0.0.1:2
warehouse: "a\\b\nEND\ntouch stolen\n"
---
topic: t
value: json
columns: {id: bigint}
---
pipeline: p
from: {topic: t}
into: {table: m.p}
"""


def test_a_value_with_quotes_or_new_lines_stays_a_value_in_a_script(tmp_path: Path) -> None:
    """The shell of this machine runs the commands that write files: nothing of a value becomes a command."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "main.yaml").write_text(HOSTILE)
    (tmp_path / "etc" / "catalog").mkdir(parents=True)
    hostile_plan = make(tmp_path / "specs")
    for target, name in (("trino", "p"), ("snowflake-streaming", "t")):
        _, steps = script.script(targets.targets()[target], about(hostile_plan, target, name))
        for step in steps:
            if step.system.language == "sh" and ("etc/catalog" in step.run or "secrets" in step.run) and step.part == "create":
                run = step.run.partition("\ncurl")[0]
                subprocess.run(["bash", "-c", run], cwd=tmp_path, check=True, capture_output=True)
    assert not list(tmp_path.rglob("stolen"))
    (properties,) = (tmp_path / "etc" / "catalog").iterdir()
    assert "warehouse=a\\\\b\\nEND\\ntouch stolen\\n\n" in properties.read_text()
    lines = (tmp_path / ".sluice" / "access" / "sluice-secrets.properties").read_text().splitlines()
    assert "registry_user=o'brien; touch stolen; '" in lines


WRITES = re.compile(r"(?:>>? |-out )([\w./-]+)")
OF_ANOTHER_PROGRAM = "etc/catalog/"  # Trino's own folder: the file has names of secrets


@every_case
def test_each_file_that_a_script_writes_is_below_sluice_and_for_its_user_alone(plan: Plan, target: str, name: str) -> None:
    warned, steps = steps_of(plan, target, name) if refusal_or_steps(plan, target, name)[0] is None else ([], [])
    for step in (step for step in steps if step.system.language == "sh" and step.part == "create"):
        written = [file for file in WRITES.findall(step.run) if not file.startswith(OF_ANOTHER_PROGRAM) and file != "/dev/null"]
        assert all(file.startswith(".sluice/access/") for file in written), step.run
        assert not written or step.run.startswith("(umask 077; "), step.run
        for secret in (file for file in written if file.endswith((".p8", "secrets.properties"))):
            assert any(f"`{secret}`, unencrypted" in note.says for note in warned)


def test_keys_and_secrets_are_written_for_their_user_alone(plan: Plan, tmp_path: Path) -> None:
    """The shell and openssl of this machine write them, also over a file that others could read."""
    folder = tmp_path / ".sluice" / "access"
    folder.mkdir(parents=True)
    (folder / "sluice-secrets.properties").write_text("# of before")
    (folder / "sluice-secrets.properties").chmod(0o644)
    for target, name in (("snowflake", "flagged"), ("snowflake-streaming", "stock_trades")):
        for step in steps_of(plan, target, name)[1]:
            if step.part == "create" and step.run.startswith("(umask 077; ") and "snow sql" not in step.run:
                run = step.run.partition("\ncurl")[0]
                subprocess.run(["bash", "-c", f"umask 022; set -e; {run}"], cwd=tmp_path, check=True, capture_output=True)
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert set(modes) == {
        "sluice_reader.p8", "sluice_reader.pub", "sluice_writer.p8", "sluice_writer.pub", "sluice-secrets.properties",
        "sluice-stock-trades.json",
    }  # fmt: skip
    assert set(modes.values()) == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == [".sluice"]
    assert "PRIVATE KEY" in (folder / "sluice_reader.p8").read_text()
    assert (folder / "sluice-secrets.properties").read_text().startswith("private_key=MII")
    assert "# of before" not in (folder / "sluice-secrets.properties").read_text()
    assert json.loads((folder / "sluice-stock-trades.json").read_text())["name"] == "sluice-stock-trades"


def test_each_table_has_policies_a_role_and_a_volume_of_its_own(plan: Plan) -> None:
    texts = {name: text_of(plan, "aws-policy", name) for name in ("totals", "listed")}
    assert "policy-name sluice-aws-markets-totals-read" in texts["totals"]
    assert "policy-name sluice-keyed-sales-order-read" in texts["listed"]
    assert "role-name sluice-aws-markets-totals-readers" in text_of(plan, "aws-trust", "totals")
    snowflake = text_of(plan, "snowflake", "listed")
    assert "EXTERNAL VOLUME IF NOT EXISTS sluice_keyed_sales_order_files" in snowflake
    assert "STORAGE_BASE_URL = 's3://<bucket>/<folder of the table>/'" in snowflake
    assert "CATALOG IF NOT EXISTS sluice_aws_keyed" in text_of(plan, "databricks", "listed")


def test_a_name_in_aws_is_never_too_long(plan: Plan) -> None:
    pipeline = plan.pipeline("totals")
    assert pipeline is not None
    names = set()
    for table in ("t" * 100, "t" * 101):
        of_long = AccessSubject(plan, replace(pipeline, table=replace(pipeline.table, name=table)))
        names |= {aws.called(of_long, part) for part in (*aws.USES, aws.READERS)}
    assert max(map(len, names)) == 64
    assert len(names) == 2 * (len(aws.USES) + 1) - 1  # the policy for Athena is one for all


def documents_in(steps: list[ScriptStep]) -> dict[str, dict[str, Any]]:
    """The policies that a script creates, by their names."""
    documents = {}
    for step in steps:
        words = shlex.split(step.run) if step.run.startswith("aws iam") and "--policy-document" in step.run else []
        if "--policy-name" in words:
            name, document = (words[words.index(option) + 1] for option in ("--policy-name", "--policy-document"))
            documents[name] = json.loads(document)
    return documents


def resources(document: dict[str, Any]) -> set[str]:
    """The resources that a policy reaches: the ends of the names of its files, of listings and of tables in Glue."""
    names = set()
    for statement in document["Statement"]:
        assert statement["Effect"] == "Allow"
        if "s3:ListBucket" in statement["Action"]:
            names |= {f"list {prefix}" for prefix in statement["Condition"]["StringLike"]["s3:prefix"]}
        elif statement["Action"] != ["s3:GetBucketLocation"]:
            names |= {name.rpartition(":")[2] for name in statement["Resource"]}
    return {name for name in names if name.partition("/")[0] not in ("catalog", "database", "key")}


TOTALS, BAD_ROWS = "tables/markets.db/totals", "tables/markets.db/totals__bad_rows"
READ = {f"example-lake/{TOTALS}/*", f"list {TOTALS}/*", "table/markets/totals"}
READ_BAD_ROWS = {f"example-lake/{BAD_ROWS}/*", f"list {BAD_ROWS}/*", "table/markets/totals__bad_rows"}


def test_readers_reach_the_folder_and_the_name_of_one_table(plan: Plan) -> None:
    documents = documents_in(steps_of(plan, "aws-policy", "totals")[1])
    assert resources(documents["sluice-aws-markets-totals-read"]) == READ
    assert resources(documents["sluice-aws-markets-totals-ingest"]) == READ | READ_BAD_ROWS
    maintained = resources(documents["sluice-aws-markets-totals-maintain"])
    assert maintained > READ | READ_BAD_ROWS
    assert all("/totals" in name for name in maintained)
    (listed,) = (
        document for name, document in documents_in(steps_of(plan, "aws-policy", "listed")[1]).items() if "-read" in name
    )
    assert resources(listed) == {"<bucket>/<folder of the table>/*", "list <folder of the table>/*", "table/sales/order"}


def test_a_warehouse_that_is_a_whole_bucket_can_be_listed() -> None:
    assert below("s3://lake", "s3://lake/a/") == {"StringLike": {"s3:prefix": ["*", "a/*"]}}


def test_readers_get_bad_rows_only_where_asked(plan: Plan) -> None:
    pipeline = plan.pipeline("totals")
    assert pipeline is not None
    subject = AccessSubject(plan, pipeline, bad_rows=True)
    documents = documents_in(script.script(targets.targets()["aws-policy"], subject)[1])
    assert resources(documents["sluice-aws-markets-totals-bad-rows"]) == READ_BAD_ROWS
    assert resources(documents["sluice-aws-markets-totals-read"]) == READ
    for target, name in CASES:
        for step in refusal_or_steps(plan, target, name)[1]:
            if "read" in step.why.lower() and "ingest" not in step.run and "maintain" not in step.run:
                assert "__bad_rows" not in step.run, step.run


@every_case
def test_nothing_reaches_all_tables_unless_it_says_so(plan: Plan, target: str, name: str) -> None:
    """Open Catalog's own role writes for it and gives keys to one table at a time."""
    _, steps = refusal_or_steps(plan, target, name)
    for policy_name, document in documents_in(steps).items():
        for resource in resources(document) if "athena" not in policy_name else ():
            # A foreign catalog of Databricks lists all of Glue: names and columns, no rows.
            lists_glue = target == "databricks" and resource == "table/*/*"
            assert not resource.endswith("*") or "/totals" in resource or "<folder" in resource or lists_glue, resource
    for step in steps:
        assert "STORAGE_BASE_URL = 's3://example-lake/tables/'" not in step.run
        assert "external-locations create sluice_aws s3://example-lake/tables " not in step.run


def test_all_tables_of_a_catalog_are_granted_only_where_asked_and_the_heading_says_it(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = ("--specs", str(FOLDER))
    for secret in ("KAFKA_PASSWORD", "OC_ID", "OC_SECRET"):
        monkeypatch.setenv(f"SLUICE_SECRET_{secret}", CANARY)
    commands = Commands()
    text = commands.ok("access", "aws-policy", "--catalog", "aws", *specs)
    assert text.splitlines()[0].startswith("# all tables of the catalog aws: ")
    assert "# Note: each policy reaches ALL tables of the catalog `aws`, with their bad rows, which hold whole messages" in text
    assert (
        "For readers: never changes anything. Reaches ALL tables of the catalog `aws` and their bad rows, also those to come"
        in text
    )
    script_document = json.loads(commands.ok("access", "aws-policy", "--catalog", "aws", "--json", *specs))
    (document,) = (
        json.loads(shlex.split(step["run"])[6])
        for step in script_document["steps"]
        if "policy-name sluice-aws-read" in step["run"]
    )
    assert resources(document) >= {"example-lake/tables/*", "list tables/*", "table/markets/*"}
    assert "sluice access aws-policy --catalog aws --specs" in text.splitlines()[-1]
    assert "takes no --catalog: it is for aws-policy" in commands.run("access", "duckdb", "--catalog", "aws", *specs).output
    assert "takes no --bad-rows: it is for aws-policy" in commands.run("access", "trino", "totals", "--bad-rows", *specs).output
    for arguments in ((), ("totals", "--catalog", "aws")):
        assert "write the NAME of a pipeline, or --catalog" in commands.run("access", "aws-policy", *arguments, *specs).output
    assert "did you mean `aws`?" in commands.refused("access", "aws-policy", "--catalog", "awz", *specs)


def test_each_target_has_its_page() -> None:
    """Each page is generated from the target's file. REWRITE=1 writes the pages again."""
    folder = Path(__file__).parents[2] / "docs" / "access"
    files = {name: file for name, file in targets.targets().items() if name != "smoke-signals"}
    plans = {environment: make(folder.parent.parent / "specs", environment) for environment in ("local", "rest", "glue")}
    pages = {"index.md": access.index(files), **{f"{name}.md": access.page(name, file, plans) for name, file in files.items()}}
    if os.environ.get("REWRITE") == "1":
        folder.mkdir(exist_ok=True)
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*")} == pages
