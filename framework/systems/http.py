"""One bounded HTTP exchange with a server, such as a registry or a catalog: an answer has a time limit and a size limit.

*Guarantee* Requests go only to the address in the spec, and only with the login in the spec.
*Limit* Resolving a host name takes as long as this machine's resolver takes.
"""

from __future__ import annotations

import base64
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Timer
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from framework.base.hosts import url_is_loopback
from framework.base.patience import CONNECTING

if TYPE_CHECKING:
    from requests import PreparedRequest, Response, Session

MOST_BYTES = 8 << 20
"""The most bytes of one answer, unless a channel allows more. Confluent's registry accepts schemas of up to one megabyte."""


class Silent(Exception):
    """No answer, or a late one; a retry can succeed."""


class Untrusted(Exception):
    """The server has a certificate that this machine does not trust."""


TRUST = "name the certificates that vouch for it in the environment variable REQUESTS_CA_BUNDLE"


class Strange(Exception):
    """An answer that no such server gives."""


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes


class _Watch:
    """The sockets of a channel, closed by a timer: a socket's own timeout restarts with each byte."""

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []
        self.over = False

    def note(self, new: socket.socket | None) -> None:
        self.sockets = [connection for connection in self.sockets if connection.fileno() >= 0]
        if new is not None:
            self.sockets.append(new)
        if self.over:  # it took too long to connect
            self.end()

    def end(self) -> None:
        self.over = True
        for connection in self.sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        self.over = False
        timer = Timer(seconds, self.end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class _Line(threading.local):
    """The session of one thread and the watch over its sockets: a request that takes too long ends no other thread's."""

    def __init__(self, opened: Callable[[_Watch], Session]) -> None:
        self.watch = _Watch()
        self.session = opened(self.watch)


class Channel:
    """A channel to one address. `login` is a name and a password; `accept` the form of answers."""

    def __init__(self, url: str, login: tuple[str, str] | None, accept: str, max_bytes: int = MOST_BYTES) -> None:
        self._url = url
        self._max_bytes = max_bytes
        self._line = _Line(lambda watch: self._opened(watch, login, accept))
        self._secrets = _sent_as(*login) if login else ()

    def without_login(self, text: str) -> str:
        """Returns the text of an answer with `***` in place of the password, if it quotes that."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def ask(
        self, method: str, path: str, body: Any, seconds: float, *, form: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """The complete answer to one request, within `seconds`. `body` is sent as JSON, a `form` as HTML's forms are."""
        from requests.exceptions import InvalidHeader, RequestException, SSLError, Timeout
        from urllib3.exceptions import HTTPError, ReadTimeoutError

        watch = self._line.watch
        try:
            with watch.within(seconds):
                timeout = (min(CONNECTING, seconds), seconds)
                with self._line.session.request(
                    method, self._url + path, json=body, data=form, headers=headers, timeout=timeout, stream=True,
                    allow_redirects=False,
                ) as response:  # fmt: skip
                    reply = _reply(response, self._max_bytes)
                    missing = response.raw.length_remaining  # a single read of a body does not say that it is cut off
        except (Timeout, ReadTimeoutError):  # the second one in the middle of a body
            raise Silent("does not answer in time") from None
        except InvalidHeader:  # whose text has the value
            raise Strange("was not asked: a header, or a secret in one, has a line break or begins with a space") from None
        except SSLError as error:
            raise Untrusted(_end(error)) from None
        except (RequestException, HTTPError, OSError) as error:
            raise Silent("does not answer in time" if watch.over else f"does not answer: {_end(error)}") from None
        if watch.over:  # an answer without a length ends where its connection does
            raise Silent("does not answer in time")
        if missing:
            raise Silent("breaks off in the middle of an answer")
        return reply

    def _opened(self, watch: _Watch, login: tuple[str, str] | None, accept: str) -> Session:
        from requests.auth import HTTPBasicAuth

        session = _staying()
        session.headers["Accept"] = accept
        session.headers["Accept-Encoding"] = "identity"  # a small answer cannot become a large one
        # A company's proxy cannot reach this machine's own servers.
        session.trust_env = not url_is_loopback(self._url)
        session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
        # Without a login, `requests` would read one from ~/.netrc.
        session.auth = HTTPBasicAuth(login[0].encode(), login[1].encode()) if login else _as_it_is
        adapter = _watched(watch)
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        return session


def _staying() -> Session:
    """A session that ignores the address of a redirect: `requests` reads it even if it does not go there, and raises a ValueError if it is
    no address."""
    import requests

    class Staying(requests.Session):
        def get_redirect_target(self, resp: Response) -> str | None:
            return None

    return Staying()


def _sent_as(username: str, password: str) -> tuple[str, ...]:
    """Returns the texts by which a login could be known again: as it is, encoded as HTTP sends it, and as a part of an address."""
    basic = base64.b64encode(f"{username}:{password}".encode()).decode()
    return tuple(text for text in (basic, password, quote(password, safe="")) if text)


def _as_it_is(request: PreparedRequest) -> PreparedRequest:
    return request


def _watched(watch: _Watch) -> Any:
    """An adapter that records the sockets of its connections, also those through a proxy."""
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class Plain(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            watch.note(self.sock)

    class Encrypted(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            watch.note(self.sock)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class EncryptedPool(HTTPSConnectionPool):
        ConnectionCls = Encrypted

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **options: Any) -> None:
            super().init_poolmanager(*args, **options)
            self.poolmanager.pool_classes_by_scheme = pools

        def proxy_manager_for(self, *args: Any, **options: Any) -> Any:
            manager = super().proxy_manager_for(*args, **options)
            manager.pool_classes_by_scheme = pools
            return manager

    pools = {"http": PlainPool, "https": EncryptedPool}
    return Adapter()


def _reply(response: Response, max_bytes: int) -> Reply:
    if response.is_redirect:
        raise Strange(f"sends on to {_host(response.headers['Location'])}, where nothing is asked")
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise Strange(f"answers in the encoding {encoding[:40]!r}, which was not asked for")
    body = response.raw.read(max_bytes + 1, decode_content=False)
    if len(body) > max_bytes:
        raise Strange(f"answers with more than {max_bytes >> 20} MB")
    return Reply(response.status_code, body)


def _host(address: str) -> str:
    try:
        parts = urlsplit(address)
        return ascii(f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or "another path")[1:-1][:200]
    except ValueError:
        return "no address"


def _end(error: Exception) -> str:
    """The text of the innermost of nested errors: only that one says what happened."""
    inner = [cause for cause in (*error.args, getattr(error, "reason", None)) if isinstance(cause, Exception)]
    if inner:
        return _end(inner[-1])
    text = str(error).rpartition(": ")[2].strip(" '\")(>")
    return text or type(error).__name__
