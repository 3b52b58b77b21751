"""AWS Glue, in which Athena, Redshift, EMR and Snowflake find tables by name. Their files are in S3.

Guarantee: a commit compares the table's metadata file with the one on which it was made, and Glue refuses it if its version of the table
has changed since.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from framework.base.errors import Problem
from framework.base.hosts import is_open
from framework.language.options import OptionGroup, option
from framework.language.scalars import Location, Url
from framework.language.storage import Storage as WrittenStorage
from framework.plan import Storage
from framework.plan.storage import SCHEME
from framework.systems import aws_policy, buckets
from framework.systems.catalogs import PROBE, CatalogClient, Cause, ListedMetadata, Moved, RequestFailed, _object_store
from framework.systems.catalogs._s3_files import S3Files

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

EXAMPLE = """\
catalog: glue
type: glue
endpoint: http://127.0.0.1:19200
warehouse: s3://sluice/glue
storage: {endpoint: "http://127.0.0.1:19200", region: us-east-1, access_key: "${secret:s3_key}", secret_key: "${secret:s3_secret}"}
"""
_MOVED = ("AlreadyExistsException", "ConcurrentModificationException", "VersionMismatchException")
_COMMENT = 255  # characters
_FOR_DROP = {"glue:DeleteTable"}  # which a run does without
_RIGHTS = tuple(
    f"glue:{action}"
    for action in (
        *("GetDatabase", "GetDatabases", "CreateDatabase"),
        *("GetTable", "GetTables", "CreateTable", "UpdateTable", "DeleteTable"),
    )
)
_LOGIN = "software.amazon.awssdk.auth.credentials.SystemPropertyCredentialsProvider"


@dataclass(frozen=True)
class Options(OptionGroup):
    """Glue's data catalog of an AWS account. The login and the region are those of `storage`."""

    warehouse: Location = option(
        "Where the tables' files are.", example="s3://bucket/warehouse", aka=["path", "location", "bucket"]
    )
    account: str | None = option(
        "The account whose catalog it is; default: that of the login.",
        default=None,
        example='"123456789012"',
        aka=["catalog_id", "id"],
    )
    endpoint: Url | None = option("Glue's address; default: that of AWS.", default=None, example="http://127.0.0.1:19200")
    storage: WrittenStorage | None = option(
        "The object store of the files, with the login. Without keys it is this machine's AWS login.",
        default=None, example="{region: eu-central-1}", aka=["s3", "object_store"],
    )  # fmt: skip

    def servers(self) -> Iterable[str | None]:
        return (self.endpoint, *(self.storage.servers() if self.storage else ()))

    def problems(self) -> Iterable[Problem]:
        if not self.warehouse.startswith(SCHEME):
            hint = "write `s3://bucket/path`"
            yield Problem(self.place("warehouse"), "bad-location", f"`{self.warehouse}` is in no bucket of S3", hint)
        if is_open(self.endpoint):
            message = f"the login would be sent to {self.endpoint} without encryption"
            yield Problem(self.place("endpoint"), "unencrypted-login", message, "write `https://…`")


class Denied(RequestFailed):
    """The login lacks a right."""

    of_all = False


