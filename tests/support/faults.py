"""Faults between Sluice and each catalog or object store: the request that is struck, and its outcome."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from framework.core.iceberg.updates import commit_transaction
from framework.machine.services import s3
from tests.support.proxy import Request
from tests.support.rest_catalog import DOCUMENT, STORAGE

RequestTest = Callable[[Request], bool]
Strike = Callable[[Request], None]


@dataclass(frozen=True)
class Place:
    """A catalog's document, and which of `rest`, `aws` and `store` the proxy is in front of."""

    document: str
    proxied: str
    requests: Mapping[str, RequestTest]
    faults: Mapping[str, Strike]


def at(matches: RequestTest, strike: Strike) -> RequestTest:
    def fault(request: Request) -> bool:
        if not matches(request):
            return False
        strike(request)
        return True

    return fault


def lost(request: Request) -> None:
    request.forward()
    request.hang_up()


def done_and(status: int) -> Strike:
    def strike(request: Request) -> None:
        request.forward()
        request.refuse(status)

    return strike


def refused(status: int, type_: str = "Whatever") -> Strike:
    return lambda request: request.refuse(status, type_)


def refused_by_aws(type_: str) -> Strike:
    return lambda request: request.answer(400, json.dumps({"__type": type_, "message": "by the proxy"}).encode())


def refused_by_s3(status: int, code: str) -> Strike:
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>by the proxy</Message></Error>'.encode()
    return lambda request: request.answer(status, body)


def publishes(request: Request) -> bool:
    """Whether the request moves main: the commit that decides."""
    return request.moves("main")


def _read(store: str, location: str) -> Mapping[str, Any]:
    login = {"region_name": s3.REGION, "aws_access_key_id": s3.KEY, "aws_secret_access_key": s3.SECRET}
    bucket, _, key = location.removeprefix("s3://").partition("/")
    document: Mapping[str, Any] = json.load(
        boto3.client("s3", endpoint_url=store, **login).get_object(Bucket=bucket, Key=key)["Body"]
    )
    return document


def _publishes_in_glue(request: Request) -> bool:
    """Reads the metadata before and after the request: Glue gets its new place, and not the changes."""
    if not request.headers.get("X-Amz-Target", "").endswith(".UpdateTable"):
        return False
    parameters = json.loads(request.body)["TableInput"]["Parameters"]
    old, new = (_read(request.behind, parameters[name]) for name in ("previous_metadata_location", "metadata_location"))
    return bool(old["refs"]["main"] != new["refs"]["main"])


def _puts(ending: str) -> RequestTest:
    return lambda request: request.method == "PUT" and request.path.partition("?")[0].endswith(ending)


_GATEWAY = {"its answer is lost": lost, "done, and 500": done_and(500), "done, and 503": done_and(503), "502": refused(502)}
PLACES = {
    "rest": Place(
        DOCUMENT,
        "rest",
        {"publishes": publishes},
        {
            **_GATEWAY,
            "429": refused(429),
            "409": refused(409, "CommitFailedException"),
            "401": refused(401, "NotAuthorizedException"),
        },
    ),
    "glue": Place(
        "catalog: {name}\ntype: glue\nendpoint: {aws}\nwarehouse: s3://sluice/faults\n" + STORAGE + "\n",
        "aws",
        {"publishes": _publishes_in_glue},
        {
            **_GATEWAY,
            "throttled": refused_by_aws("ThrottlingException"),
            "moved": refused_by_aws("ConcurrentModificationException"),
        },
    ),
    "sql, files in S3": Place(
        "catalog: {name}\ntype: sql\nuri: sqlite:///{name}.db\nwarehouse: s3://sluice/faults\n" + STORAGE + "\n",
        "store",
        {"writes metadata": _puts(".metadata.json"), "writes rows": _puts(".parquet")},
        {
            "its answer is lost": lost,
            "done, and 500": done_and(500),
            "slow down": refused_by_s3(503, "SlowDown"),
            "failed": refused_by_s3(500, "InternalError"),
        },
    ),
}


class InFile:
    """A fault of the publishing commit of a catalog that is a SQLite file, which is the only one that asks nobody over a network."""

    def __init__(self, file: Path, fault: str) -> None:
        self.file, self.fault, self.struck = file, fault, 0

    def commit(self, transaction: Any) -> None:
        self.struck += 1
        if self.struck > 1:
            commit_transaction(transaction)
        else:
            IN_FILE[self.fault](self.file, transaction)


def _answer_lost(_: Path, transaction: Any) -> None:
    commit_transaction(transaction)
    raise ConnectionResetError("the answer is lost")


def _held(file: Path, transaction: Any) -> None:
    """Commits while another process writes to the file for a moment."""
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(0.5, connection.close)
    release.start()
    try:
        commit_transaction(transaction)
    finally:
        release.join()


IN_FILE: Mapping[str, Callable[[Path, Any], None]] = {"its answer is lost": _answer_lost, "the file is held": _held}
