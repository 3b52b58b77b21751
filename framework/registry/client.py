"""A registry over HTTP: Confluent's API, which Apicurio, Karapace and Redpanda speak, too.

*Guarantee*: what does not answer, or not in time, is an error and never an empty answer.
*Limit*: a registry that is away is asked once and not again until `patience` has passed.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlsplit

from framework.errors import SluiceError, UnreachableError
from framework.plan.model import Cluster, SecretStore
from framework.registry import Kind, Schema, Subject, Version, cache
from framework.secrets import reveal

if TYPE_CHECKING:
    from requests import Response, Session

_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403
_BUSY = (429, 500, 502, 503, 504)
_DEEPEST = 32  # references of references
_KINDS = ("AVRO", "JSON", "PROTOBUF")


class _Absent(Exception):
    """The registry says that it has no such thing."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


@dataclass
class Registry:
    """One cluster's registry. `patience` are the seconds that it has to answer."""

    cluster: Cluster
    secrets: SecretStore
    patience: float = 3.0
    _session: Session | None = field(default=None, init=False)
    _down: tuple[float, SluiceError] | None = field(default=None, init=False)
    _schemas: dict[int, Schema | None] = field(default_factory=dict, init=False)
    _referred: dict[tuple[str, int], Schema] = field(default_factory=dict, init=False)

    @property
    def url(self) -> str:
        if self.cluster.registry is None:
            hint = "add `registry:` with its address, such as `registry: http://127.0.0.1:18081/apis/ccompat/v7`"
            raise SluiceError("no-registry", f"the cluster `{self.cluster.name}` names no schema registry", hint)
        return self.cluster.registry.rstrip("/")

    def subject(self, name: str) -> Subject:
        """The subject as it is now or, while the registry is away, as it was when it last answered."""
        known = cache.read(self.url, name)
        try:
            numbers = self.numbers(name)
            latest = self._version(name, numbers[-1])
        except UnreachableError as error:
            if known is None:
                raise
            return Subject(name, known.versions, error)
        there = {each.number: each for each in known.versions} if known else {}
        if there.get(latest.number, latest) != latest:  # removed for good and begun again from 1
            there = {}
        there[latest.number] = latest
        found = Subject(name, tuple(there.get(number) or self._version(name, number) for number in numbers))
        if known is None or found.versions != known.versions:
            cache.write(self.url, found)
        return found

    def numbers(self, name: str) -> tuple[int, ...]:
        """The subject's versions by their numbers, of which there is at least one."""
        try:
            found = tuple(sorted(int(each) for each in self._ask("GET", f"/subjects/{quote(name, safe='')}/versions")))
        except _Absent:
            found = ()
        if not found:
            hint = f"register one, by a producer or by `sluice generate`; or name another subject: `subject: …` ({self.url})"
            raise SluiceError("no-subject", f"the registry has no schema for the subject `{name}`", hint)
        return found

    def schema(self, id_: int) -> Schema | None:
        """The schema of an id; None where the registry has none."""
        if id_ not in self._schemas:
            try:
                self._schemas[id_] = self._read(self._ask("GET", f"/schemas/ids/{id_}"), 0)
            except _Absent:
                return None  # it may have it when it is asked again
        return self._schemas[id_]

    def subjects(self, id_: int) -> tuple[str, ...]:
        """Which of them have the schema of an id."""
        try:
            said = self._ask("GET", f"/schemas/ids/{id_}/versions")
        except _Absent:
            return ()
        return tuple(dict.fromkeys(str(each["subject"]) for each in said))

    def register(self, name: str, kind: Kind, text: str) -> int:
        """The schema's id, under which the subject has it from now on if it had not before."""
        said = {"schema": text, **({} if kind == "AVRO" else {"schemaType": kind})}
        try:
            return int(self._ask("POST", f"/subjects/{quote(name, safe='')}/versions", said)["id"])
        except _Absent:
            raise self._strange("has no place for subjects") from None

    def _version(self, name: str, number: int) -> Version:
        try:
            said = self._ask("GET", f"/subjects/{quote(name, safe='')}/versions/{number}")
        except _Absent:
            raise SluiceError(
                "registry-changed", f"version {number} of `{name}` was removed while it was read", "again"
            ) from None
        return Version(int(said["id"]), self._read(said, 0), number)

    def _read(self, said: Any, depth: int) -> Schema:
        kind = said.get("schemaType") or "AVRO"
        if kind not in _KINDS or depth > _DEEPEST:
            raise self._strange(f"has a schema of the kind {kind}" if depth <= _DEEPEST else "has references without end")
        references = (
            (each["name"], self._refer(each["subject"], int(each["version"]), depth + 1)) for each in said.get("references") or ()
        )
        return Schema(cast(Kind, kind), said["schema"], tuple(references))

    def _refer(self, subject: str, number: int, depth: int) -> Schema:
        if (subject, number) not in self._referred:
            try:
                said = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{number}?deleted=true")
            except _Absent:
                raise self._strange(f"has no version {number} of `{subject}`, to which a schema refers") from None
            self._referred[subject, number] = self._read(said, depth)
        return self._referred[subject, number]

    def _ask(self, method: str, path: str, said: Any = None) -> Any:
        if self._down and time.monotonic() < self._down[0]:
            raise self._down[1]
        until = time.monotonic() + self.patience
        pause = 0.1
        while True:
            trouble, response = self._once(method, path, said, max(0.1, until - time.monotonic()))
            if trouble is None and response is not None:
                self._down = None
                return self._answer(response)
            if time.monotonic() + pause > until:
                hint = "start it, or see why; nothing is lost: messages wait until it answers"
                away = UnreachableError("registry-unreachable", f"the schema registry at {self.url} {trouble}", hint)
                self._down = (time.monotonic() + self.patience, away)
                raise away
            time.sleep(pause)
            pause *= 2

    def _once(self, method: str, path: str, said: Any, patience: float) -> tuple[str | None, Response | None]:
        """What is wrong, or the answer."""
        import requests

        try:
            answer = self._connected().request(method, self.url + path, json=said, timeout=(min(2.0, patience), patience))
        except requests.exceptions.SSLError as error:
            hint = "name the certificates that vouch for it in the environment variable REQUESTS_CA_BUNDLE"
            raise UnreachableError(
                "registry-refused", f"the certificate of {self.url} is not trusted: {_end(error)}", hint
            ) from None
        except requests.exceptions.Timeout:
            return "does not answer in time", None
        except requests.exceptions.RequestException as error:
            return f"does not answer: {_end(error)}", None
        return (f"answers {answer.status_code}" if answer.status_code in _BUSY else None), answer

    def _connected(self) -> Session:
        if self._session is None:
            import requests

            self._session = requests.Session()
            self._session.headers["Accept"] = "application/vnd.schemaregistry.v1+json, application/json"
            # A company's proxy knows nothing of this machine's own servers.
            self._session.trust_env = urlsplit(self.url).hostname not in ("127.0.0.1", "localhost", "::1")
            self._session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
            login = self.cluster.registry_auth
            if login:
                self._session.auth = (reveal(login.username, self.secrets), reveal(login.password, self.secrets))
        return self._session

    def _answer(self, response: Response) -> Any:
        try:
            said = response.json()
        except ValueError:
            said = None
        if response.ok and said is not None:
            return said
        code = said.get("error_code") if isinstance(said, dict) else None
        if response.status_code == 404 and code in (_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA):
            raise _Absent(code)
        if response.status_code in (401, 403):
            hint = "correct `registry_auth`, or what its login is allowed to do"
            raise UnreachableError("registry-refused", f"the schema registry at {self.url} refuses the login", hint)
        message = said.get("message") if isinstance(said, dict) else None
        if response.status_code in (409, 422):
            hint = "register a schema that the subject's compatibility rule allows, or change the rule"
            raise SluiceError(
                "schema-refused", f"the schema registry refuses the schema: {message or response.status_code}", hint
            )
        raise self._strange(
            f"answers {response.status_code}, which no registry does" if response.ok else f"answers {response.status_code}"
        )

    def _strange(self, what: str) -> UnreachableError:
        hint = "`registry:` is the address of the registry's API: Confluent's own has no path, Apicurio's is …/apis/ccompat/v7"
        return UnreachableError("registry-strange", f"the schema registry at {self.url} {what}", hint)


def _end(error: Exception) -> str:
    """The last and only telling part of an error of many layers."""
    text = str(error).rpartition(": ")[2].strip(" '\")(>")
    return text or type(error).__name__
