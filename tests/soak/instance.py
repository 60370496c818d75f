"""
One instance of the issuer, as a process of its own on a fast clock: the service, the server and the stores are the real ones.

    instance.py CONFIG DATA_DIR PORT CLOCK

The time of the store comes from the Redis, made as fast as the rest. After SIGUSR1 the process stops itself right behind the next
signature under a token: what a machine that is suspended does at the worst moment. SIGCONT lets it go on.
"""

import asyncio
import os
import signal
import sys
from email.utils import formatdate
from pathlib import Path

import uvicorn
from clock import FastClock
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from issuer.app import create_app
from issuer.bookkeeping import INTERVAL_S
from issuer.logs import configure_logging
from issuer.ring_stores import RedisStores
from issuer.rings import POLL_S
from issuer.service import open_service
from issuer.settings import Settings, load_settings
from keys import LocalSigner


class Trap:
    """
    Stops the process once it has signed a token, when it is told to.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._sign = LocalSigner.sign

    def lay(self) -> None:
        async def sign(signer: LocalSigner, octets: bytes) -> bytes:
            signature = await self._sign(signer, octets)
            # A signing input begins with the header; what a ring tests itself with does not.
            if self._is_set and octets.startswith(b"eyJ"):
                self._is_set = False
                os.kill(os.getpid(), signal.SIGSTOP)
            return signature

        LocalSigner.sign = sign
        signal.signal(signal.SIGUSR1, self._set)

    def _set(self, *_: object) -> None:
        self._is_set = True


def quicken_the_store(clock: FastClock) -> None:
    """
    Have the Redis tell the time as this clock does.
    """
    asked = RedisStores._now

    async def now(stores: RedisStores) -> float:
        return clock.of_store(await asked(stores))

    RedisStores._now = now


def dated(app: ASGIApp, clock: FastClock) -> ASGIApp:
    """
    Have every answer say when it was made by this clock; whoever reads a key set finds out its age from that.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def dating(message: Message) -> None:
            if message["type"] == "http.response.start":
                date = formatdate(clock.now(), usegmt=True).encode()
                message = {**message, "headers": [*message["headers"], (b"date", date)]}
            await send(message)

        await app(scope, receive, dating)

    return answer


async def serve(settings: Settings, port: int, clock: FastClock) -> None:
    service = await open_service(settings, now=clock.now, monotonic=clock.monotonic)
    app = create_app(service, poll_s=POLL_S / clock.factor, books_s=INTERVAL_S / clock.factor)
    options = {"log_config": None, "access_log": False, "ws": "none", "server_header": False, "date_header": False}
    config = uvicorn.Config(dated(app, clock), host="127.0.0.1", port=port, timeout_graceful_shutdown=2, **options)
    await uvicorn.Server(config).serve()


def main() -> None:
    config, data_dir, port, clock = sys.argv[1:]
    settings = load_settings(Path(config), {"CUSTOMER_CONTEXT_DATA_DIR": data_dir})
    configure_logging(settings.log_level, json=False)
    fast = FastClock.parse(clock)
    quicken_the_store(fast)
    Trap().lay()
    # When it has shut down, the server raises the signal again; it is no failure to have been told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    asyncio.run(serve(settings, int(port), fast))


if __name__ == "__main__":
    main()
