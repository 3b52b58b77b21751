"""Requests to an Iceberg REST catalog, without a JVM and without PyIceberg, which takes long to import.

Guarantee: a login goes to the address in the spec alone. A token is asked for once and used until it ends.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from framework.base.errors import visible
from framework.base.patience import CATALOG, CATALOG_AGAIN
from framework.systems.catalogs import Moved, RequestFailed
from framework.systems.http import TRUST, Channel, Reply, Silent, Strange, Untrusted

_MOST_BYTES = 256 << 20  # of one answer: it has a table's metadata
_BUSY = (429, 502, 503, 504)
_EARLY = 30.0  # seconds before a token ends that another one is asked for
_LONGEST = 300  # characters of what a catalog says
_HINTS = {
    401: "correct the login under `oauth` or `token`, or its secrets",
    403: "give this login the rights to read and write the namespace and its tables, or correct `scope`",
    404: "correct `uri` or `warehouse`",
}
_VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}


class Answered(RequestFailed):
    """The catalog answered with a refusal."""

    def __init__(self, status: int, says: str) -> None:
        super().__init__(f"it answers {status}: {says}" if says else f"it answers {status}", _HINTS.get(status, ""))
        self.of_all = status == 401 or status in _BUSY


class Absent(Answered):
    """There is no such table or namespace."""


class Conflict(Answered, Moved):
    """The name has another table, or another state of it, by now."""


@dataclass(frozen=True, kw_only=True)
class Address:
    """A catalog and the login to it."""

    uri: str
    warehouse: str | None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    token: str | None = field(default=None, repr=False)  # one that does not end
    token_uri: str | None = None
    client: Mapping[str, str] = field(default_factory=dict, repr=False)  # the form that a token is asked for with


@dataclass
class RestClient:
    """One catalog."""

    address: Address
    _token: tuple[str, float] | None = None
    _prefix: str | None = None
    _settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._channel = Channel(self.address.uri.rstrip("/"), None, "application/json", _MOST_BYTES)

    def table(self, namespace: str, name: str, vended: bool) -> Mapping[str, Any] | None:
        """The catalog's answer about a table: `metadata-location`, `metadata` and `config`; None where there is none."""
        self._configure()  # its 404 would be another one
        try:
            answer = self._asked("GET", self._table(namespace, name), _VENDED if vended else {})
        except Absent:
            return None
        of_files = {
            key: value
            for credential in answer.get("storage-credentials") or ()
            for key, value in (credential.get("config") or {}).items()
        }
        return {**answer, "config": {**self._settings, **(answer.get("config") or {}), **of_files}}

    def tables(self) -> Iterator[str]:
        for (name,) in (namespace for namespace in self._listed("/namespaces", "namespaces") if len(namespace) == 1):
            try:
                for table in self._listed(f"/namespaces/{_part(name)}/tables", "identifiers"):
                    yield f"{name}.{table['name']}"
            except Absent:  # it was dropped meanwhile
                continue

    def drop(self, namespace: str, name: str) -> None:
        with suppress(Absent):  # it is gone, perhaps by a first try whose answer was lost
            self._asked("DELETE", f"{self._table(namespace, name)}?purgeRequested=false")

    def register(self, namespace: str, name: str, location: str) -> None:
        """Registers a table by its metadata file. Its namespace is created if it is missing."""
        try:
            self._asked("GET", f"/namespaces/{_part(namespace)}")
        except Absent:
            with suppress(Conflict):
                self._asked("POST", "/namespaces", body={"namespace": [namespace], "properties": {}})
        path = f"/namespaces/{_part(namespace)}/register"
        self._asked("POST", path, body={"name": name, "metadata-location": location})

    def commit(
        self, namespace: str, name: str, requirements: Sequence[Mapping[str, Any]], updates: Sequence[Mapping[str, Any]]
    ) -> None:
        identifier = {"namespace": [namespace], "name": name}
        body = {"identifier": identifier, "requirements": requirements, "updates": updates}
        self._asked("POST", self._table(namespace, name), body=body)

    def probe(self, namespace: str, name: str) -> None:
        """Begins to create a table without creating it, or commits no change to it."""
        table = self.table(namespace, name, vended=False)
        if table is not None:
            self.commit(namespace, name, [{"type": "assert-table-uuid", "uuid": table["metadata"]["table-uuid"]}], [])
            return
        schema = {"type": "struct", "schema-id": 0, "fields": []}
        with suppress(Absent):  # of a namespace that the first run creates
            path = f"/namespaces/{_part(namespace)}/tables"
            self._asked("POST", path, body={"name": name, "schema": schema, "stage-create": True})

    def _table(self, namespace: str, name: str) -> str:
        return f"/namespaces/{_part(namespace)}/tables/{_part(name)}"

    def _listed(self, path: str, key: str) -> Iterator[Any]:
        page = ""
        while True:
            answer = self._asked("GET", f"{path}?{urlencode({'pageToken': page, 'pageSize': 1000})}")
            yield from answer.get(key) or ()
            page = answer.get("next-page-token") or ""
            if not page:
                return

    def _asked(self, method: str, path: str, headers: Mapping[str, str] | None = None, body: Any = None) -> Any:
        self._configure()
        return self._answer(method, f"/v1/{self._prefix}{path.removeprefix('/')}", headers or {}, body)

    def _configure(self) -> None:
        """Fetches the catalog's configuration once, including its path prefix."""
        if self._prefix is not None:
            return
        query = f"?{urlencode({'warehouse': self.address.warehouse})}" if self.address.warehouse else ""
        answer = self._answer("GET", f"/v1/config{query}", {})
        self._settings = {**(answer.get("defaults") or {}), **(answer.get("overrides") or {})}
        prefix = str(self._settings.get("prefix") or "")
        self._prefix = f"{quote(prefix)}/" if prefix else ""

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: Any = None) -> Any:
        reply = self._sent(method, path, {**self._login(), **headers}, body)
        if reply.status == 401 and self._token is not None:  # it was taken back, or the server was started again
            self._token = None
            reply = self._sent(method, path, {**self._login(), **headers}, body)
        return _content(reply)

    def _login(self) -> Mapping[str, str]:
        token = self.address.token or (self._own_token() if self.address.client else None)
        return {**self.address.headers, **({"Authorization": f"Bearer {token}"} if token else {})}

    def _own_token(self) -> str:
        if self._token is None or self._token[1] < time.monotonic():
            channel, path = self._channel, "/v1/oauth/tokens"
            if self.address.token_uri:
                channel, path = Channel(self.address.token_uri, None, "application/json"), ""
            headers = {} if self.address.token_uri else self.address.headers
            reply = self._sent("POST", path, headers, form=self.address.client, channel=channel)
            answer = _content(reply)
            if not isinstance(answer, dict) or not isinstance(answer.get("access_token"), str):
                raise Answered(reply.status, "there is no token in it")
            seconds = float(answer.get("expires_in") or 3600)
            self._token = (answer["access_token"], time.monotonic() + max(seconds / 2, seconds - _EARLY))
        return self._token[0]

    def _sent(
        self, method: str, path: str, headers: Mapping[str, str], body: Any = None, *, form: Any = None,
        channel: Channel | None = None,
    ) -> Reply:  # fmt: skip
        """The answer to a request. A busy server is asked again, for some seconds."""
        for pause in (*CATALOG_AGAIN, None):
            try:
                reply = (channel or self._channel).ask(method, path, body, CATALOG, form=form, headers=headers)
            except Untrusted as error:
                raise RequestFailed(f"its certificate is not trusted: {error}", TRUST) from None
            except (Silent, Strange) as error:
                if pause is None or method != "GET" or not isinstance(error, Silent):
                    raise ConnectionError(f"it {error}") from None
            else:
                if pause is None or reply.status not in _BUSY:
                    return reply
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")


def _content(reply: Reply) -> Any:
    try:
        answer = json.loads(reply.body) if reply.body else {}
    except ValueError:
        answer = None
    if reply.status >= 300 or answer is None:
        absent = reply.status == 404 and isinstance(answer, dict) and "error" in answer  # not a page of another server
        raise (Absent if absent else Conflict if reply.status == 409 else Answered)(reply.status, _words(answer))
    return answer


def _words(answer: Any) -> str:
    """The text of a failure, from a catalog or a token endpoint."""
    error = answer.get("error") if isinstance(answer, dict) else None
    says = error.get("message") if isinstance(error, dict) else answer.get("error_description") or error if answer else None
    return visible(says)[:_LONGEST] if isinstance(says, str) else ""


def _part(name: str) -> str:
    return quote(name, safe="")
