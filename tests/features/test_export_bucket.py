"""Exports into an object store, and the links that mails have to them. Both servers are real; moto, which is fast to start, accepts any
login, so what depends on the login needs versitygw."""

from __future__ import annotations

import json
import re
import shutil
import threading
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import boto3
import pytest
import requests
from botocore.config import Config

from framework.features.export import bucket as buckets
from framework.machine.services import s3
from tests.support.exports import SPECS, export, put, utc
from tests.support.mail_server import Mailbox, mail_server
from tests.support.rest_catalog import login
from tests.support.stores import STORAGE, store

pytestmark = pytest.mark.slow
__all__ = ["store"]  # a fixture


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    login(monkeypatch)
    put(("o-1", "web", "10.50", utc("2026-11-10T12:00")))
    return tmp_path


def specs(url: str, file: str, options: str = "", mail: str = "") -> None:
    text = SPECS.replace("QUERY", '"select order_id, amount from input"').replace("exports/weekly_", f"s3://{file}", 1)
    text = text.replace("---\nexport: whole", f"{STORAGE % url}\n{options}\n---\nexport: whole", 1)
    Path("specs").mkdir(exist_ok=True)
    Path("specs/all.yaml").write_text(text + mail, encoding="utf-8")


def client(url: str) -> Any:
    config = Config(signature_version="s3v4", s3={"addressing_style": "path"})
    login = {"aws_access_key_id": s3.KEY, "aws_secret_access_key": s3.SECRET, "region_name": s3.REGION}
    return boto3.client("s3", endpoint_url=url, config=config, **login)


def weekly() -> Any:
    return export("weekly", "--window", "2026-W46")


def test_a_file_in_a_bucket_is_replaced_under_its_name(shop: Path, store: str) -> None:
    specs(store, "sluice/some where/weekly_")
    done = weekly()
    assert done.exit_code == 0, done.output
    assert "s3://sluice/some where/weekly_2026-11-09.csv, from snapshot" in done.output
    answer = client(store).get_object(Bucket="sluice", Key="some where/weekly_2026-11-09.csv")
    assert answer["Body"].read() == b"\xef\xbb\xbforder_id,amount\no-1,10.50\n"
    assert answer["Metadata"]["sluice_window"] == "2026-W46"
    assert answer["Metadata"]["sluice_table"] == "shop.orders"
    snapshot = put(("o-2", "web", "1.00", utc("2026-11-11T12:00")))
    second_run = weekly()
    assert "replaces the file of" in second_run.output
    assert "1 row more" in second_run.output
    answer = client(store).get_object(Bucket="sluice", Key="some where/weekly_2026-11-09.csv")
    assert b"o-2" in answer["Body"].read()
    assert answer["Metadata"]["sluice_snapshot"] == str(snapshot)
    assert not list(Path(".sluice").glob("duckdb-*"))


@pytest.mark.parametrize(
    ("form", "content_type"),
    [("csv", "text/csv; charset=utf-8"), ("parquet", "application/vnd.apache.parquet"), ("jsonl", "application/x-ndjson")],
)
def test_a_file_in_a_bucket_and_its_link_have_the_content_type_of_its_format(
    shop: Path, store: str, form: str, content_type: str
) -> None:
    name = f"typed_{form}/weekly_"
    with mail_server() as (box, port):
        specs(
            store, f"sluice/{name}", "notify: [{email: {to: [sales@example.com]}}]",
            f"---\nmail: main\nhost: 127.0.0.1\nport: {port}\nfrom: a@example.com\ntls: none\n",
        )  # fmt: skip
        text = Path("specs/all.yaml").read_text()
        Path("specs/all.yaml").write_text(text.replace("format: csv", f"format: {form}", 1))
        done = weekly()
        assert done.exit_code == 0, done.output
    answer = client(store).head_object(Bucket="sluice", Key=f"{name}2026-11-09.csv")
    assert answer["ContentType"] == content_type
    (link,) = re.findall(r"^http\S+", _text(box), re.MULTILINE)
    assert requests.get(link, timeout=10).headers["Content-Type"] == content_type


def test_a_bucket_that_is_not_there(shop: Path, store: str) -> None:
    specs(store, "elsewhere/weekly_")
    failed = weekly()
    assert failed.exit_code == 1
    assert "no-bucket: there is no bucket `elsewhere`" in failed.stderr
    assert not Path(".sluice/exports/weekly.json").exists()


