"""
How a client of the Redis library is made from an address; the other half of the door that `redis_connection` is.

Retries are off, and answers stay octets. RESP 2 does everything that is asked for, without the handshakes that come with RESP 3.
"""

from functools import cache
from typing import Any, Final

from redis.asyncio import Redis, RedisCluster, Sentinel
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from verifier.replay_redis_wires import abrupt

from .redis_url import RedisAddress

__all__ = ["build_clients"]


# An operation has a deadline of its own. These only keep one server that hangs from being waited for instead of the next.
_SOCKET_S: Final = 5.0
_NODE_S: Final = 1.0
_SENTINEL_S: Final = 0.1


def build_clients(address: RedisAddress, max_connections: int) -> "tuple[Redis | RedisCluster, tuple[Redis, ...]]":
    """
    Build the client, and those of the Sentinels, which have to be ended beside it.
    """
    client, others = _clients(address, max_connections)
    for each in (client, *others):
        _derive_connections(each, is_tls=address.is_tls)
    return client, others


def _derive_connections(client: "Redis | RedisCluster", *, is_tls: bool) -> None:
    """
    Let the connections of a client end when they are told to; over TLS none waits then for a server that is silent.
    """
    made: Any
    if not isinstance(client, RedisCluster):
        made = client.connection_pool.connection_class
        client.connection_pool.connection_class = _derived(made, is_tls=is_tls)
        return
    made = client.connection_kwargs["connection_class"]
    # Nodes that are found later are made from these options, the first ones were already.
    client.connection_kwargs["connection_class"] = _derived(made, is_tls=is_tls)
    for node in client.nodes_manager.startup_nodes.values():
        node.connection_class = _derived(made, is_tls=is_tls)


def _derived(connection_class: Any, *, is_tls: bool) -> Any:
    return _cancellable(abrupt(connection_class) if is_tls else connection_class)


@cache
def _cancellable(connection_class: Any) -> Any:
    """
    Derive connections that lose no cancellation, so that a deadline strikes wherever it finds them.

    Before Python 3.12 `asyncio.wait_for` loses one, and the library sends with it where a connection has a limit.
    """

    class Cancellable(connection_class):  # type: ignore[misc]
        socket_timeout: float | None

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            # The library has one limit for both ways; what is sent has that of the operation alone.
            self._answer_s, self.socket_timeout = self.socket_timeout, None

        async def read_response(self, *arguments: Any, **options: Any) -> Any:
            self.socket_timeout = self._answer_s
            try:
                return await super().read_response(*arguments, **options)
            finally:
                self.socket_timeout = None

    return Cancellable


def _clients(address: RedisAddress, max_connections: int) -> "tuple[Redis | RedisCluster, tuple[Redis, ...]]":
    files = {name: value for name, value in address.options.items() if name.startswith("ssl_")}
    common: dict[str, Any] = {"retry": Retry(NoBackoff(), 0), "ssl": address.is_tls, **files}
    wait_s = _NODE_S if address.kind == "cluster" else _SOCKET_S
    options: dict[str, Any] = {
        **common,
        "socket_timeout": wait_s,
        "socket_connect_timeout": wait_s,
        "username": address.username,
        "password": address.password,
        "protocol": int(address.options.get("protocol", "2")),
        "decode_responses": False,
        "max_connections": max_connections,
    }
    host, port = address.hosts[0]
    if address.kind == "standalone":
        return Redis(host=host, port=port, db=address.database, **options), ()
    if address.kind == "cluster":
        nodes = [ClusterNode(host, port) for host, port in address.hosts]
        return RedisCluster(startup_nodes=nodes, require_full_coverage=False, **options), ()
    names = {name.removeprefix("sentinel_"): value for name, value in address.options.items() if "sentinel_" in name}
    asked = {**common, **names, "socket_timeout": _SENTINEL_S, "socket_connect_timeout": _SENTINEL_S}
    sentinel = Sentinel(list(address.hosts), sentinel_kwargs=asked)  # type: ignore[no-untyped-call]
    client: Redis = sentinel.master_for(str(address.service), db=address.database, **options)
    return client, tuple(sentinel.sentinels)
