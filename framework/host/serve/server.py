"""The server of one catalog, on this machine alone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
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
    written = {pipeline.table.catalog.name: pipeline.table.catalog for pipeline in plan.pipelines}
    all_ = {catalog.name: catalog for catalog in plan.catalogs}
    if name is not None and name not in all_:
        raise SluiceError(
            "unknown-catalog", f"there is no catalog `{name}`", did_you_mean(name, all_, the_names("catalog", all_))
        )
    if name is None and len(written) != 1:
        names = ", ".join(written) or "none"
        raise SluiceError(
            "several-catalogs", f"the tables are in several catalogs, or in none: {names}", "name one: `sluice serve NAME`"
        )
    catalog = all_[name] if name else next(iter(written.values()))
    if catalogs.client_of(catalog).writes_metadata:
        message = f"the catalog `{catalog.name}` is a server that readers can ask themselves"
        raise SluiceError("serves-itself", message, f"give them its address and a login; {catalogs.client_of(catalog).where()}")
    return catalog


@contextmanager
def running(plan: Plan, catalog: Catalog, port: int, client: str, secret: str) -> Iterator[str]:
    """Serves a catalog in a thread; yields the server's address, and always stops it. Port 0 means any free port."""
    import uvicorn

    listening = _listening(port)
    served = app(Tables(catalog, _hidden(plan)), Tokens(client, secret))
    config = uvicorn.Config(served, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        _wait(server, thread)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _listening(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        listening.close()
        raise SetupError("port-busy", f"port {port} cannot be used: {error.strerror}", "choose another with --port") from None
    return listening


def _hidden(plan: Plan) -> frozenset[str]:
    """The names of tables of bad rows, and of the second tables of rebuilds."""
    pipelines = (writer for pipeline in plan.pipelines for writer in (pipeline, second_identity.second_pipeline(pipeline)))
    seconds = {second_identity.second_pipeline(pipeline).table.identifier for pipeline in plan.pipelines}
    return frozenset(seconds | {side.identifier for pipeline in pipelines for side in pipeline.table.side_tables})


def _wait(server: uvicorn.Server, thread: threading.Thread) -> None:
    started = threading.Event()
    for _ in range(round(STARTING * 100)):
        if server.started:
            return
        if not thread.is_alive():
            break
        started.wait(0.01)
    raise SetupError("service-failed", "the server did not start", "see what it printed above")
