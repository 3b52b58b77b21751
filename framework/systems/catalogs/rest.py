"""An Iceberg REST catalog, such as Polaris, Snowflake Open Catalog, Lakekeeper or Unity. It is a server that is logged in to by OAuth2.

Guarantee: a commit says where main was when it was made, and the server refuses it if main is elsewhere. Each commit that must not
follow another one therefore moves main.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from framework.base.errors import Problem
from framework.base.hosts import is_open
from framework.language.options import OptionGroup, option
from framework.language.scalars import Url
from framework.language.storage import Storage as WrittenStorage
from framework.plan import Storage
from framework.plan.secret import SecretRef
from framework.systems.catalogs import CatalogClient, ListedMetadata, TableFiles, _object_store, _rest_changes
from framework.systems.catalogs._rest_client import Address, RestClient
from framework.systems.catalogs._s3_files import S3Files
from framework.systems.secrets import reveal

if TYPE_CHECKING:
    from pyiceberg.table import Table as IcebergTable

EXAMPLE = """\
catalog: open_catalog
type: rest
uri: http://127.0.0.1:18182/api/catalog
warehouse: lake
oauth: {client_id: "${secret:oc_id}", client_secret: "${secret:oc_secret}", scope: "PRINCIPAL_ROLE:sluice"}
storage: {endpoint: "http://127.0.0.1:19100", region: us-east-1, access_key: "${secret:s3_key}", secret_key: "${secret:s3_secret}"}
"""
_DELEGATION = "header.X-Iceberg-Access-Delegation"
_PATIENCE = {"rest.client.connection-timeout-ms": "10000", "rest.client.socket-timeout-ms": "120000"}
_OF_JAVA = ("type", "io-impl", "rest.auth.type")  # settings that PyIceberg has otherwise
_SCOPE = "catalog"  # that of Iceberg's own clients
_clients: dict[tuple[Any, ...], RestClient] = {}


@dataclass(frozen=True)
class OAuth(OptionGroup):
    """A login by OAuth2's client credentials. Tokens are asked for again before they end."""

    in_digest: ClassVar[str] = "OAuth client_id client_secret scope token_uri"

    client_id: str | SecretRef = option("The client.", example='"${secret:oc_id}"', aka=["id", "client", "username"])
    client_secret: SecretRef = option("Its secret.", example='"${secret:oc_secret}"', aka=["secret", "password"])
    scope: str = option(
        "What the login is for; for Polaris and Open Catalog a role: `PRINCIPAL_ROLE:name`.",
        default=_SCOPE, example="PRINCIPAL_ROLE:sluice", aka=["role", "scopes"],
    )  # fmt: skip
    token_uri: Url | None = option(
        "Who gives tokens; default: the catalog itself.", default=None, example="https://login.example.com/oauth/token",
        aka=["server", "token_url", "oauth2_server_uri"],
    )  # fmt: skip


@dataclass(frozen=True)
class Options(OptionGroup):
    """A server that speaks Iceberg's REST protocol, such as Polaris, Snowflake Open Catalog or Lakekeeper."""

    uri: Url = option("The catalog's address.", example="http://127.0.0.1:18182/api/catalog", aka=["url", "endpoint"])
    warehouse: str | None = option(
        "Which of the server's catalogs it is; default: the server has one.", default=None, example="lake"
    )
    oauth: OAuth | None = option(
        "How to log in.", default=None, aka=["auth", "credential"],
        example='{client_id: "${secret:oc_id}", client_secret: "${secret:oc_secret}"}',
    )  # fmt: skip
    token: SecretRef | None = option(
        "A token that does not end, in place of `oauth`.", default=None, example='"${secret:catalog_token}"'
    )
    headers: dict[str, str | SecretRef] = option(
        "Headers of each request, as names and texts.", default={}, example="{Polaris-Realm: main}"
    )
    storage: WrittenStorage | None = option(
        "The object store of the tables' files. Without keys, those that the catalog gives are used; else this machine's AWS login.",
        default=None, example="{region: eu-central-1}", aka=["s3", "object_store"],
    )  # fmt: skip

    def servers(self) -> Iterable[str | None]:
        return (self.uri, *(self.storage.servers() if self.storage else ()))

    def problems(self) -> Iterable[Problem]:
        if self.gaps & {"uri", "oauth", "token"}:
            return
        if self.oauth is not None and self.token is not None:
            yield Problem(self.key_place("token"), "unused-key", "`token` has no effect with `oauth`", "remove one of them")
        secret = self.oauth or self.token or any(isinstance(value, SecretRef) for value in self.headers.values())
        for key, uri in (("uri", self.uri), ("token_uri", self.oauth.token_uri if self.oauth else None)):
            if secret and is_open(uri):
                holder = self if key == "uri" or self.oauth is None else self.oauth
                yield Problem(
                    holder.place(key),
                    "unencrypted-login",
                    f"the login would be sent to {uri} without encryption",
                    "write `https://…`",
                )


