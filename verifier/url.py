"""
The URLs that anything is asked of here or pointed to: spelt so that no two readers take them for two places.
"""

import ipaddress
import re
from typing import Final
from urllib.parse import unquote

__all__ = ["check_path", "check_url", "is_loopback"]

_URL: Final = re.compile(
    r"""(?P<scheme>https?)://
        (?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])
        (?::(?P<port>[0-9]{1,5}))?
        (?P<path>(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*)""",
    re.VERBOSE,
)
_PATH: Final = re.compile(
    r"""(?P<path>(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)+)
        (?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?""",
    re.VERBOSE,
)
_MAX_PATH_LENGTH: Final = 8000
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
# The last one only shows that nothing is left to decode. An identifier that looks encoded is decoded twice; what is encoded more
# often than that wants to get past somebody.
_MAX_DECODINGS: Final = 3


def check_url(url: str) -> None:
    """
    Make sure that *url* is one that is asked, or pointed to.

    Raises:
        ValueError: when it is not absolute, not https (http on loopback hosts), or spelt so that two readers could read it
            differently: upper-case host, user, query, fragment, empty or dot segments, anything but ASCII.
        TypeError: when it is no text.
    """
    match = _URL.fullmatch(url)
    if match is None or not {".", ".."}.isdisjoint(match["path"].split("/")):
        raise ValueError(
            "a URL is https, with a host in lower case, and without user, query, fragment or slash at the end"
        )
    if match["host"].startswith("[") and not _is_ipv6(match["host"][1:-1]):
        raise ValueError("between brackets stands an IPv6 address")
    if match["port"] is not None and not 1 <= int(match["port"]) <= 65535:
        raise ValueError("a port is a number from 1 to 65535")
    if match["scheme"] == "http" and not is_loopback(match["host"]):
        raise ValueError("http is for loopback hosts only")


def check_path(path: str) -> None:
    """
    Make sure that *path*, with or without a query, stays below whatever URL it is appended to.

    Refused is what an HTTP client, a proxy or a server could take for a way up or elsewhere, after decoding it several times
    and dropping path parameters too: a path that does not begin with one slash, empty and dot segments, a backslash, a
    fragment, control characters, anything but ASCII.

    Raises:
        ValueError: for such a path, one with a percent sign that encodes nothing, or one longer than 8000 characters.
        TypeError: when it is no text.
    """
    match = _PATH.fullmatch(path) if len(path) <= _MAX_PATH_LENGTH else None
    if match is None:
        raise ValueError(
            "a path begins with a slash and consists of at most 8000 characters of RFC 3986, percent-encoded"
        )
    decoded = _decoded(match["path"])
    segments = [segment.partition(";")[0] for segment in re.split(r"[/\\]", decoded)]
    if not {".", ".."}.isdisjoint(segments) or "//" in match["path"] or _CONTROL.search(decoded):
        raise ValueError("a path has no empty or dot segments and no control characters, encoded or not")


def _is_ipv6(address: str) -> bool:
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True


def _decoded(path: str) -> str:
    for _ in range(_MAX_DECODINGS):
        before, path = path, unquote(path, "latin-1")
        if path == before:
            return path
    raise ValueError("a path is percent-encoded once")


def is_loopback(host: str) -> bool:
    """
    Tell whether *host*, in lower case, an IPv6 address in brackets, is this machine and nothing else, so that http will do.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
