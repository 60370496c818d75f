"""
Where a Redis is: a URL for one server, for servers behind Sentinel, or for a cluster, taken apart strictly; no I/O.

    redis://[user:password@]host[:port][/database]
    redis+sentinel://[user:password@]host[:port],host[:port].../service[/database]
    redis+cluster://[user:password@]host[:port],host[:port]...

`rediss` in the place of `redis` means TLS. Options stand in the query, each at most once: `protocol` (2 or 3), `ssl_ca_certs`,
`ssl_certfile`, `ssl_keyfile` (paths), `sentinel_username`, `sentinel_password`. User, password and option values are
percent-encoded where a character means something in a URL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote

__all__ = ["RedisAddress", "RedisKind", "parse_redis_url"]

RedisKind = Literal["standalone", "sentinel", "cluster"]

_SCHEMES: Final[Mapping[str, RedisKind]] = {"": "standalone", "+sentinel": "sentinel", "+cluster": "cluster"}
_PORTS: Final[Mapping[RedisKind, int]] = {"standalone": 6379, "sentinel": 26379, "cluster": 6379}
_URL: Final = re.compile(
    r"redis(?P<tls>s?)(?P<kind>\+sentinel|\+cluster|)://"
    r"(?:(?P<user>[^/?#@]*)@)?(?P<hosts>[^/?#@]+)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?"
)
_HOST: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_SERVICE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_DATABASE: Final = re.compile(r"[0-9]{1,5}")
_OPTIONS: Final = frozenset(
    {"protocol", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "sentinel_username", "sentinel_password"}
)
_MAX_LENGTH: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisAddress:
    """
    A Redis and how to get in.

    Attributes:
        kind: one server, servers behind Sentinel, or a cluster.
        hosts: hosts and ports, of the Sentinels where there are some.
        service: the name that the Sentinels know the servers by.
        database: the number of the database.
        is_tls: whether connections are encrypted, those to Sentinels too.
        username, password: credentials of the servers.
        options: what the query said.
    """

    kind: RedisKind
    hosts: tuple[tuple[str, int], ...]
    service: str | None = None
    database: int = 0
    is_tls: bool = False
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def where(self) -> str:
        """
        The address without anything secret, for messages.
        """
        scheme = f"redis{'s' if self.is_tls else ''}{'' if self.kind == 'standalone' else f'+{self.kind}'}"
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        service = "" if self.service is None else f"/{self.service}"
        database = f"/{self.database}" if self.database else ""
        return f"{scheme}://{hosts}{service}{database}"


def parse_redis_url(text: str) -> RedisAddress:
    """
    Take a URL apart.

    Raises:
        ValueError: when it is not one of a Redis; the message repeats nothing of it, since it may hold a password.
    """
    parts = _URL.fullmatch(text)
    if parts is None or len(text) > _MAX_LENGTH or not text.isprintable():
        raise ValueError(
            "must be a URL such as redis://host:6379, redis+sentinel://host,host/service or redis+cluster://host"
        )
    kind = _SCHEMES[parts["kind"]]
    service, database = _place(kind, parts["path"].removeprefix("/"))
    username, password = _credentials(parts["user"])
    hosts = tuple(_host(each, _PORTS[kind]) for each in parts["hosts"].split(","))
    if kind == "standalone" and len(hosts) != 1:
        raise ValueError("must name one host; several are for redis+sentinel:// and redis+cluster://")
    return RedisAddress(
        kind=kind,
        hosts=hosts,
        service=service,
        database=database,
        is_tls=bool(parts["tls"]),
        username=username,
        password=password,
        options=_options(parts["query"] or ""),
    )


def _host(text: str, port: int) -> tuple[str, int]:
    match = _HOST.fullmatch(text)
    if match is None or not 1 <= int(match["port"] or port) <= 65_535:
        raise ValueError("must name hosts, each with a port from 1 to 65535 if any")
    return match["host"].strip("[]"), int(match["port"] or port)


def _place(kind: RedisKind, path: str) -> tuple[str | None, int]:
    service, slash, database = path.partition("/") if kind == "sentinel" else ("", "", path)
    if kind == "sentinel" and not _SERVICE.fullmatch(service):
        raise ValueError("must name the service that the Sentinels watch, as in redis+sentinel://host,host/service")
    if kind == "cluster" and database not in {"", "0"}:
        raise ValueError("must not name a database: a cluster has only the first one")
    if (database or slash) and not _DATABASE.fullmatch(database):
        raise ValueError("must name the database by its number, if at all")
    return service or None, int(database or 0)


def _credentials(text: str | None) -> tuple[str | None, str | None]:
    username, colon, password = (text or "").partition(":")
    if text is not None and not (colon and password):
        raise ValueError("must have a password behind the user and a colon, if it has a user")
    return unquote(username) or None, unquote(password) or None


def _options(query: str) -> Mapping[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    options = dict(pairs)
    if len(options) != len(pairs) or not options.keys() <= _OPTIONS or not all(options.values()):
        raise ValueError(f"must have none but these options, each once and with a value: {', '.join(sorted(_OPTIONS))}")
    if options.get("protocol", "2") not in {"2", "3"}:
        raise ValueError("must say 2 or 3 as protocol")
    return options
