"""
A compact token is taken apart strictly: one spelling for each octet string, bounded, no critical parameters (RFC 7515).
"""

import base64
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.compact import MAX_TOKEN_LENGTH, MalformedToken, b64url_decode, b64url_encode, parse_compact

ALPHABET = string.ascii_letters + string.digits + "-_"
HEADER = {"typ": "at+jwt", "alg": "ES256", "kid": "k1"}
SIGNATURE = b64url_encode(bytes(64))


def token_of(header: object, payload: object = None) -> str:
    """
    Write an unsigned token with a header and a payload of any form.
    """
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, payload or {})]
    return ".".join([*map(b64url_encode, parts), SIGNATURE])


@given(st.binary(min_size=1))
def test_octets_survive_base64url(data):
    """
    Encoding writes what the standard library writes less padding, and decoding gives the octets back.
    """
    text = b64url_encode(data)

    assert text == base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    assert b64url_decode(text.encode()) == data


@given(st.text(ALPHABET, max_size=12) | st.text(ALPHABET + "+/= \n.!\0", max_size=12))
def test_octets_have_exactly_one_spelling(text):
    """
    Whatever text is accepted is the one that encoding its octets gives.
    """
    try:
        data = b64url_decode(text.encode())
    except MalformedToken:
        return

    assert b64url_encode(data) == text


@given(st.binary(max_size=12))
def test_decoding_raises_one_type(text):
    """
    Nothing but `MalformedToken` leaves the decoder, whatever the octets are.
    """
    try:
        data = b64url_decode(text)
    except MalformedToken:
        return

    assert b64url_encode(data).encode() == text


@pytest.mark.parametrize("text", ["", "A", "AB", "AAB", "AA==", "AA=", "A A", "AA\n", "+A", "/w", "AAAA=", "AA.A", "é"])
def test_other_spellings_are_refused(text):
    """
    Nothing, spare bits, padding, white space, the standard alphabet and foreign characters are refused.
    """
    with pytest.raises(MalformedToken):
        b64url_decode(text.encode())


def test_a_token_is_taken_apart():
    """
    The parts come out as they were written, and the signing input is the text as sent.
    """
    text = token_of(HEADER, {"sub": "x"})

    token = parse_compact(text)

    assert (token.typ, token.alg, token.kid) == ("at+jwt", "ES256", "k1")
    assert token.claims == {"sub": "x"}
    assert token.signing_input == text.rpartition(".")[0].encode()
    assert token.signature == bytes(64)


@pytest.mark.parametrize(
    "token",
    [
        None,
        5,
        b"a.b.c",
        ["a.b.c"],
        {"token": "a.b.c"},
        "",
        ".",
        "..",
        "e30",
        "e30.e30",
        "e30.e30.AAAA.AAAA",
        "e30.e30.AAAA.AAAA.AAAA",
        ".e30.AAAA",
        "e30..AAAA",
        "e30.e30.",
        " e30.e30.AAAA",
        "e30.e30.AAAA\n",
        '{"payload":"e30"}',
        "é.e30.AAAA",
        "\ud800.e30.AAAA",
        "\uff21\uff21.e30.AAAA",
    ],
)
def test_what_is_no_compact_token_is_refused(token):
    """
    Other types, part counts, empty parts, white space and text beyond ASCII are refused (RFC 7515 section 7.1).
    """
    with pytest.raises(MalformedToken):
        parse_compact(token, kid_required=False)


def test_a_token_is_read_as_plain_text():
    """
    A subclass of str does not say for itself how long it is, what it holds and which octets it stands for.
    """

    class Lying(str):
        __slots__ = ()

        def __len__(self):
            return 1

        def isascii(self):
            raise RuntimeError

        def encode(self, *_):
            return b"e30.e30.AAAA"

    text = token_of(HEADER, {"sub": "x"})

    assert parse_compact(Lying(text)) == parse_compact(text)
    with pytest.raises(MalformedToken):
        parse_compact(Lying("a" * 100_000), kid_required=False)


def test_the_length_is_bounded_exactly():
    """
    A token of `MAX_TOKEN_LENGTH` characters is read, one of a character more is not.
    """
    prefixes = (token_of(HEADER, {"x": "y" * length}).removesuffix(SIGNATURE) for length in range(4))
    # Both lengths have to be possible ones for base64url.
    prefix, room = next((text, room) for text in prefixes if (room := MAX_TOKEN_LENGTH - len(text)) % 4 == 2)

    assert len(parse_compact(prefix + "A" * room).signature) == room * 3 // 4
    with pytest.raises(MalformedToken):
        parse_compact(prefix + "A" * (room + 1))


