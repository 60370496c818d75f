"""
`customer-context serve`: the issuer under uvicorn.
"""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click
import uvicorn

from ..app import create_app
from ..logs import configure_logging
from ..reload import Reloader
from ..service import build_service
from ..settings import Settings, load_settings
from ..single_process import AlreadyServed, served_alone
from .options import config_option, fail, read_settings, readable_errors

__all__ = ["command"]

_GRACE_S: Final = 5
# The edge of the application refuses in the right format long before; this is the wall behind it.
_MAX_CONNECTIONS: Final = 8192
_BACKLOG: Final = 1024
_PORT: Final = 8000


@click.command("serve")
@config_option
@click.option(
    "--host", default="127.0.0.1", show_default=True, envvar="CUSTOMER_CONTEXT_BIND_HOST", help="Address to bind."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to bind; 0 picks one. By default that of the origin where it is http, and 8000 behind a proxy.",
)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Number of processes.")
@readable_errors
def command(config: Path | None, host: str, port: int | None, workers: int) -> None:
    """
    Run the issuer until it is told to stop; it refuses to start on anything that is wrong.

    SIGHUP makes it read the configuration again: all of it is taken, or, when something is wrong, nothing of it.
    """
    settings = read_settings(config)
    if workers > 1:
        fail("more than one worker needs a shared store (redis_url); without one, run a single worker")
    _check_host(host)
    configure_logging(settings.log_level, json=settings.log_format == "json")
    try:
        with served_alone(settings.data_dir):
            reloader = Reloader(settings, partial(load_settings, config, os.environ))
            _serve(settings, reloader, host, _port(settings.origin) if port is None else port)
    except AlreadyServed as error:
        fail(str(error))


def _serve(settings: Settings, reloader: Reloader, host: str, port: int) -> None:
    app = create_app(build_service(settings), reloader=reloader)
    signal.signal(signal.SIGHUP, lambda *_: reloader.request())
    # When it has shut down, uvicorn raises the signal again; this handler, which it knows from Ctrl-C, makes that exit with 0.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        ws="none",
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
        limit_concurrency=_MAX_CONNECTIONS,
        backlog=_BACKLOG,
    )


def _check_host(host: str) -> None:
    try:
        octets = host.encode("idna")
    except UnicodeError:
        octets = b""
    # An empty one, such as a variable that is not set, would mean every address of the machine.
    if not octets:
        fail("--host is the name or address to bind, such as 127.0.0.1, or 0.0.0.0 for every one")


def _port(origin: str) -> int:
    # Only on loopback is the origin http, and then nothing stands between it and the service.
    parts = urlsplit(origin)
    return (parts.port or 80) if parts.scheme == "http" else _PORT
