"""
How a connection finds its primary: at a fixed place, where the Sentinels say, or where a cluster serves a hash tag.

Whoever it finds is asked to write the epoch records that it lacks before anything else is asked of it.
"""

import logging
import secrets
from binascii import crc_hqx
from collections import deque
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import suppress
from string import ascii_letters, digits
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar

from redis.exceptions import AskError, ResponseError, TryAgainError

from .replay import ReplayStoreUnavailable
from .replay_redis_pool import Wire
from .replay_redis_script import judge_opening, opening, pack
from .replay_redis_settings import Settings

__all__ = ["CLUSTER_TAGS", "Connector", "check_opening", "name_refusal", "new_attempt"]

CLUSTER_TAGS: Final = tuple(ascii_letters + digits + "-_")
"""The hash tags in a cluster, one for each character a digest can begin with; each has an epoch record in its own slot."""

_LOG: Final = logging.getLogger("verifier.replay")
_SLOTS: Final = 16384

_W = TypeVar("_W", bound=Wire)
_W_co = TypeVar("_W_co", bound=Wire, covariant=True)


class _Dial(Protocol[_W_co]):
    def __call__(
        self, connection_class: type, options: Mapping[str, Any], label: str, until: float, /
    ) -> Awaitable[_W_co]: ...


class Connector(Generic[_W]):
    """
    Makes connections for the links of one process or one event loop.
    """

    def __init__(self, settings: Settings, dial: _Dial[_W]) -> None:
        self._settings = settings
        self._dial = dial
        self._seeds = deque(settings.seeds)

    async def connect(self, tag: str, routes: Mapping[str, str], until: float) -> tuple[_W, Mapping[str, str]]:
        """
        Connect to the primary that serves *tag*, and return what became known of the *routes* on the way.

        Raises:
            ReplayStoreUnavailable: when there is none, or it refuses. Other errors are those of the network.
        """
        label, options = "", self._settings.options
        if self._settings.kind == "sentinel":
            options = {**options, **await self._ask_sentinels(until)}
        elif self._settings.kind == "cluster":
            if tag not in routes:
                routes = await self._load_routes(until)
            if tag not in routes:
                raise ReplayStoreUnavailable("the cluster has no primary for a slot")
            label = routes[tag]
            options = {**options, **_place(label)}
        wire = await self._dial(self._settings.connection_class, options, label, until)
        try:
            tags = tuple(each for each, served in routes.items() if served == label) or (tag,)
            attempt = new_attempt()
            check_opening(await wire.exchange(opening(tags, attempt), len(tags), until), attempt)
        except BaseException:
            wire.close()
            raise
        return wire, routes

    def prefer(self, host: str, port: int) -> None:
        """
        Ask this node first where the tags of a cluster are served.
        """
        place = {"host": host, "port": port}
        with suppress(ValueError):
            self._seeds.remove(place)
        self._seeds.appendleft(place)

    async def _ask_sentinels(self, until: float) -> Mapping[str, Any]:
        asked = pack("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._settings.service)
        _, (host, port) = await self._ask_seeds(asked, {}, until)
        return {"host": host.decode(), "port": int(port)}

    async def _load_routes(self, until: float) -> Mapping[str, str]:
        seed, ranges = await self._ask_seeds(pack("CLUSTER", "SLOTS"), self._settings.options, until)
        routes = dict(_routes(ranges, seed["host"]))
        # A cluster may outlive every node it was first found through.
        found = [_place(label) for label in dict.fromkeys(routes.values())]
        self._seeds.extend(place for place in found if place not in self._seeds)
        return routes

    async def _ask_seeds(
        self, packed: bytes, options: Mapping[str, Any], until: float
    ) -> tuple[Mapping[str, Any], list[Any]]:
        # One that does not answer must not use up the time of the others; it goes to the end of the queue.
        share = (until - monotonic()) / (len(self._seeds) + 1)
        for _ in range(len(self._seeds)):
            seed, limit = self._seeds[0], monotonic() + share
            try:
                wire = await self._dial(self._settings.seed_class, {**options, **seed}, "", limit)
                try:
                    (reply,) = await wire.exchange(packed, 1, limit)
                finally:
                    wire.close()
            except Exception as error:  # noqa: BLE001 -- whatever is wrong with one, there are others
                reply = error
            if isinstance(reply, list) and reply:
                return seed, reply
            self._seeds.rotate(-1)
        raise ReplayStoreUnavailable("no Sentinel and no node of the cluster says who the primary is")


def new_attempt() -> bytes:
    """
    Draw the id of an attempt, 11 characters.
    """
    return secrets.token_urlsafe(8).encode()


def name_refusal(refusal: ResponseError) -> str:
    """
    Name a refusal of Redis in words that hold nothing of keys or arguments.
    """
    known, first = type(refusal).__name__, str(refusal).partition(" ")[0]
    return first if known == "ResponseError" and first.isalpha() and first.isupper() else known


def check_opening(replies: Sequence[Any], attempt: bytes) -> None:
    """
    Judge the answers of `opening`; an epoch that begins is a thing to know for who runs this.

    Raises:
        ReplayStoreUnavailable: when an epoch record can be neither read nor written.
    """
    begun = False
    for reply in replies:
        if isinstance(reply, AskError | TryAgainError):
            # A slot on its way to another primary, or there already; a claim that needs it is told so.
            continue
        if isinstance(reply, ResponseError):
            raise ReplayStoreUnavailable(f"Redis refused: {name_refusal(reply)}")
        begun |= judge_opening(reply, attempt)
    if begun:
        _LOG.warning("an epoch begins on the replay store: tokens issued before it are refused as replay_unavailable")


def _place(label: str) -> dict[str, Any]:
    host, _, port = label.rpartition(":")
    return {"host": host, "port": int(port)}


def _routes(ranges: Sequence[Any], asked: str) -> Iterator[tuple[str, str]]:
    slots = {tag: crc_hqx(tag.encode(), 0) % _SLOTS for tag in CLUSTER_TAGS}
    for first, last, (host, port, *_), *_ in ranges:
        # A node that does not know its own name leaves it out: it is the one that was asked.
        label = f"{host.decode() if host else asked}:{port}"
        yield from ((tag, label) for tag, slot in slots.items() if first <= slot <= last)
