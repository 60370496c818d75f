"""
The URLs that anything is asked of here or pointed to: spelt so that no two readers take them for two places.
"""

import ipaddress
import re
from typing import Final

__all__ = ["check_url", "is_loopback"]

_URL: Final = re.compile(
    r"""(?P<scheme>https?)://
        (?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])
        (?::(?P<port>[0-9]{1,5}))?
        (?P<path>(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*)""",
    re.VERBOSE,
)


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
    if match["port"] is not None and not 1 <= int(match["port"]) <= 65535:
        raise ValueError("a port is a number from 1 to 65535")
    if match["scheme"] == "http" and not is_loopback(match["host"]):
        raise ValueError("http is for loopback hosts only")


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
