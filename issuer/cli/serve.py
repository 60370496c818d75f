"""
`customer-context serve`: the issuer under uvicorn, in this process or in several.
"""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any, Final
from urllib.parse import urlsplit

import click
import uvicorn

from ..app import create_app
from ..logs import configure_logging, get_logger
from ..metrics import is_shared, own_metrics, shared_metrics
from ..redis_url import parse_redis_url
from ..reload import Reloader
from ..service import Service, build_service
from ..settings import Settings, load_settings
from ..single_process import AlreadyServed, served_alone
from .listening import CannotListen, addresses, bound, listen
from .options import config_option, fail, read_settings, readable_errors
from .workers import WorkerFailed, Workers

__all__ = ["command"]

_GRACE_S: Final = 5
# The edge of the application refuses in the right format long before; this is the wall behind it.
_MAX_CONNECTIONS: Final = 8192
_PORT: Final = 8000
_BEAT_S: Final = 1
_LOOK_S: Final = 2.0
# As long as this, nothing else is heard by the process that the others are started from.
_RECORD_S: Final = 5.0
_LOG: Final = get_logger("issuer")


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
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Number of processes; more than one needs redis_url.",
)
@readable_errors
def command(config: Path | None, host: str, port: int | None, workers: int) -> None:
    """
    Run the issuer until it is told to stop; it refuses to start on anything that is wrong.

    SIGHUP makes it read the configuration again: all of it is taken, or, when something is wrong, nothing of it.
    """
    settings = read_settings(config)
    if workers > 1 and not settings.redis_url.get_secret_value():
        fail("more than one worker needs redis_url: what was used and confirmed must be known to all of them")
    _check_host(host)
    configure_logging(settings.log_level, json=settings.log_format == "json")
    port = _port(settings.origin) if port is None else port
    try:
        with served_alone(settings.data_dir), bound(host, port) as sockets:
            serving = _Serving(settings, partial(load_settings, config, os.environ), sockets)
            listen(sockets)
            if workers == 1:
                serving.alone()
            else:
                serving.together(workers)
    except (AlreadyServed, CannotListen, WorkerFailed) as error:
        fail(str(error))


class _Serving:
    """
    A service that is opened, and what it listens at.
    """

    def __init__(self, settings: Settings, load: Callable[[], Settings], sockets: tuple[socket, ...]) -> None:
        self._settings = settings
        self._sockets = sockets
        self._service = build_service(settings)
        self._reloader = Reloader(settings, load)

    def alone(self) -> None:
        """
        Serve in this process.
        """
        self._serve(1, started=lambda: self._announce(1), is_over=lambda: False)

    def together(self, count: int) -> None:
        """
        Serve in processes of this one.
        """
        with contextlib.ExitStack() as stack:
            try:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="customer-context-")))
                work = partial(self._work, os.getpid(), folder)
                workers = Workers(count, work, reread=lambda: asyncio.run(self._reread()))
                metrics = shared_metrics(folder, count, lambda: workers.own)
            except OSError as error:
                fail(f"the workers need a folder for their metrics; TMPDIR may name one with room: {error.strerror}")
            self._service = replace(self._service, metrics=metrics)
            workers.run(lambda: self._announce(count))

    def _work(self, starter: int, folder: Path, number: int, started: Callable[[], object]) -> None:
        """
        Be one of the workers; one whose starter is gone ends, so that nobody serves without being looked after.
        """
        configure_logging(self._settings.log_level, json=self._settings.log_format == "json", worker=number)
        if not is_shared(folder, number):
            _LOG.error("metrics_not_shared", problem="the folder of the metrics is gone; start the service again")
            self._service = replace(self._service, metrics=own_metrics())
        asyncio.run(_look(self._service))
        self._serve(number, started, is_over=lambda: os.getppid() != starter)

    def _serve(self, number: int, started: Callable[[], object], is_over: Callable[[], bool]) -> None:
        has_started = False

        async def beat() -> None:
            nonlocal has_started
            if not has_started:
                has_started = True
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
                started()
            server.should_exit |= is_over()

        # What all of them take is put on record by the first.
        app = create_app(self._service, reloader=self._reloader, is_recorder=number == 1)
        server = uvicorn.Server(_server_config(app, beat))
        # Before there is anybody who waits for it, it would be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        signal.signal(signal.SIGHUP, lambda *_: self._reloader.request())
        # When it has shut down, uvicorn raises the signal again; this handler, known from Ctrl-C, makes that exit with 0.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(list(self._sockets))

    async def _reread(self) -> bool:
        """
        Read the configuration again, and tell whether the workers shall do so: only when it can be taken.

        A worker that takes the place of another one begins with what was taken last.
        """
        service = self._service
        try:
            renewed = await self._reloader.renewed(service)
        except Exception as error:  # noqa: BLE001 - the service goes on with what it has
            service.report_failure(error)
            renewed = None
        if renewed is not None:
            self._service = renewed
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RECORD_S):
                    for office in service.offices.values():
                        await office.books.enter()
        await service.aclose()
        return renewed is not None

    def _announce(self, count: int) -> None:
        url = self._settings.redis_url.get_secret_value()
        state = parse_redis_url(url).where if url else "memory"
        keys = "" if self._service.place is None else self._service.place.where
        address = addresses(self._sockets)
        if self._settings.log_format == "json":
            _LOG.info("serving", address=address, workers=count, state=state, keys=keys)
        else:
            processes = "1 process" if count == 1 else f"{count} processes"
            click.echo(f"serving at {', '.join(address)} in {processes}; state: {state}; keys: {keys}", err=True)


async def _look(service: Service) -> None:
    """
    Look at the rings, which may have changed since they were opened; a store that does not answer is waited for while serving.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LOOK_S):
            for ring in service.rings.values():
                await ring.poll()
    await service.aclose()


def _server_config(app: Any, beat: Callable[[], Awaitable[None]]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        ws="none",
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
        limit_concurrency=_MAX_CONNECTIONS,
        callback_notify=beat,
        timeout_notify=_BEAT_S,
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
