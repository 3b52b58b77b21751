"""A stream works while the keys of its registry, its object store and its mask are replaced: no row is lost or doubled."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from framework.base.errors import SluiceError
from framework.base.home import home
from framework.core.query.reveal import reveal
from framework.core.spark import session
from framework.host.plans import make
from framework.operations.keys.rotation import Rotation
from framework.plan import Plan
from framework.systems import secret_uses
from tests.support.moto_rights import asks
from tests.support.project import BASE
from tests.support.proxy import Between, Request, between
from tests.support.registry_project import Registered, record
from tests.support.streaming import streaming
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.kafka]
LOGINS = """registry: {registry}
registry_auth: {{username: "${{secret:registry_key}}", password: "${{secret:registry_secret}}"}}
---
secrets: main
store: file
path: {path}
---
keys: registry
of: registry
secret: registry
---
keys: store
of: storage
secret: s3
iam: {store}
---
keys: pii
of: mask
secret: pii
---
catalog: lake
type: sql
uri: sqlite:///{namespace}.db
warehouse: s3://sluice/{namespace}
storage: {{endpoint: "{store}", region: us-east-1, access_key: "${{secret:s3_key}}", secret_key: "${{secret:s3_secret}}"}}
---
engine: spark"""
SPECS = """
topic: trades
kafka_name: {topic}
value: avro
---
pipeline: trades
from: {{topic: trades}}
steps: [{{mask: {{key: "${{secret:pii}}", columns: {{email: hmac, phone: encrypt}}}}}}]
into: {{table: {namespace}.trades}}
run: {{every: 1s}}
batch: {{rows: {rows}}}
"""
KINDS = ("registry", "store", "pii")
PEOPLE = 50
RIGHTS = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["iam:*AccessKey*", "s3:*"], "Resource": "*"}]}'
ROTATIONS = 3


class Locked(Registered):
    """A project whose registry and object store take logins, and whose table is masked."""

    def __init__(self, folder: Path, lake: Path, bootstrap: str, spark: SparkSession, registry: Between, store: str) -> None:
        super().__init__(folder, lake, bootstrap, spark, registry.url)
        self.faults = registry.faults
        self.store = store
        self.user = f"loader-{self.namespace}"
        self.aws = {"endpoint_url": store, "region_name": "us-east-1", "aws_access_key_id": "root", "aws_secret_access_key": "x"}
        self.iam: Any = boto3.client("iam", **self.aws)
        self.iam.create_user(UserName=self.user)
        self.iam.put_user_policy(UserName=self.user, PolicyName="own", PolicyDocument=RIGHTS)
        key = self.iam.create_access_key(UserName=self.user)["AccessKey"]
        boto3.client("s3", **self.aws).create_bucket(Bucket="sluice")
        self.logins = {"canary-registry-1": "R1"}  # names of the registry by their passwords
        self.secrets = Path(f"secrets-{uuid.uuid4().hex}")
        values = {
            "registry_key": "R1", "registry_secret": "canary-registry-1", "s3_key": key["AccessKeyId"], "s3_secret": key["SecretAccessKey"],
            "pii": "canary-of-the-first-mask",
        }  # fmt: skip
        self.secrets.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        self.secrets.chmod(0o600)
        self.rows_of_batch = 1000
        self._plan: Plan | None = None

    @property
    def plan(self) -> Plan:
        if self._plan is None:
            folder = self.lake / "specs" / uuid.uuid4().hex
            folder.mkdir(parents=True)
            base, _, engine = BASE.format(bootstrap=self.bootstrap).partition("---\ncatalog")
            logins = LOGINS.format(registry=self.registry, path=self.secrets, store=self.store, namespace=self.namespace)
            specs = SPECS.format(topic=self.topic, namespace=self.namespace, rows=self.rows_of_batch)
            (folder / "main.yaml").write_text(f"{base}{logins}{engine.partition('engine: spark')[2]}---\n{specs}")
            self._plan = make(folder)
        return self._plan

    def register_part(self, number: int) -> int:
        """The id of a schema that is new, so that the stream has to ask the registry for it."""
        faults, self.faults[:] = list(self.faults), []
        id_ = self.register({**record(("id", "long"), ("email", "string"), ("phone", "string")), "doc": f"of part {number}"})
        self.faults[:] = faults
        return id_

    def refuses(self, request: Request) -> bool:
        """A fault of the registry that lasts: it refuses who does not log in."""
        valid = {f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}" for password, name in self.logins.items()}
        if request.headers.get("Authorization") not in valid:
            request.answer(401, b'{"error_code": 401, "message": "who are you?"}')
            self.faults.append(self.refuses)
            return True
        return False

    def rotation(self, kind: str) -> Rotation:
        (document,) = (document for document in self.plan.documents_of("keys") if document.name == kind)
        return Rotation(self.plan, document.value)

    def rotate(self, number: int) -> None:
        """Replaces a key of each kind. The registry's is made by hand."""
        self.logins[f"canary-registry-{number}"] = f"R{number}"
        self.rotation("registry").new({"registry_key": f"R{number}", "registry_secret": f"canary-registry-{number}"})
        for kind in KINDS:
            self.rotation(kind).rotate()

    def send_part(self, number: int, count: int) -> None:
        schema = self.register_part(number)
        values = (
            {"id": (number - 1) * count + id_, "email": f"{id_ % PEOPLE}@example.com", "phone": f"phone {id_}"}
            for id_ in range(count)
        )
        self.send(self.avro(schema, *values))

    def retired(self) -> bool:
        """Whether all former keys of the registry and the store are retired, which they are when nothing uses them any longer."""
        for kind in ("registry", "store"):
            for key in [key for key in self.rotation(kind).stored() if key.state == "former"]:
                try:
                    self.rotation(kind).retire(key.number)
                except SluiceError as error:
                    if error.code == "key-used":
                        return False
                    raise
                if kind == "registry":
                    del self.logins[key.values["registry_secret"]]
        return True

    def close(self) -> None:
        super().close()
        asks(self.store, strictly=False)
        self.secrets.unlink()