@dataclass(frozen=True)
class Rest(CatalogClient):
    options: Options

    batch_requests = 2
    does = "is a server that speaks Iceberg's REST protocol"
    writes_metadata = True
    checks_all = False

    @cached_property
    def storage(self) -> Storage:
        return _object_store.planned(self.options.storage)

    def files_of(self, identifier: str) -> TableFiles:
        if self._vended and (current := self.current(identifier)) is not None:
            return current.files
        return self._files({})

    def settings(self) -> Mapping[str, str]:
        oauth, plain = self.options.oauth, (item for item in self.options.headers.items() if isinstance(item[1], str))
        login = {
            "rest.auth.type": "oauth2", "scope": oauth.scope, "token-exchange-enabled": "false",
            "oauth2-server-uri": oauth.token_uri or f"{self._uri}/v1/oauth/tokens",
        } if oauth else {}  # fmt: skip
        return {
            "type": "rest", "uri": self._uri, **_PATIENCE, **({"warehouse": self.options.warehouse} if self.options.warehouse else {}),
            **login, **{f"header.{name}": str(value) for name, value in plain},
            **({_DELEGATION: "vended-credentials"} if self._vended else _object_store.FILE_IO),
            **_object_store.settings(self.storage),
        }  # fmt: skip

    def secret_settings(self) -> Mapping[str, str]:
        oauth, token = self.options.oauth, self.options.token
        secret = {f"header.{name}": value for name, value in self.options.headers.items() if isinstance(value, SecretRef)}
        return {
            **({"credential": f"{self._revealed(oauth.client_id)}:{self._revealed(oauth.client_secret)}"} if oauth else {}),
            **({"token": self._revealed(token), "rest.auth.type": "oauth2"} if token else {}),
            **{name: self._revealed(value) for name, value in secret.items()},
            **_object_store.of_java(self.storage, self.secrets),
        }

    @property
    def login(self) -> object | None:
        return None if self._vended else _object_store.shared_login(self.storage)

    @property
    def on_this_machine(self) -> bool:
        return False

    def jars(self) -> tuple[str, ...]:
        return _object_store.JARS

    def where(self) -> str | None:
        return self._uri

    def tables(self) -> tuple[str, ...]:
        return tuple(self._client.tables())

    def current(self, identifier: str) -> ListedMetadata | None:
        namespace, _, name = identifier.rpartition(".")
        table = self._client.table(namespace, name, vended=self._vended)
        if table is None:
            return None
        return ListedMetadata(str(table["metadata-location"]), table["metadata"], self._files(table["config"]))

    def load(self, identifier: str) -> IcebergTable | None:
        from pyiceberg.catalog.rest import RestCatalog
        from pyiceberg.exceptions import NoSuchTableError

        keys = {} if self._vended else _object_store.of_python(self.storage, self.secrets)
        properties = {**self.settings(), **self.secret_settings(), **keys}
        properties = {_DELEGATION: "", **{name: value for name, value in properties.items() if name not in _OF_JAVA}}
        try:
            table: IcebergTable = RestCatalog(self.name, **properties).load_table(identifier)
        except NoSuchTableError:
            return None
        return table

    def drop(self, identifier: str) -> None:
        namespace, _, name = identifier.rpartition(".")
        self._client.drop(namespace, name)

    def probe(self, identifier: str) -> None:
        namespace, _, name = identifier.rpartition(".")
        self._client.probe(namespace, name)

    def show(self, identifier: str, instead_of: ListedMetadata | None, listed: ListedMetadata) -> None:
        namespace, _, name = identifier.rpartition(".")
        if instead_of is None:
            self._client.register(namespace, name, listed.location)
            return
        document = instead_of.document
        changes = _rest_changes.between(document, listed.document)
        self._client.commit(namespace, name, _rest_changes.requirements(document), changes)

    @property
    def _uri(self) -> str:
        return self.options.uri.rstrip("/")

    @property
    def _vended(self) -> bool:
        """Whether the catalog gives the login to the object store."""
        return self.storage.access_key is None and self.storage.role is None and self.storage.profile is None

    def _files(self, config: Mapping[str, str]) -> S3Files:
        if not self._vended:
            return S3Files("", self.storage, self.secrets)
        storage = replace(
            self.storage, endpoint=self.storage.endpoint or config.get("s3.endpoint"),
            region=self.storage.region or config.get("client.region") or config.get("s3.region"),
            path_style=self.storage.path_style or config.get("s3.path-style-access") == "true",
        )  # fmt: skip
        return S3Files("", storage, self.secrets, _object_store.vended_login(config))

    def _revealed(self, value: str | SecretRef) -> str:
        return reveal(value, self.secrets)

    @property
    def _client(self) -> RestClient:
        oauth, options = self.options.oauth, self.options
        form = {
            "grant_type": "client_credentials", "scope": oauth.scope,
            "client_id": self._revealed(oauth.client_id), "client_secret": self._revealed(oauth.client_secret),
        } if oauth else {}  # fmt: skip
        address = Address(
            uri=self._uri, warehouse=options.warehouse, client=form, token_uri=oauth.token_uri if oauth else None,
            token=self._revealed(options.token) if options.token else None,
            headers={name: self._revealed(value) for name, value in options.headers.items()},
        )  # fmt: skip
        key = (address.uri, address.warehouse, address.token, address.token_uri, *form.values(), *address.headers.items())
        if key not in _clients:
            _clients[key] = RestClient(address)
        return _clients[key]


CATALOG = Rest
