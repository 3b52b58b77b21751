"""A client for registries with Confluent's API, which Apicurio, Karapace and Redpanda have too.

*Guarantee* No answer, or a late one, is an error and never an empty answer; so is an answer of another form, or a larger one,
than a registry gives.
*Limit* A registry that did not answer is not asked again until `patience` has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from framework.base.errors import NoRegistry, NoSubject, RegistryAway, SluiceError, UnreachableError
from framework.base.patience import REGISTRY
from framework.messages.registry import answers, cache
from framework.messages.registry.answers import Entry, Reference
from framework.plan import Cluster, SecretStore
from framework.plan.schema import Schema, Subject, Version
from framework.systems.http import TRUST, Channel, Reply, Silent, Strange, Untrusted
from framework.systems.secrets import reveal_together

T = TypeVar("T")
_ACCEPTED = "application/vnd.schemaregistry.v1+json, application/json"
_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403
_BUSY = (429, 500, 502, 503, 504)
_DEEPEST = 32  # references of references
_WHOLE_SECONDS = 120.0  # for a subject with all its versions and their references
_WHOLE_BYTES = 64 << 20


class _Absent(Exception):
    """The registry does not have what was asked for."""


@dataclass
class _Budget:
    """The time and the bytes left for all the answers that make one subject."""

    deadline: float
    bytes: int = _WHOLE_BYTES


@dataclass
class Registry:
    """One cluster's registry. `patience` is how many seconds an answer may take, `other_login` a name and a password in place of the
    cluster's."""

    cluster: Cluster
    secrets: SecretStore
    patience: float = REGISTRY
    other_login: tuple[str, str] | None = field(default=None, repr=False)
    _channel: Channel | None = field(default=None, init=False)
    _down: tuple[float, SluiceError] | None = field(default=None, init=False)
    _budget: _Budget | None = field(default=None, init=False)
    _schemas: dict[int, Schema | None] = field(default_factory=dict, init=False)
    _referred: dict[tuple[str, int], Entry] = field(default_factory=dict, init=False)

    @property
    def url(self) -> str:
        if self.cluster.registry is None:
            hint = "add `registry:` with its address, such as `registry: http://127.0.0.1:18081/apis/ccompat/v7`"
            raise NoRegistry("no-registry", f"the cluster `{self.cluster.name}` names no schema registry", hint)
        return self.cluster.registry.rstrip("/")

    def subject(self, name: str) -> Subject:
        """Returns the current subject or, while the registry is down, the subject as of the registry's last answer."""
        cached = cache.read(self.url, name)
        with self._bounded():
            try:
                numbers = self.numbers(name)
                latest = self._version(name, numbers[-1])
            except UnreachableError as error:
                if cached is None:
                    raise
                return Subject(name, cached.versions, error)
            cached_versions = {version.number: version for version in cached.versions} if cached else {}
            cached_number = max((number for number in numbers if number in cached_versions), default=numbers[-1])
            if cached_versions and self._version(name, cached_number) != cached_versions.get(
                cached_number
            ):  # deleted for good and started again from 1
                cached_versions = {}
            cached_versions[latest.number] = latest
            subject = Subject(name, tuple(cached_versions.get(number) or self._version(name, number) for number in numbers))
        if cached is None or subject.versions != cached.versions:
            cache.write(self.url, subject)
        return subject

    def remembered(self, name: str) -> Subject:
        """Returns the subject as of the registry's last answer. The registry is not asked, and no secret is read."""
        message = f"the schema registry at {self.url} was not asked: it wants a login, and none is sent here"
        trouble = UnreachableError("registry-not-asked", message, "`sluice check --online` asks it")
        cached = cache.read(self.url, name)
        if cached is None:
            raise trouble
        return Subject(name, cached.versions, trouble)

    def numbers(self, name: str) -> tuple[int, ...]:
        """Returns the numbers of the subject's versions. Raises NoSubject if there are none."""
        try:
            version_numbers = self._asked(answers.numbers, "GET", f"/subjects/{quote(name, safe='')}/versions")
        except _Absent:
            version_numbers = ()
        if not version_numbers:
            hint = f"register one, by a producer or by `sluice generate`; or name another subject: `subject: …` ({self.url})"
            raise NoSubject("no-subject", f"the registry has no schema for the subject `{name}`", hint)
        return version_numbers

    def schema(self, id_: int) -> Schema | None:
        """Returns the schema of an id; None if the registry has none. Ids are signed numbers of 32 bits: a larger one is
        not asked for, since some registries answer that there is no such address."""
        if id_ >= 1 << 31:
            return None
        if id_ not in self._schemas:
            with self._bounded():
                try:
                    self._schemas[id_] = self._whole(self._asked(answers.entry, "GET", f"/schemas/ids/{id_}"))
                except _Absent:
                    return None  # not remembered: the registry may have it later
        return self._schemas[id_]

    def subjects(self, id_: int) -> tuple[str, ...]:
        """Returns the subjects that have the schema of an id."""
        try:
            return self._asked(answers.subjects, "GET", f"/schemas/ids/{id_}/versions")
        except _Absent:
            return ()

    def register(self, name: str, kind: str, text: str) -> int:
        """Registers the schema for the subject, if it is not registered yet, and returns its id."""
        body = {"schema": text, **({} if kind == answers.UNNAMED else {"schemaType": kind})}
        try:
            return self._asked(answers.id_of, "POST", f"/subjects/{quote(name, safe='')}/versions", body)
        except _Absent:
            raise self._strange("has no place for subjects") from None

    def _version(self, name: str, number: int) -> Version:
        try:
            entry = self._asked(answers.entry, "GET", f"/subjects/{quote(name, safe='')}/versions/{number}")
        except _Absent:
            raise SluiceError(
                "registry-changed", f"version {number} of `{name}` was removed while it was read", "again"
            ) from None
        if entry.id is None:
            raise self._strange("has a version without an id")
        return Version(entry.id, self._whole(entry), number)

    def _whole(self, entry: Entry) -> Schema:
        """Returns the schema with all its references."""
        schemas: dict[str, Schema] = {}
        self._gather(entry.references, schemas, {})
        return Schema(entry.kind, entry.text, tuple(schemas.items()))

    def _gather(
        self,
        references: Sequence[Reference],
        schemas: dict[str, Schema],
        visited_versions: dict[tuple[str, int], bool],
        depth: int = 1,
    ) -> None:
        """Adds the referenced schemas to `schemas`, each read once. `visited_versions` says of each version that was begun whether it is
        complete."""
        for reference in references:
            key = reference.subject, reference.version
            if depth > _DEEPEST or visited_versions.get(key) is False:
                raise self._strange("has references without end")
            if max(len(visited_versions), len(schemas)) > answers.MOST_REFERENCES:
                raise self._strange(f"has a schema with more than {answers.MOST_REFERENCES:,} references")
            entry = self._refer(reference)
            if key not in visited_versions:
                visited_versions[key] = False
                self._gather(entry.references, schemas, visited_versions, depth + 1)
                visited_versions[key] = True
            schemas.setdefault(reference.name, Schema(entry.kind, entry.text))

    def _refer(self, reference: Reference) -> Entry:
        key = reference.subject, reference.version
        if key not in self._referred:
            path = f"/subjects/{quote(reference.subject, safe='')}/versions/{reference.version}?deleted=true"
            try:
                self._referred[key] = self._asked(answers.entry, "GET", path)
            except _Absent:
                raise self._strange(
                    f"has no version {reference.version} of `{reference.subject}`, to which a schema refers"
                ) from None
        return self._referred[key]

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """Opens a scope whose requests share the limits of one subject or schema."""
        self._budget = _Budget(time.monotonic() + max(_WHOLE_SECONDS, self.patience))
        try:
            yield
        finally:
            self._budget = None

    def _asked(self, read: Callable[[Any], T], method: str, path: str, body: Any = None) -> T:
        try:
            return read(self._ask(method, path, body))
        except Strange as error:
            raise self._strange(str(error)) from None

    def _ask(self, method: str, path: str, body: Any) -> Any:
        if self._down and time.monotonic() < self._down[0]:
            raise self._down[1]
        budget = self._budget or _Budget(float("inf"))
        deadline = min(time.monotonic() + self.patience, budget.deadline)
        pause = 0.1
        while True:
            trouble, reply = self._once(method, path, body, max(0.1, deadline - time.monotonic()))
            if trouble is None and reply is not None:
                self._down = None
                budget.bytes -= len(reply.body)
                if budget.bytes < 0:
                    raise Strange(f"has more than {_WHOLE_BYTES >> 20} MB for one subject")
                return self._answer(reply, method)
            if time.monotonic() + pause > deadline:
                hint = "start it, or read its log; nothing is lost: messages wait until it answers"
                message = f"the schema registry at {self.url} {trouble}"
                error = RegistryAway("registry-unreachable", message, hint, f"the schema registry at {self.url}")
                self._down = (time.monotonic() + self.patience, error)
                raise error
            time.sleep(pause)
            pause *= 2

    def _once(self, method: str, path: str, body: Any, seconds: float) -> tuple[str | None, Reply | None]:
        """Sends one request, and returns a trouble that a retry can end, or the answer."""
        try:
            reply = self._connected().ask(method, path, body, seconds)
        except Untrusted as error:
            raise UnreachableError("registry-refused", f"the certificate of {self.url} is not trusted: {error}", TRUST) from None
        except Silent as error:
            return str(error), None
        return (f"answers {reply.status}" if reply.status in _BUSY else None), reply

    def _connected(self) -> Channel:
        if self._channel is None:
            login, credentials = self.cluster.registry_auth, self.other_login
            if login and credentials is None:
                username, password = reveal_together((login.username, login.password), self.secrets)
                credentials = username, password
            self._channel = Channel(self.url, credentials, _ACCEPTED)
        return self._channel

    def _answer(self, reply: Reply, method: str) -> Any:
        answer = answers.parsed(reply.body)
        is_success = reply.status < 300
        if is_success and answer is not None:
            return answer
        if reply.status == 404 and answers.code_of(answer) in (_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA):
            raise _Absent
        if reply.status in (401, 403):
            hint = "correct `registry_auth`, or the permissions of its login"
            raise UnreachableError("registry-refused", f"the schema registry at {self.url} rejected the login", hint)
        if reply.status in (409, 422) and method == "POST":
            hint = "register a schema that the subject's compatibility rule allows, or change the rule"
            reason = answers.message_of(answer, self._connected().without_login) or reply.status
            raise SluiceError("schema-refused", f"the schema registry rejected the schema: {reason}", hint)
        raise Strange(f"answers {reply.status} without JSON" if is_success else f"answers {reply.status}")

    def _strange(self, problem: str) -> UnreachableError:
        hint = "`registry:` is the address of the registry's API: Confluent's own has no path, Apicurio's is …/apis/ccompat/v7"
        return UnreachableError("registry-strange", f"the schema registry at {self.url} {problem}", hint)