@dataclass(frozen=True)
class Glue(CatalogClient):
    options: Options

    batch_requests = 3
    does = "is AWS Glue's data catalog"
    python_extras = ("glue",)
    causes: ClassVar[Mapping[str, Cause]] = {
        "accessdeniedexception": Cause("glue-denied", "Glue refused it", "give the login the missing right, which Glue names")
    }

    @cached_property
    def storage(self) -> Storage:
        return _object_store.planned(self.options.storage)

    def files_of(self, identifier: str) -> S3Files:
        return S3Files(self._root, self.storage, self.secrets)

    def new_table_folder(self, identifier: str) -> str:
        namespace, _, name = identifier.rpartition(".")
        return f"{self._root}/{namespace}.db/{name}"

    def settings(self) -> Mapping[str, str]:
        properties = {"glue.endpoint": self.options.endpoint, "glue.id": self.options.account}
        login = {"client.credentials-provider": _LOGIN} if self.storage.access_key and not self.storage.role else {}
        return {
            "type": "glue", "warehouse": self._root, **{name: value for name, value in properties.items() if value}, **login,
            **_object_store.FILE_IO, **_object_store.settings(self.storage),
        }  # fmt: skip

    def secret_settings(self) -> Mapping[str, str]:
        # Iceberg's keys are for S3 alone.
        of_glue = _object_store.of_process(buckets.login(self.storage, self.secrets))
        return {**_object_store.of_java(self.storage, self.secrets), **of_glue}

    @property
    def on_this_machine(self) -> bool:
        return False

    @property
    def login(self) -> object | None:
        return self.storage.profile, self.storage.access_key, self.storage.secret_key

    def for_readers(self) -> Mapping[str, str]:
        return _object_store.for_readers(self.storage)

    def keys_for(self, location: str) -> Mapping[str, str]:
        return _object_store.keys_for(self.storage, self.secrets, location)

    def jars(self) -> tuple[str, ...]:
        return _object_store.JARS

    def where(self) -> str | None:
        return self.options.endpoint or f"Glue, {self.storage.region or 'in the region of the login'}"

    def tables(self) -> tuple[str, ...]:
        return tuple(self._names())

    def current(self, identifier: str) -> ListedMetadata | None:
        table = self._table(identifier)
        if table is None:
            return None
        location = str(table["Parameters"]["metadata_location"])
        files = self.files_of(identifier)
        return ListedMetadata(location, files.metadata(location), files)

    def load(self, identifier: str) -> IcebergTable | None:
        from pyiceberg.table import StaticTable, Table

        table = self._table(identifier)
        if table is None:
            return None
        properties = {**_object_store.settings(self.storage), **_object_store.of_python(self.storage, self.secrets)}
        static_table = StaticTable.from_metadata(str(table["Parameters"]["metadata_location"]), properties)
        return Table(
            tuple(identifier.split(".")),
            static_table.metadata,
            static_table.metadata_location,
            static_table.io,
            static_table.catalog,
        )

    def drop(self, identifier: str) -> None:
        namespace, _, name = identifier.rpartition(".")
        self._asked("delete_table", DatabaseName=namespace, Name=name)

    def show(self, identifier: str, instead_of: ListedMetadata | None, listed: ListedMetadata) -> None:
        from pyiceberg.catalog import glue
        from pyiceberg.table.metadata import TableMetadataUtil

        namespace, _, name = identifier.rpartition(".")
        metadata = TableMetadataUtil.parse_obj(dict(listed.document))
        if instead_of is None:
            self._create_database(namespace)
            table = glue._construct_table_input(name, listed.location, {}, metadata)
            self._asked("create_table", DatabaseName=namespace, TableInput=_short(table))
            return
        existing_table = self._table(identifier)
        if existing_table is None or existing_table["Parameters"]["metadata_location"] != instead_of.location:
            raise Moved
        table = glue._construct_table_input(name, listed.location, {}, metadata, existing_table, instead_of.location)
        fields = {key: existing_table[key] for key in ("Description", "Owner", "Retention") if existing_table.get(key)}
        # Glue compares the version, so that nobody's commit in between is lost.
        table_input, version = {**_short(table), **fields}, existing_table.get("VersionId")
        self._asked("update_table", DatabaseName=namespace, TableInput=table_input, SkipArchive=True, VersionId=version)

    def probe(self, identifier: str) -> None:
        """Tries requests that change nothing, such as for a table that does not exist. Creating a database or a table cannot be tried."""
        namespace, _, name = identifier.rpartition(".")
        unused_name = f"{PROBE}{uuid.uuid4().hex[:8]}"
        requests: dict[str, Mapping[str, Any]] = {
            "get_database": {"Name": namespace},
            "get_databases": {},
            "get_table": {"DatabaseName": namespace, "Name": name},
            "get_tables": {"DatabaseName": namespace},
            "update_table": {"DatabaseName": namespace, "TableInput": {"Name": unused_name}},
            "delete_table": {"DatabaseName": namespace, "Name": unused_name},
        }
        answers = {_action(request): self._denied(request, arguments) for request, arguments in requests.items()}
        denied = {action: says for action, says in answers.items() if says}
        if denied.keys() - _FOR_DROP:
            action_texts = (f"{action} (for `drop` and `rebuild`)" if action in _FOR_DROP else action for action in denied)
            resources = aws_policy.of_namespace(self.storage.region, self.options.account, namespace)
            raise RequestFailed(
                f"{', '.join(action_texts)}: Glue refused it ({', '.join(set(denied.values()))})",
                aws_policy.hint([aws_policy.allow(_RIGHTS, *resources)]),
            )

    def _denied(self, request: str, arguments: Mapping[str, Any]) -> str:
        """The error where the login lacks a right in Glue."""
        try:
            self._asked(request, **arguments)
        except Denied as denied:
            return str(denied)
        except Moved:  # it is there already
            return ""
        return ""

    def _create_database(self, namespace: str) -> None:
        with suppress(Moved):
            if self._asked("get_database", Name=namespace) is None:
                self._asked("create_database", DatabaseInput={"Name": namespace})

    def _names(self) -> Iterator[str]:
        for database in self._pages("get_databases", "DatabaseList"):
            for table in self._pages("get_tables", "TableList", DatabaseName=database["Name"]):
                if _is_iceberg(table):
                    yield f"{database['Name']}.{table['Name']}"

    def _table(self, identifier: str) -> Mapping[str, Any] | None:
        namespace, _, name = identifier.rpartition(".")
        answer = self._asked("get_table", DatabaseName=namespace, Name=name)
        return answer["Table"] if answer and _is_iceberg(answer["Table"]) else None

    def _pages(self, request: str, key: str, **arguments: str) -> Iterator[Any]:
        token: dict[str, str] = {}
        while True:
            answer = self._asked(request, **arguments, **token) or {}
            yield from answer.get(key) or ()
            if not answer.get("NextToken"):
                return
            token = {"NextToken": answer["NextToken"]}

    def _asked(self, request: str, **arguments: Any) -> Mapping[str, Any] | None:
        """An answer of Glue; None where there is no such table or database."""
        account = {"CatalogId": self.options.account} if self.options.account else {}
        try:
            login = buckets.login(self.storage, self.secrets)
            client = buckets.kept_client(self.storage, login, "glue", self.options.endpoint)
            answer: Mapping[str, Any] = getattr(client, request)(**arguments, **account)
        except buckets.errors() as error:
            trouble = buckets.trouble(error, self.storage)
            if trouble.says == "EntityNotFoundException":
                return None
            if trouble.says in _MOVED:
                raise Moved from None
            if trouble.kind == "refused":
                raise Denied(trouble.says, "give the login the rights of Glue that it needs") from None
            if trouble.kind == "wrong-login":
                raise RequestFailed(
                    f"Glue does not take the login: {trouble.says}", "correct the login under `storage`, or its secrets"
                ) from None
            raise RequestFailed(trouble.says if trouble.kind != "unreachable" else "Glue does not answer") from None
        return answer

    @property
    def _root(self) -> str:
        return self.options.warehouse.rstrip("/")


def _action(request: str) -> str:
    return "glue:" + "".join(map(str.capitalize, request.split("_")))


def _short(table: Any) -> dict[str, Any]:
    """The table with comments of columns as Glue takes them: one short line each."""
    columns = [
        {**column, **({"Comment": " ".join(column["Comment"].split())[:_COMMENT]} if "Comment" in column else {})}
        for column in table["StorageDescriptor"]["Columns"]
    ]
    return {**table, "StorageDescriptor": {**table["StorageDescriptor"], "Columns": columns}}


def _is_iceberg(table: Mapping[str, Any]) -> bool:
    return str(table.get("Parameters", {}).get("table_type", "")).lower() == "iceberg"


CATALOG = Glue
