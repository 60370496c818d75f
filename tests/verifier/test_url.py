"""
What is appended to a base URL stays below it, for whoever reads it.
"""

from urllib.parse import urlsplit

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.url import check_path, check_url

BASE = "https://api.shop.example/v1"


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/orders", "/orders/", "/orders/A-1001/cancel", "/o/~a!$&'()*+,;=:@", "/o/A%2F1001", "/o/%C3%A9"),
        *("/o?", "/o?a=b&c=%20", "/o?next=/a//b/../c", "/o?q=?", "/o/...", "/o/.well-known/x", "/o/a..b", "/o;v=1"),
        *("/o/100%25", "/o/%2541", "/o/a%3Bb", "/" + "a" * 7999),
    ],
)
def test_a_path_below(path):
    """
    Segments of any characters, percent-encoded where RFC 3986 wants it, with or without a query.
    """
    check_path(path)

    url = httpx2.URL(BASE + path)
    assert (url.host, str(url).startswith(BASE)) == ("api.shop.example", True)


@pytest.mark.parametrize(
    "path",
    [
        *("", "orders", "?a=b", "#x", "@evil.example", ".evil.example", ":8443/x", "//evil.example", "/\\evil.example"),
        *("/..", "/../admin", "/o/..", "/o/./x", "/.", "/o//x", "//", "/o/..?x", "/..;/admin", "/o/.;x/y"),
        *("/%2e%2e/admin", "/%2E%2e", "/.%2e", "/o/..%2fadmin", "/o%2f..%2fadmin", "/o/..%5cadmin", "/%5c..%5c"),
        *("/%252e%252e/x", "/%252e%252e%252fx", "/%25252e%25252e/x", "/%2525252e", "/o%3b/..%3bx"),
        *("/o#x", "/o?x#y", "/o x", "/o\t", "/o\r\nHost: x", "/o\n", "/é", "/o\x00", "/o%", "/o%2", "/o%zz", "/o?%"),
        *(
            '/o"',
            "/o<",
            "/o`",
            "/o{",
            "/o|",
            "/o^",
            "/o[",
            "https://evil.example/",
            "/" + "a" * 8000,
            "/%" + "25" * 2000,
        ),
        *("/o/%00", "/o/..%00", "/o%0d%0aHost:x", "/o/%250a", "/o/%7f"),
    ],
)
def test_a_path_that_could_lead_elsewhere(path):
    """
    Whatever anybody on the way could take for a step up, another host, a fragment or a second line is refused.
    """
    with pytest.raises(ValueError):
        check_path(path)


@pytest.mark.parametrize("host", ["[::1::]", "[:::]", "[1]", "[fe80::1.2]", "[]", "[::1"])
def test_brackets_hold_an_address(host):
    """
    What looks like an IPv6 address and is none is found where it is configured, not where it is asked.
    """
    check_url("https://[2001:db8::ffff:1.2.3.4]:8443/v1")

    with pytest.raises(ValueError):
        check_url(f"https://{host}")


@pytest.mark.parametrize("path", [None, 5, b"/orders"])
def test_a_path_is_text(path):
    """
    Something of another type is a TypeError.
    """
    with pytest.raises(TypeError):
        check_path(path)


@given(st.text(alphabet="/.%25efcEFC;\\?#@:a", max_size=24).map("/".__add__))
def test_what_is_taken_stays_below(path):
    """
    Of any mixture of dots, slashes and escapes, what is accepted has the same origin and begins with the base for every reader.
    """
    try:
        check_path(path)
    except ValueError:
        return

    for url in (urlsplit(BASE + path).geturl(), str(httpx2.URL(BASE + path)), str(httpx2.URL(BASE).join(BASE + path))):
        assert url.startswith(f"{BASE}/")
