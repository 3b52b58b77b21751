"""The server of one catalog, on this machine alone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING

from framework.base.errors import SetupError, SluiceError
from framework.base.patience import STARTING
from framework.base.spelling import did_you_mean, the_names
from framework.core.iceberg import second_identity
from framework.host.serve.app import app
from framework.host.serve.tables import Tables
from framework.host.serve.tokens import Tokens
from framework.plan import Catalog, Plan
from framework.systems import catalogs

if TYPE_CHECKING:
    import uvicorn


def chosen(plan: Plan, name: str | None) -> Catalog:
    """The catalog of this name, or the only one that has tables of the specs."""
    table_catalogs = {pipeline.table.catalog.name: pipeline.table.catalog for pipeline in plan.pipelines}
    all_catalogs = {catalog.name: catalog for catalog in plan.catalogs}
    if name is not None and name not in all_catalogs:
        raise SluiceError(
            "unknown-catalog",
            f"there is no catalog `{name}`",
            did_you_mean(name, all_catalogs, the_names("catalog", all_catalogs)),
        )
    if name is None and len(table_catalogs) != 1:
        names = ", ".join(table_catalogs) or "none"
        raise SluiceError(
            "several-catalogs", f"the tables are in several catalogs, or in none: {names}", "name one: `sluice serve NAME`"
        )
    catalog = all_catalogs[name] if name else next(iter(table_catalogs.values()))
    if catalogs.client_of(catalog).writes_metadata:
        message = f"the catalog `{catalog.name}` is a server that readers can ask themselves"
        raise SluiceError("serves-itself", message, f"give them its address and a login; {catalogs.client_of(catalog).where()}")
    return catalog


@contextmanager
def running(plan: Plan, catalog: Catalog, port: int, clients: Callable[[float], Set[tuple[str, str]]]) -> Iterator[str]:
    """Serves a catalog to these clients in a thread; yields the server's address, and always stops it. Port 0 means any free port."""
    import uvicorn

    server_socket = _listening(port)
    application = app(Tables(catalog, _hidden(plan)), Tokens(clients))
    config = uvicorn.Config(application, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([server_socket],), daemon=True)
    thread.start()
    try:
        _wait(server, thread)
        yield f"http://127.0.0.1:{server_socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        server_socket.close()


def _listening(port: int) -> socket.socket:
    server_socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server_socket.bind(("127.0.0.1", port))
    except OSError as error:
        server_socket.close()
        raise SetupError("port-busy", f"port {port} cannot be used: {error.strerror}", "choose another with --port") from None
    return server_socket


def _hidden(plan: Plan) -> frozenset[str]:
    """The names of tables of bad rows, and of the second tables of rebuilds."""
    pipelines = (writer for pipeline in plan.pipelines for writer in (pipeline, second_identity.second_pipeline(pipeline)))
    second_names = {second_identity.second_pipeline(pipeline).table.identifier for pipeline in plan.pipelines}
    return frozenset(second_names | {side.identifier for pipeline in pipelines for side in pipeline.table.side_tables})


def _wait(server: uvicorn.Server, thread: threading.Thread) -> None:
    started = threading.Event()
    for _ in range(round(STARTING * 100)):
        if server.started:
            return
        if not thread.is_alive():
            break
        started.wait(0.01)
    raise SetupError("service-failed", "the server did not start", "see what it printed above")
