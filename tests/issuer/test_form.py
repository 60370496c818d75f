"""
The form of a token request: a body has one meaning or none.
"""

from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from issuer.errors import TokenRefused
from issuer.form import MAX_BODY_OCTETS, Form, form_decode, parse_form

FORM = "application/x-www-form-urlencoded"

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)


def refusal(content_type: str | None, body: bytes) -> tuple[int, str, str]:
    with pytest.raises(TokenRefused) as caught:
        parse_form(content_type, body)
    return caught.value.status, caught.value.error, caught.value.reason


@pytest.mark.parametrize(
    "content_type",
    [
        FORM,
        FORM.upper(),
        f" {FORM} ",
        f"{FORM};",
        f"{FORM}; charset=utf-8",
        f"{FORM};charset=UTF-8",
        f'{FORM} ; charset = "utf-8"',
    ],
)
def test_the_media_type_is_the_form_in_utf_8(content_type: str):
    """
    The media type and its charset compare without case; UTF-8 may be named or not.
    """
    form = parse_form(content_type, b"a=1")

    assert form.get("a") == "1"


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        ";",
        "text/plain",
        "application/json",
        "multipart/form-data; boundary=x",
        f"{FORM}; charset=utf-16",
        f"{FORM}; charset=iso-8859-1",
        f"{FORM}; charset=utf-8; charset=utf-16",
        f"{FORM}; boundary=x",
        f"{FORM}, application/json",
        f"x{FORM}",
    ],
)
def test_another_media_type_or_charset_is_refused(content_type: str | None):
    """
    Nothing is guessed: what is not the form in UTF-8 is not read.
    """
    assert refusal(content_type, b"a=1") == (400, "invalid_request", "form:media_type")


@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        (b"", {}),
        (b"a=1&b=2", {"a": "1", "b": "2"}),
        (b"a=", {}),
        (b"a=1&b=", {"a": "1"}),
        (b"a==", {"a": "="}),
        (b"a=%3D%26+%2B", {"a": "=& +"}),
        (b"%61=%c3%a9%e2%82%ac", {"a": "é€"}),
        (b"a%20b=1", {"a b": "1"}),
        (b"a=%0d%0a", {"a": "\r\n"}),
        (b"a=" + b"x" * (MAX_BODY_OCTETS - 2), {"a": "x" * (MAX_BODY_OCTETS - 2)}),
        (b"&".join(b"p%d=1" % n for n in range(64)), {f"p{n}": "1" for n in range(64)}),
    ],
)
def test_a_body_is_decoded(body: bytes, parameters: dict[str, str]):
    """
    Names and values are decoded alike, and a parameter without a value counts as omitted.
    """
    assert dict(parse_form(FORM, body).parameters) == parameters


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"a=" + b"x" * (MAX_BODY_OCTETS - 1), "form:size"),
        (b"&".join(b"p%d=1" % n for n in range(65)), "form:count"),
        (b"&" * 60_000, "form:count"),
        (b"a", "form:syntax"),
        (b"&", "form:syntax"),
        (b"a=1&", "form:syntax"),
        (b"a=1&&b=2", "form:syntax"),
        (b"=1", "form:syntax"),
        (b"a=%", "form:encoding"),
        (b"a=%4", "form:encoding"),
        (b"a=%zz", "form:encoding"),
        (b"%zz=a", "form:encoding"),
        (b"a=%u0041", "form:encoding"),
        (b"a=%00", "form:encoding"),
        (b"a\x00=1", "form:encoding"),
        (b"a=%ff%fe", "form:encoding"),
        (b"a=%ed%a0%80", "form:encoding"),
        (b"a=%c0%80", "form:encoding"),
        (b"a=\xc3\xa9", "form:encoding"),
        (b"a=1&a=1", "form:repeated"),
        (b"a=1&%61=2", "form:repeated"),
        (b"a=&a=", "form:repeated"),
    ],
)
def test_a_body_that_could_be_read_in_two_ways_is_refused(body: bytes, reason: str):
    """
    Repetition, also after decoding, missing `=`, malformed percent-encoding, NUL and octets that are not UTF-8 have no meaning.
    """
    assert refusal(FORM, body) == (400, "invalid_request", reason)


@pytest.mark.parametrize("name", ["resource", "audience"])
@pytest.mark.parametrize("values", [("a", "a"), ("a", "b"), ("a", ""), ("", "")])
def test_a_repeated_target_is_noted(name: str, values: tuple[str, str]):
    """
    ri-single: that `resource` or `audience` was sent twice is kept, whatever its values, for where targets are read (D6).
    """
    form = parse_form(FORM, "&".join(f"{name}={value}" for value in values).encode())

    assert form.repeated == {name}
    assert parse_form(FORM, b"resource=a&audience=a").repeated == frozenset()


def test_a_semicolon_divides_nothing():
    """
    Only `&` stands between parameters.
    """
    assert dict(parse_form(FORM, b"a=1;b=2").parameters) == {"a": "1;b=2"}


def test_a_missing_parameter_is_named():
    """
    A parameter that is needed and not there, or empty, is refused by its name, which is ours and not the request's.
    """
    form = parse_form(FORM, b"a=1&b=")

    with pytest.raises(TokenRefused) as caught:
        form.require("b")

    assert (caught.value.error, caught.value.reason) == ("invalid_request", "missing:b")
    assert form.require("a") == "1"
    assert form.get("b") is None


def test_a_form_shows_none_of_its_values():
    """
    The representation of a form holds no parameter, because some of them are secrets.
    """
    assert "secret" not in repr(Form({"client_secret": "secret"}))


@given(st.dictionaries(TEXT.filter(bool), TEXT.filter(bool), max_size=8))
@example({"\u2028": "\U0001f600"})
def test_what_is_encoded_is_read_again(parameters: dict[str, str]):
    """
    Every text without NUL survives the form, in the spelling of Python's own encoder.
    """
    assert dict(parse_form(FORM, urlencode(parameters).encode()).parameters) == parameters


@given(TEXT, st.sampled_from([quote, quote_plus]))
def test_a_space_may_be_written_in_either_way(text: str, encode):
    """
    `+` and `%20` are the same space (RFC 6749 appendix B).
    """
    assert form_decode(encode(text, safe="").encode()) == text


@given(st.binary(max_size=60) | st.lists(st.sampled_from([b"a", b"=", b"&", b"%", b"4", b"\xff", b"+"])).map(b"".join))
def test_any_octets_are_a_form_or_refused(body: bytes):
    """
    No octets raise anything but the refusal that the endpoint answers with.
    """
    try:
        form = parse_form(FORM, body)
    except TokenRefused as refused:
        assert refused.error == "invalid_request"  # noqa: PT017 -- either outcome is right
    else:
        assert all(name and value for name, value in form.parameters.items())
