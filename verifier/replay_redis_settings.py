"""
Where Redis is and how a connection to it is made: from a URL, or from a client of the caller's whose settings are taken over.

    redis://[user:password@]host[:port][/db]                          one server; rediss:// over TLS, unix:// through a socket
    redis+sentinel://[user:password@]host[:port],.../service[/db]     what Sentinels name as the primary of a service
    redis+cluster://[user:password@]host[:port],...                   a cluster, found through any of its nodes

`rediss+sentinel` and `rediss+cluster` go over TLS. Query arguments are those of redis-py's URLs; `sentinel_username` and
`sentinel_password` are what the Sentinels ask for. Retries, timeouts, decoding and protocol are the store's own, whatever the
client or the URL says.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

import redis
import redis.asyncio
import redis.asyncio.connection
import redis.asyncio.sentinel
import redis.connection
import redis.sentinel

__all__ = ["ASYNCHRONOUS", "BLOCKING", "Flavour", "Settings", "settings_from_client", "settings_from_url"]

_SENTINEL_PORT: Final = 26379
_PORT: Final = 6379
# How a store asks is the store's own; how a client decodes, retries and pools has no part in it.
_NOT_TAKEN: Final = frozenset(
    {
        *("retry", "retry_on_timeout", "retry_on_error", "socket_timeout", "socket_connect_timeout", "timeout"),
        *("health_check_interval", "decode_responses", "encoding", "encoding_errors", "protocol", "legacy_responses"),
        *("parser_class", "command_packer", "event_dispatcher", "himport_registry", "max_connections"),
    }
)
# What redis-py 8 tells its connections about announced maintenance.
_NOT_TAKEN_PREFIXES: Final = ("maint_", "maintenance_", "orig_", "oss_")


class Flavour(NamedTuple):
    """
    The classes of redis-py for one of its two faces.
    """

    client: type
    cluster: type
    sentinel_pool: type
    connection: type
    tls_connection: type
    parse_url: Callable[[str], Mapping[str, Any]]


BLOCKING: Final = Flavour(
    redis.Redis,
    redis.RedisCluster,
    redis.sentinel.SentinelConnectionPool,
    redis.Connection,
    redis.SSLConnection,
    redis.connection.parse_url,
)
ASYNCHRONOUS: Final = Flavour(
    redis.asyncio.Redis,
    redis.asyncio.RedisCluster,
    redis.asyncio.sentinel.SentinelConnectionPool,
    redis.asyncio.Connection,
    redis.asyncio.SSLConnection,
    redis.asyncio.connection.parse_url,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    How connections are made.

    *options* build a `connection_class`; *seeds* are what the Sentinels need instead of them, or the nodes a cluster is found
    through on top of them. They hold passwords and never stand in a text.
    """

    kind: Literal["standalone", "sentinel", "cluster"]
    connection_class: type
    options: Mapping[str, Any] = field(repr=False)
    seed_class: type
    seeds: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    service: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        for made, options in ((self.connection_class, self.options), *((self.seed_class, seed) for seed in self.seeds)):
            try:
                made(**options)
            except Exception as error:  # noqa: BLE001 -- whatever redis-py objects to is a mistake in the settings
                raise ValueError(f"redis-py builds no connection from these settings: {type(error).__name__}") from None


def settings_from_url(url: str, flavour: Flavour) -> Settings:
    """
    Read a URL of one of the forms above.

    Raises:
        ValueError: for another form; the text holds nothing of the URL.
    """
    if not isinstance(url, str):
        raise TypeError("the URL is a str")
    transport, plus, kind = url.partition("://")[0].partition("+")
    try:
        if not plus and transport in ("redis", "rediss", "unix"):
            return _standalone(flavour.parse_url(url), flavour)
        if transport in ("redis", "rediss") and kind in ("sentinel", "cluster"):
            return _several(urlsplit(url), transport, kind, flavour)
    except ValueError:
        raise ValueError(
            "a part of the URL of Redis cannot be used; it is like redis://user:password@host:6379/0, "
            "redis+sentinel://host,host/service or redis+cluster://host,host"
        ) from None
    raise ValueError("a URL of Redis begins with redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://")