def test_a_mail_has_a_link_and_is_sent_once_for_each_content(shop: Path, store: str) -> None:
    notify = "notify: [{email: {to: [sales@example.com], link_valid_for: 2h}}]"
    with mail_server() as (box, port):
        mail = f"---\nmail: main\nhost: 127.0.0.1\nport: {port}\nfrom: a@example.com\ntls: none\n"
        specs(store, "sluice/mailed_", notify, mail)
        done = weekly()
        assert done.exit_code == 0, done.output
        second_run = weekly()
        assert "not sent again for the same content: a mail to sales@example.com" in second_run.output
        assert len(box.mails) == 1
        put(("o-3", "web", "1.00", utc("2026-11-11T12:00")))
        assert "mailed to" in weekly().output
    text = _text(box)
    (link,) = re.findall(r"^http\S+", text, re.MULTILINE)
    assert link not in done.output
    assert "Until " in text
    answer = requests.get(link, timeout=10)
    assert answer.status_code == 200, answer.text
    assert answer.content.startswith(b"\xef\xbb\xbforder_id")
    assert not list(box.mails[0].iter_attachments())


def _text(box: Mailbox) -> str:
    body = box.mails[0].get_body()
    assert body is not None
    return str(cast(Any, body).get_content())


def test_a_profile_that_is_not_there(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", "none")
    specs("http://127.0.0.1:1", "sluice/weekly_")
    text = Path("specs/all.yaml").read_text()
    login = ', access_key: "${secret:s3_key}", secret_key: "${secret:s3_secret}"'
    Path("specs/all.yaml").write_text(text.replace(login, ", profile: nobody"))
    assert "storage-refused: The config profile (nobody) could not be found" in weekly().stderr


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("go"), reason="no Go, and moto takes any login")
def test_a_login_that_the_store_does_not_take(shop: Path, object_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SECRET_S3_SECRET", "wr0ng-secret-of-s3")
    specs(object_store, "sluice/weekly_")
    failed = weekly()
    assert failed.exit_code == 1
    assert (
        "storage-refused: the object store does not take the login to s3://sluice/weekly_2026-11-09.csv: SignatureDoesNotMatch"
        in failed.stderr
    )
    assert "wr0ng" not in failed.output


def test_a_store_that_does_not_answer(shop: Path) -> None:
    specs("http://127.0.0.1:1", "sluice/weekly_")
    failed = weekly()
    assert "storage-unreachable: the object store at http://127.0.0.1:1 does not answer" in failed.stderr


class Broken(BaseHTTPRequestHandler):
    """Takes the first part of a file, and fails then."""

    def do_PUT(self) -> None:
        self.send_error(500)

    def do_POST(self) -> None:
        self.send_error(503)

    def log_message(self, *_: Any) -> None: ...


def test_a_store_that_fails(shop: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), Broken)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        specs(f"http://127.0.0.1:{server.server_port}", "sluice/weekly_")
        failed = weekly()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert failed.exit_code == 1
    assert "storage-failed: the object store did not take s3://sluice/weekly_2026-11-09.csv: 500" in failed.stderr


@pytest.mark.parametrize(("hours", "says"), [(1, "ends at "), (None, "is temporary, for an unknown time")])
def test_a_link_does_not_outlive_the_login(hours: int | None, says: str, monkeypatch: pytest.MonkeyPatch, shop: Path) -> None:
    moment = datetime.now(timezone.utc)
    login = {"Version": 1, "AccessKeyId": "key", "SecretAccessKey": "secret", "SessionToken": "token"}
    if hours:
        login["Expiration"] = (moment + timedelta(hours=hours)).isoformat()
    (shop / "login.json").write_text(json.dumps(login))
    (shop / "aws.ini").write_text(f"[default]\ncredential_process = cat {shop / 'login.json'}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(shop / "aws.ini"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(shop / "none"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    from framework.plan import SecretStore, Storage

    store = Storage(endpoint=None, region="eu-central-1", access_key=None, secret_key=None, profile=None)
    place = buckets.InBucket(file="s3://sluice/a", bucket="sluice", key="a", storage=store, secrets=SecretStore())
    with pytest.raises(Exception, match=says) as failed:
        place.link(7200, moment)
    assert getattr(failed.value, "code", "") == "link-outlives-login"
    if hours:
        assert "X-Amz-Security-Token" in place.link(1800, moment)
