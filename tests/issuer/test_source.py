"""
Who is asking: the peer, or whom the proxies that are trusted name, and nobody whom anybody else names.
"""

import time
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from issuer.source import UNKNOWN, Sources, network_of

PROXIES = Sources(["10.0.0.0/8", "fd00::/8", "192.0.2.7"])
PEER = "203.0.113.9"


@pytest.mark.parametrize(
    ("peer", "source"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:DB8:0:0::9", "2001:db8::9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("fe80::9%eth0", "fe80::9"),
        ("", UNKNOWN),
        (None, UNKNOWN),
        ("testclient", UNKNOWN),
        ("/run/issuer.sock", UNKNOWN),
        ("203.0.113.9\n", UNKNOWN),
    ],
)
def test_without_a_proxy_the_peer_asks(peer, source):
    """
    Its address is written in one way; what is no address, such as a Unix socket, is unknown.
    """
    assert Sources().find(peer, []) == source
    assert PROXIES.find(peer, []) == source


@pytest.mark.parametrize("sources", [Sources(), PROXIES], ids=["nobody is trusted", "others are trusted"])
@pytest.mark.parametrize("peer", [PEER, "::ffff:203.0.113.9", "2001:db8::9", "", None])
def test_nobody_else_can_say_who_asks(sources, peer):
    """
    te-tls: the header of a peer that is no trusted proxy has no effect, nor has one that came with no peer at all.
    """
    for lines in (["198.51.100.1"], ["10.0.0.1"], ["198.51.100.1, 10.0.0.1"], ["x"], [""]):
        assert sources.find(peer, lines) == sources.find(peer, [])


@pytest.mark.parametrize(
    ("lines", "source"),
    [
        (["198.51.100.1"], "198.51.100.1"),
        (["198.51.100.1, 198.51.100.2"], "198.51.100.2"),
        (["198.51.100.1", "198.51.100.2"], "198.51.100.2"),
        (["198.51.100.1,10.1.1.1"], "198.51.100.1"),
        (["198.51.100.1 ,\t192.0.2.7", " fd00::1 , 10.1.1.1"], "198.51.100.1"),
        (["203.0.113.1, 198.51.100.1", "10.1.1.1"], "198.51.100.1"),
        (["10.1.1.1, 10.1.1.2"], "10.1.1.1"),
        (["2001:DB8::1"], "2001:db8::1"),
        (["::ffff:198.51.100.1"], "198.51.100.1"),
        (["198.51.100.1, ::ffff:10.1.1.1"], "198.51.100.1"),
        (["198.51.100.1:4711"], "198.51.100.1"),
        (["[2001:db8::1]"], "2001:db8::1"),
        (["[2001:db8::1]:4711"], "2001:db8::1"),
    ],
)
def test_the_last_address_that_is_no_proxy_asks(lines, source):
    """
    Every proxy appends who asked it; what stands further left may have been written by whoever asked.
    """
    for peer in ("10.0.0.1", "::ffff:10.0.0.1", "fd00::7"):
        assert PROXIES.find(peer, lines) == source


@pytest.mark.parametrize(
    "malformed",
    [
        *(
            "",
            "unknown",
            "_hidden",
            "x",
            "1",
            "300.0.0.1",
            "198.51.100.01",
            "198.51.100.1/32",
            "198.51.100.1:",
            "198.51.100.1:x",
        ),
        *(
            "fe80::1%eth0",
            "[2001:db8::1",
            "2001:db8::1]",
            "[]",
            "::g",
            '"198.51.100.1"',
            "for=198.51.100.1",
            "198.51.100.1 x",
        ),
        *("١٩٨.51.100.1", "198.51.100.1\x00", "\xff", "198.51.100.1:123456", "1" * 30_000),
    ],
)
def test_what_is_no_address_ends_the_way(malformed):
    """
    What stands left of it cannot be trusted to have been appended: the last address that was read counts.
    """
    assert PROXIES.find("10.0.0.1", [f"198.51.100.1, {malformed}"]) == "10.0.0.1"
    assert PROXIES.find("10.0.0.1", [f"198.51.100.1, {malformed}, 10.1.1.1"]) == "10.1.1.1"
    assert PROXIES.find("10.0.0.1", [f"{malformed}, 198.51.100.1, 10.1.1.1"]) == "198.51.100.1"


def test_the_way_is_not_followed_for_ever():
    """
    Sixteen hops are read, however many the header has; it takes next to no time.
    """
    proxies = ["10.1.1.1"] * 15

    started = time.perf_counter()
    for _ in range(100):
        assert PROXIES.find("10.0.0.1", [", ".join(["198.51.100.1", *proxies])]) == "198.51.100.1"
        assert PROXIES.find("10.0.0.1", [", ".join(["198.51.100.1", "10.1.1.2", *proxies])]) == "10.1.1.1"
        assert PROXIES.find("10.0.0.1", ["10.1.1.1," * 3000] * 1) == "10.0.0.1"
        assert PROXIES.find("10.0.0.1", ["10.1.1.1," * 3000 + "10.1.1.3"]) == "10.1.1.1"
    assert time.perf_counter() - started < 5


@given(
    st.sampled_from(["10.0.0.1", PEER, "x"]), st.lists(st.text(max_size=40) | st.ip_addresses().map(str), max_size=8)
)
def test_whatever_is_sent_the_source_is_an_address(peer, lines):
    """
    No text of a request gets through, into the log or elsewhere, that is not the canonical form of an address.
    """
    source = PROXIES.find(peer, lines)

    assert source == UNKNOWN or str(ip_address(source)) == source
    assert network_of(source)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8:0:0:ffff::9", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::1", "::2", True),
        ("198.51.100.1", "198.51.100.2", False),
        ("198.51.100.1", UNKNOWN, False),
    ],
)
def test_an_address_stands_for_its_network(one, other, is_same):
    """
    Whoever has one IPv6 address has the 64 bits behind it; an IPv4 address stands for itself.
    """
    assert (network_of(one) == network_of(other)) is is_same


def test_what_is_trusted_is_a_network():
    """
    Anything else is refused when it is built.
    """
    with pytest.raises(ValueError):
        Sources(["localhost"])
