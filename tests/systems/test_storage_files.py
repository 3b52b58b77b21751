"""Failures of a store and secrets of a spec: nothing is deleted on a guess, and no secret is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from framework.base.errors import CatalogAway
from framework.core.iceberg import metadata
from framework.core.iceberg.metadata import Metadata
from framework.core.maintain import others
from framework.host import clean
from framework.host.plans import make
from framework.plan import SecretStore, Storage
from framework.plan.secret import SecretRef
from framework.systems import catalogs
from framework.systems.catalogs._local_files import LocalFiles
from framework.systems.catalogs._s3_files import S3Files
from tests.support.spec_parts import ORDERS

STORE = Storage(endpoint="http://127.0.0.1:1", region="us-east-1", access_key="a", secret_key=None, profile=None)
SNAPSHOT = {"snapshot-id": 1, "manifest-list": "list.avro", "timestamp-ms": 0}


class Refusing(LocalFiles):
    """A store that has a metadata file, and does not answer for lists of files."""

    error: type[OSError] = PermissionError

    def metadata(self, location: str) -> Any:
        return {"table-uuid": "another", "snapshots": [SNAPSHOT]}

    def read(self, location: str) -> bytes:
        raise self.error(location)


class Gone(Refusing):
    error = FileNotFoundError


def test_what_others_name_is_unknown_while_a_store_does_not_answer() -> None:
    files = ["a/metadata/1.metadata.json"]
    document = {"table-uuid": "own", "location": "a", "snapshots": []}
    assert others.named(Metadata("own.metadata.json", document, Refusing("")), files) is None
    assert others.named(Metadata("own.metadata.json", document, Gone("")), files) == frozenset({"list.avro"})


def test_a_login_is_for_the_files_of_its_own_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another catalog may have another login to the same bucket."""
    monkeypatch.setenv("SLUICE_SECRET_STORE", "b")
    store = replace(STORE, secret_key=SecretRef("store"))
    files = S3Files("s3://bucket/lake/", store, SecretStore())
    assert files.access("s3a://bucket/lake/shop/orders").scope == "s3://bucket/lake/"
    assert files.access("s3://bucket/lakes/shop/orders").scope == "s3://bucket"
    assert S3Files("", store, SecretStore()).access("s3://bucket/lake/shop/orders").scope == "s3://bucket"


def test_only_names_below_a_tables_folder_are_deleted() -> None:
    files = S3Files("", STORE, SecretStore())
    folders = files.folders("s3a://bucket/shop/orders/", "s3://bucket", "s3://bucket/", "/tmp/x")
    assert folders == ("s3://bucket/shop/orders",)
    paths = [
        "s3://bucket/shop/orders/a",
        "s3://bucket/shop/orders_of_another/a",
        "s3://other/shop/orders/a",
        "s3n://bucket/shop/orders/b",
    ]
    inside, outside = files.split_deletable(paths, folders)
    assert inside == ("s3://bucket/shop/orders/a", "s3://bucket/shop/orders/b")
    assert outside == ("s3://bucket/shop/orders_of_another/a", "s3://other/shop/orders/a")
    assert files.split_deletable(paths, ())[0] == ()
    assert S3Files("s3://bucket/shop", STORE, SecretStore()).folders("s3://bucket/shop", "s3://bucket/shopping/a") == ()


IN_BUCKET = "type: sql\nuri: sqlite:///.sluice/lake.db\nwarehouse: s3://bucket/lake\nstorage: {region: us-east-1}"
BY_TOKEN = "type: rest\nuri: http://127.0.0.1:1\ntoken: ${secret:token}"


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path / ".sluice"))
    (tmp_path / "specs").mkdir()
    return tmp_path / "specs"


def test_a_catalog_goes_not_whole_where_its_files_are_elsewhere(specs: Path) -> None:
    (specs / "a.yaml").write_text(ORDERS.format(catalog="catalog: lake\n" + IN_BUCKET))
    (catalog,) = make(specs).catalogs
    assert catalogs.client_of(catalog).places()
    assert not clean._goes_whole(catalog)


def test_a_token_that_no_header_can_have_is_not_shown(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_SECRET_TOKEN", "a-secret-token\n")
    (specs / "a.yaml").write_text(ORDERS.format(catalog="catalog: lake\n" + BY_TOKEN))
    with pytest.raises(CatalogAway, match="has a line break") as away:
        metadata.names(make(specs).catalogs[0])
    assert "a-secret-token" not in str(away.value) + away.value.hint
