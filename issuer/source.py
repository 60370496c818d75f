"""
Who is asking, as far as the network tells: the address of the peer, or the one that trusted proxies say they were asked from.

It is used for limits, the log and the audit trail, and decides nothing else: neither issuer nor URL nor scheme follows from what
a proxy says.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

__all__ = ["UNKNOWN", "Sources", "network_of"]

UNKNOWN: Final = "unknown"
"""The source of requests that come from no address, such as those through a Unix socket."""

_MAX_HOPS: Final = 16
_PORT: Final = r"(?::[0-9]{1,5})?"
# As proxies write it: with or without the port that they were asked from, which IPv6 needs brackets for.
_HOP: Final = re.compile(rf"\[([0-9A-Fa-f:.]{{2,45}})\]{_PORT}|([0-9.]{{7,15}}){_PORT}|([0-9A-Fa-f:.]{{2,45}})")

_Address = IPv4Address | IPv6Address


class Sources:
    """
    Tells where requests come from. Without trusted proxies that is the peer, whatever the request says.
    """

    __slots__ = ("_trusted",)

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        """
        Believe the proxies in these networks.

        Raises:
            ValueError: when one is no network.
        """
        self._trusted = tuple(ip_network(each) for each in trusted)

    def find(self, peer: str | None, forwarded_for: Sequence[str]) -> str:
        """
        Return the address that a request comes from, in canonical form, or `UNKNOWN`.

        *forwarded_for* has every `X-Forwarded-For` value in order. Each proxy appends who asked it, so they are read from the
        end: the first address that is no trusted proxy's is the source. Where something else than an address stands, or after
        sixteen of them, the last one that was read is.
        """
        address = _address(peer or "")
        if address is None:
            return UNKNOWN
        if self._trusts(address):
            for hop in reversed(",".join(forwarded_for).rsplit(",", _MAX_HOPS - 1)):
                before = _hop(hop)
                if before is None:
                    break
                address = before
                if not self._trusts(address):
                    break
        return str(address)

    def _trusts(self, address: _Address) -> bool:
        return any(address in network for network in self._trusted)


def network_of(source: str) -> str:
    """
    Return what one party is likely to hold of the addresses around a source: for IPv6 the first 64 bits, else the source itself.
    """
    return ip_address(source).exploded[:19] if ":" in source else source


def _hop(text: str) -> _Address | None:
    found = _HOP.fullmatch(text.strip(" \t"))
    return None if found is None else _address(found[1] or found[2] or found[3])


# Most requests come from few addresses, and taking one apart costs as much as all the rest of this.
@lru_cache(maxsize=1024)
def _address(text: str) -> _Address | None:
    try:
        # The name of an interface says where a link-local address was met, and no more.
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    # A socket for both families has IPv4 peers under mapped addresses (RFC 4291 section 2.5.5.2).
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address
