"""The routes of Iceberg's REST protocol that read. Everything that would write is refused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from framework.base.errors import SluiceError
from framework.host.serve.tables import Tables
from framework.host.serve.tokens import LASTS, Tokens

_LEVELS = "\x1f"  # between the levels of a namespace
_MOMENT = 1.0  # seconds
_MAX_BODY = 64 << 10  # bytes of a request
_ENDPOINTS = (
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
)
_log = logging.getLogger(__name__)


def app(tables: Tables, tokens: Tokens) -> Starlette:
    space = "/v1/namespaces/{namespace}"
    handlers: Mapping[str, Callable[[Tables, Request], Response]] = {
        "/v1/config": _config, "/v1/namespaces": _namespaces, space: _namespace, f"{space}/tables": _tables,
        f"{space}/tables/{{table}}": _table, f"{space}/views": _views,
    }  # fmt: skip
    routes = [
        Route(path, _guarded(tokens, partial(answer, tables)), methods=["GET", "HEAD"]) for path, answer in handlers.items()
    ]
    return Starlette(
        routes=[Route("/v1/oauth/tokens", partial(_token, tokens), methods=["POST"]), *routes],
        exception_handlers={HTTPException: _strange},
    )


async def _token(tokens: Tokens, request: Request) -> Response:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MAX_BODY:
            return JSONResponse({"error": "invalid_request", "error_description": "the request is too large"}, 413)
    token = await run_in_threadpool(tokens.issue, body, request.headers.get("authorization", ""))
    if token is None:  # a client that was made just now is known after a moment; who guesses waits
        await asyncio.sleep(_MOMENT)
        token = await run_in_threadpool(tokens.issue, body, request.headers.get("authorization", ""), _MOMENT / 2)
    if token is None:
        return JSONResponse({"error": "invalid_client", "error_description": "the client or its secret is wrong"}, 401)
    return JSONResponse({"access_token": token, "token_type": "bearer", "expires_in": LASTS})


def _guarded(tokens: Tokens, answer: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Answers readers that have a token. An error says nothing about its cause: readers are not the people who run this server."""

    async def guarded(request: Request) -> Response:
        if not await run_in_threadpool(tokens.knows, request.headers):
            return _error(401, "NotAuthorizedException", "there is no token, or it has ended")
        try:
            return await run_in_threadpool(answer, request)
        except (SluiceError, OSError) as error:
            _log.warning("%s", error)
            return _error(503, "ServiceUnavailableException", "the catalog cannot be read just now")

    return guarded


def _config(_: Tables, __: Request) -> Response:
    return JSONResponse({"defaults": {}, "overrides": {}, "endpoints": _ENDPOINTS})


def _namespaces(tables: Tables, request: Request) -> Response:
    below = request.query_params.get("parent")
    names = [] if below else sorted({namespace for namespace, _ in tables.names()})
    return JSONResponse({"namespaces": [[name] for name in names]})


def _namespace(tables: Tables, request: Request) -> Response:
    name = request.path_params["namespace"]
    if not any(tables.names(name)):
        return _error(404, "NoSuchNamespaceException", f"there is no namespace {name}")
    return JSONResponse({"namespace": name.split(_LEVELS), "properties": {}})


def _tables(tables: Tables, request: Request) -> Response:
    name = request.path_params["namespace"]
    return JSONResponse({"identifiers": [{"namespace": [namespace], "name": table} for namespace, table in tables.names(name)]})


def _table(tables: Tables, request: Request) -> Response:
    namespace, name = request.path_params["namespace"], request.path_params["table"]
    vended = "vended-credentials" in request.headers.get("x-iceberg-access-delegation", "")
    loaded = tables.loaded(namespace, name, vended and request.method == "GET")
    if loaded is None:
        return _error(404, "NoSuchTableException", f"there is no table {namespace}.{name}")
    return JSONResponse(loaded)


def _views(_: Tables, __: Request) -> Response:
    return JSONResponse({"identifiers": []})


async def _strange(_: Request, error: Any) -> Response:
    if error.status_code == 405:
        return _error(405, "UnsupportedOperationException", "this catalog can only be read")
    return _error(error.status_code, "BadRequestException", "this catalog has no such path: it can only be read")


def _error(status: int, type_: str, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": type_, "code": status}}, status)