def settings_from_client(client: object, flavour: Flavour) -> Settings:
    """
    Take over how a client of redis-py connects; the client itself is neither kept nor used.

    Raises:
        TypeError: for anything but a client of this face: `Redis`, with a pool of its own or a Sentinel's, or `RedisCluster`.
        ValueError: for a client that asks replicas of a Sentinel's service.
    """
    source: Any = client
    if isinstance(client, flavour.cluster):
        nodes = source.nodes_manager
        options = dict(nodes.connection_kwargs)
        tls = options.get("ssl") or issubclass(options.get("connection_class", object), flavour.tls_connection)
        made = flavour.tls_connection if tls else flavour.connection
        seeds = tuple({"host": node.host, "port": node.port} for node in nodes.startup_nodes.values())
        # The cluster client's own greeting only asks for the right to read from replicas.
        taken = _taken(made, options | {"redis_connect_func": None})
        return Settings(kind="cluster", connection_class=made, options=taken, seed_class=made, seeds=seeds)
    if not isinstance(client, flavour.client):
        raise TypeError(f"a {flavour.client.__module__}.Redis or RedisCluster is needed")
    pool = source.connection_pool
    if not isinstance(pool, flavour.sentinel_pool):
        made = pool.connection_class
        taken = _taken(made, pool.connection_kwargs)
        return Settings(kind="standalone", connection_class=made, options=taken, seed_class=made)
    return _of_sentinel(pool, flavour)


def _of_sentinel(pool: Any, flavour: Flavour) -> Settings:
    if not pool.is_master:
        raise ValueError("replay decisions never come from a replica: use master_for, not slave_for")
    made = flavour.tls_connection if issubclass(pool.connection_class, flavour.tls_connection) else flavour.connection
    pools = [sentinel.connection_pool for sentinel in pool.sentinel_manager.sentinels]
    return Settings(
        kind="sentinel",
        connection_class=made,
        options=_taken(made, pool.connection_kwargs),
        seed_class=pools[0].connection_class,
        seeds=tuple(_taken(each.connection_class, each.connection_kwargs) for each in pools),
        service=pool.service_name,
    )


def _standalone(parsed: Mapping[str, Any], flavour: Flavour) -> Settings:
    made, options = _parsed(parsed, flavour)
    return Settings(kind="standalone", connection_class=made, options=options, seed_class=made)


def _parsed(parsed: Mapping[str, Any], flavour: Flavour) -> tuple[type, dict[str, Any]]:
    made = parsed.get("connection_class", flavour.connection)
    return made, {name: value for name, value in parsed.items() if name != "connection_class" and _is_taken(name)}


def _several(url: SplitResult, transport: str, kind: str, flavour: Flavour) -> Settings:
    user, at, hosts = url.netloc.rpartition("@")
    service, _, database = url.path.strip("/").partition("/")
    if bool(service) != (kind == "sentinel"):
        raise ValueError("Sentinels are asked for a service, and a cluster has none")
    parsed = flavour.parse_url(f"{transport}://{user}{at}host/{database}?{url.query}")
    made, options = _parsed({name: value for name, value in parsed.items() if name != "host"}, flavour)
    credentials = {name: options.pop(f"sentinel_{name}", None) for name in ("username", "password")}
    places = tuple(_places(hosts, _SENTINEL_PORT if kind == "sentinel" else _PORT))
    if kind == "cluster":
        return Settings(kind="cluster", connection_class=made, options=options, seed_class=made, seeds=places)
    tls = {name: value for name, value in options.items() if name.startswith("ssl_")}
    return Settings(
        kind="sentinel",
        connection_class=made,
        options=options,
        seed_class=made,
        seeds=tuple(tls | credentials | place for place in places),
        service=unquote(service),
    )


def _places(hosts: str, port: int) -> Iterator[dict[str, Any]]:
    for host in hosts.split(","):
        place = urlsplit(f"//{host}")
        if not place.hostname:
            raise ValueError("a host has no name")
        yield {"host": place.hostname, "port": place.port or port}


def _taken(made: type, options: Mapping[str, Any]) -> dict[str, Any]:
    # A client's pool knows more options than its connections do: what a connection's classes name is theirs.
    known = {name for each in made.__mro__ for name in inspect.signature(each.__init__).parameters}  # type: ignore[misc]
    return {name: value for name, value in options.items() if name in known and _is_taken(name) and value is not None}


def _is_taken(name: str) -> bool:
    return name not in _NOT_TAKEN and not name.startswith(_NOT_TAKEN_PREFIXES)
