"""
A call is checked and copied when it is described; what is minted and sent for it is the same in every attempt.
"""

import json
import pickle

import pytest

from verifier import StepUp
from verifier.api_call import APICall, MintedToken

READ = {"audience": "https://api.test", "conversation": "c-1", "method": "GET", "path": "/orders"}
WRITE = READ | {
    "method": "POST",
    "action": "cancel_order",
    "arguments": {"b": [1, {"c": None}], "a": 1.0},
    "idempotency_key": "idk_5pQ0m3m1Yt7uVxk2Rr9aBw",
}
TOKEN = MintedToken("a.b.c")


@pytest.mark.parametrize(
    "arguments", [WRITE["arguments"], '{"a":1,"b":[1,{"c":null}]}', b' {"b":[1,{"c":null}],"a":1.0} ']
)
def test_arguments_come_in_three_forms(arguments):
    """
    A mapping and raw JSON give the same frozen arguments, sent in one canonical form.
    """
    call = APICall(**(WRITE | {"arguments": arguments}))

    assert call.arguments == call.token_request(None).arguments == {"a": 1, "b": (1, {"c": None})}
    assert call.request("https://api.test/v1", TOKEN).content == b'{"a":1,"b":[1,{"c":null}]}'


def test_everything_that_is_sent():
    """
    The base URL, the token, the key as it is, and the caller's fields, which may say what the content is.
    """
    headers = {"Content-Type": "application/vnd.shop+json", "X-Trace": "a b"}
    call = APICall(**WRITE, headers=headers, scope="a b", confirmed_at=5)
    headers["X-Trace"] = "changed"

    sent = call.request("https://api.test/v1", TOKEN)

    assert (sent.method, sent.url) == ("POST", "https://api.test/v1/orders")
    assert sent.headers == {
        "authorization": "Bearer a.b.c",
        "idempotency-key": WRITE["idempotency_key"],
        "content-type": "application/vnd.shop+json",
        "x-trace": "a b",
    }


def test_the_same_is_minted_but_for_the_demand():
    """
    Two requests of one call differ in what the API demanded alone.
    """
    call = APICall(**WRITE, scope="a", confirmed_at=5)

    first, second = call.token_request(None), call.token_request(StepUp("high", None))

    assert (first.demand, second.demand) == (None, StepUp("high", None))
    assert (second.scope, second.confirmed_at, second.idempotency_key) == ("a", 5, WRITE["idempotency_key"])
    assert first.arguments is second.arguments


def test_a_call_goes_to_another_process():
    """
    A call survives pickling and asks for the same.
    """
    call = APICall(**WRITE, headers={"X-A": "b"})

    arrived = pickle.loads(pickle.dumps(call))

    assert arrived.token_request(None) == call.token_request(None)
    assert arrived.request("https://x.test", TOKEN) == call.request("https://x.test", TOKEN)


def test_a_selector_joins_the_arguments():
    """
    What the issuer filled in is sent in its place in the canonical form.
    """
    minted = MintedToken("a.b.c", {"account": "shop:1"})

    sent = APICall(**WRITE).request("https://x.test", minted)

    assert json.loads(sent.content) == {"account": "shop:1", "a": 1, "b": [1, {"c": None}]}
    assert "shop:1" not in repr(minted)
    with pytest.raises(TypeError):
        minted.selector["account"] = "shop:2"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        *(({"method": method}, ValueError) for method in ("get", "", "TRACE", "CONNECT", "GET /x", "OPTIONS")),
        *(({"conversation": text}, ValueError) for text in ("", "c" * 129, "é", "a\nb")),
        ({"conversation": 5}, TypeError),
        *(({"path": path}, ValueError) for path in ("orders", "/../x", "//x")),
        *(({"scope": scope}, ValueError) for scope in ("", "a  b", 5)),
        *(({"present_level": level}, ValueError) for level in ("gold", "", 1)),
        *(({"content": content}, TypeError) for content in ("text", bytearray(b"x"), 5)),
        ({"action": None}, ValueError),
        ({"arguments": None}, ValueError),
        ({"idempotency_key": None}, ValueError),
        ({"action": None, "arguments": None}, ValueError),
        ({"action": None, "arguments": None, "idempotency_key": None, "confirmed_at": 5}, ValueError),
        ({"action": "no name"}, ValueError),
        ({"idempotency_key": "short"}, ValueError),
        *(({"arguments": arguments}, ValueError) for arguments in ([], "[]", b"{", {"a": 2**60}, {"a": {1, 2}})),
        *(({"confirmed_at": at}, ValueError) for at in (-1, 1.5, True, "5", 2**60)),
        *(
            ({"headers": {name: "x"}}, ValueError)
            for name in ("Authorization", "idempotency-KEY", "Host", "Content-Length", "Transfer-Encoding", "TE")
        ),
        *(({"headers": {name: "x"}}, ValueError) for name in ("", "a b", "a:b", "é", "a\r\nb", "Accept-Encoding")),
        *(({"headers": {"X-A": value}}, ValueError) for value in ("", " x", "x ", "a\r\nb", "a\nb", "é", "a\x00b")),
        ({"headers": {"X-A": "1", "x-a": "2"}}, ValueError),
        ({"headers": {"X-A": 5}}, TypeError),
        ({"headers": {b"X-A": "x"}}, TypeError),
    ],
    ids=str,
)
def test_a_call_that_makes_no_sense_is_not_described(changed, error):
    """
    A value out of its range, fields that are not the caller's and half a write are told to the programmer.
    """
    assert APICall(**WRITE)
    with pytest.raises(error):
        APICall(**(WRITE | changed))


@pytest.mark.parametrize("selector", [None, 5, ["a"]])
def test_a_selector_is_a_mapping(selector):
    """
    Anything else is told to the author of the callback.
    """
    with pytest.raises((TypeError, ValueError)):
        MintedToken("a.b.c", selector)