@pytest.fixture
def locked(tmp_path: Path, lake: Path, kafka: str, spark: SparkSession, registry: str, aws: str) -> Iterator[Locked]:
    with between(registry) as proxy, secret_uses.unnoted():  # this process looks at secrets, and is none that works with them
        project = Locked(tmp_path, lake, kafka, spark, proxy, aws)
        project.register_part(0)
        proxy.faults.append(project.refuses)
        project.make_topic()
        yield project
        project.close()


@pytest.mark.parametrize("count", [pytest.param(100_000, marks=pytest.mark.long), 4_000])
def test_a_stream_goes_on_while_all_keys_are_replaced(count: int, locked: Locked) -> None:
    project, part_count = locked, ROTATIONS + 1
    project.rows_of_batch = count // 8
    session.prepare(project.plan)
    asks(project.store, strictly=True)
    with streaming(project) as stream:
        until(stream.lives, "the stream does not live", 120)
        for part in range(1, ROTATIONS + 1):
            project.send_part(part, count // part_count)
            until(lambda part=part: stream.rows() > (part - 1) * count // part_count, f"part {part} does not begin", 180)  # type: ignore[misc]
            project.rotate(part + 1)
        until(project.retired, "former keys are still used", 120)
        project.send_part(part_count, count // part_count)
        stream.wait_for(count)
        failures = [event for event in stream.events if event["event"] in ("Failed", "Rests", "Away")]
        stream.end()
    assert len(failures) <= 1, failures
    rows = project.rows()
    assert sorted(row["id"] for row in rows) == list(range(count))
    assert len({row["email"] for row in rows}) == PEOPLE, "hashes of all keys are equal"
    assert len({row["phone"].split(":")[1] for row in rows}) > 1
    sample = rows[:: max(1, len(rows) // 500)]
    assert list(reveal(project.plan, project.pipeline, "phone", [row["phone"] for row in sample])) == [
        f"phone {row['id'] % (count // part_count)}" for row in sample
    ]
    secrets = {value for kind in KINDS for key in project.rotation(kind).stored() for value in list(key.values.values())[-1:]}
    asks(project.store, strictly=False)
    texts = [path.read_bytes() for path in home().rglob("*") if path.is_file() and path.stat().st_size < 1 << 22]
    texts += [json.dumps(stream.events).encode(), "".join(stream.errors).encode(), *objects(project)]
    assert not [secret for secret in secrets if any(secret.encode() in text for text in texts)]


def objects(project: Locked) -> Iterator[bytes]:
    """The content of the table's files, with its metadata."""
    bucket = boto3.resource("s3", **project.aws).Bucket("sluice")
    return (item.get()["Body"].read() for item in bucket.objects.filter(Prefix=f"{project.namespace}/"))