def test_a_reader_of_longer_tokens_says_so():
    """
    What others sign may be longer than this project's own tokens; a bound of the caller's takes the place of the usual one.
    """
    text = token_of(HEADER, {"x": "y" * MAX_TOKEN_LENGTH})

    assert parse_compact(text, longest=len(text)).kid == "k1"
    with pytest.raises(MalformedToken):
        parse_compact(text, longest=len(text) - 1)
    with pytest.raises(MalformedToken):
        parse_compact(text)


def test_the_header_is_bounded():
    """
    A header that encodes to 1024 characters is read, a longer one is not.
    """
    filler = 768 - len(json.dumps(HEADER | {"x": ""}))

    assert parse_compact(token_of(HEADER | {"x": "y" * filler})).kid == "k1"
    with pytest.raises(MalformedToken):
        parse_compact(token_of(HEADER | {"x": "y" * (filler + 1)}))


@pytest.mark.parametrize(
    "extra",
    [
        {"crit": ["exp"]},
        {"crit": []},
        {"crit": ["b64"], "b64": False},
        {"crit": "x"},
        {"crit": None},
        {"crit": ["kid", "kid"]},
        {"b64": True},
        {"b64": False},
    ],
)
def test_critical_parameters_are_refused(extra):
    """
    Any `crit`, an empty or malformed one too, and any `b64` are refused (RFC 7515 section 4.1.11, RFC 7797).
    """
    with pytest.raises(MalformedToken):
        parse_compact(token_of(HEADER | extra))


@pytest.mark.parametrize(
    "kid", [None, 1, True, ["k1"], {"k1": 1}, "", "k" * 129, "k\n", "k\0", "k\x7f", "ké", "k\u200b"]
)
def test_a_kid_of_another_form_is_refused(kid):
    """
    A kid is 1 to 128 printable ASCII characters, also where none is required (D19).
    """
    for kid_required in (True, False):
        with pytest.raises(MalformedToken):
            parse_compact(token_of(HEADER | {"kid": kid}), kid_required=kid_required)


@pytest.mark.parametrize("kid", ["k", " ", "k 1", "../../dev/null", "~" * 128])
def test_a_kid_is_taken_as_it_is(kid):
    """
    Every printable ASCII kid of up to 128 characters is handed on unchanged.
    """
    assert parse_compact(token_of(HEADER | {"kid": kid})).kid == kid


def test_a_kid_is_required_unless_told_otherwise():
    """
    A token without a kid is refused, and has none where the caller does without.
    """
    text = token_of({"typ": "JWT", "alg": "ES256"})

    assert parse_compact(text, kid_required=False).kid is None
    with pytest.raises(MalformedToken):
        parse_compact(text)


@pytest.mark.parametrize(
    "part", [b"[]", b"null", b'"x"', b"1", b"{}x", b"{}{}", b'{"a":1,"a":2}', b"\xef\xbb\xbf{}", b'{"a":NaN}', b"\xff"]
)
def test_header_and_payload_are_each_one_strict_object(part):
    """
    What is not one strict JSON object is refused in either place (RFC 7515 section 5.2).
    """
    with pytest.raises(MalformedToken):
        parse_compact(token_of(part), kid_required=False)
    with pytest.raises(MalformedToken):
        parse_compact(token_of(HEADER, part))


def test_a_remembered_header_changes_nothing():
    """
    A header that was seen before is judged as it was the first time: taken, refused, or refused for its missing kid.
    """
    bare, bad = token_of({"alg": "ES256"}), token_of(HEADER | {"crit": []})

    for _ in range(3):
        assert parse_compact(token_of(HEADER)).kid == "k1"
        assert parse_compact(bare, kid_required=False).kid is None
        for text in (bare, bad):
            with pytest.raises(MalformedToken):
                parse_compact(text)


def test_no_part_of_a_token_shows():
    """
    Neither the representation of what was taken apart nor the text of a refusal holds any of it.
    """
    token = parse_compact(token_of({"typ": "secret", "alg": "secret", "kid": "secret"}, {"sub": "secret"}))

    with pytest.raises(MalformedToken) as refusal:
        parse_compact("secret.secret.secret")

    assert repr(token) == "UnverifiedToken()"
    assert "secret" not in f"{refusal.value!r}{refusal.value}"
