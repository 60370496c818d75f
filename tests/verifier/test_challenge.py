"""
Challenges are read by the whole grammar of RFC 9110 section 11 and written so that nothing can break out of them.
"""

import copy
import pickle
from dataclasses import FrozenInstanceError
from itertools import repeat

import pytest

from verifier.challenge import (
    MAX_CHALLENGES,
    MAX_LINE_LENGTH,
    MAX_LINES,
    MAX_PARAMS,
    Challenge,
    format_challenge,
    parse_challenges,
)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Bearer", [Challenge("Bearer")]),
        ("Bearer a=b", [Challenge("Bearer", {"a": "b"})]),
        ('Bearer a="b"', [Challenge("Bearer", {"a": "b"})]),
        ('Bearer a=""', [Challenge("Bearer", {"a": ""})]),
        ('bearer ERROR = "x" , Acr_Values\t=\ty', [Challenge("bearer", {"error": "x", "acr_values": "y"})]),
        ("Bearer   a=b", [Challenge("Bearer", {"a": "b"})]),
        ("Bearer\ta=b", [Challenge("Bearer", {"a": "b"})]),
        ("Negotiate abc==", [Challenge("Negotiate", {}, "abc==")]),
        ("Negotiate a-._~+/9=", [Challenge("Negotiate", {}, "a-._~+/9=")]),
        ("Negotiate abc=", [Challenge("Negotiate", {}, "abc=")]),
        ("Negotiate abc", [Challenge("Negotiate", {}, "abc")]),
        ("Negotiate, NTLM", [Challenge("Negotiate"), Challenge("NTLM")]),
        (
            'Negotiate abc==, Basic realm="x", Bearer error=y',
            [
                Challenge("Negotiate", {}, "abc=="),
                Challenge("Basic", {"realm": "x"}),
                Challenge("Bearer", {"error": "y"}),
            ],
        ),
        ("Bearer a=b, Bearer c=d", [Challenge("Bearer", {"a": "b"}), Challenge("Bearer", {"c": "d"})]),
        (",, Bearer a=x,,b=y,", [Challenge("Bearer", {"a": "x", "b": "y"})]),
        ("Bearer ,a=x", [Challenge("Bearer", {"a": "x"})]),
        ("Bearer, a=x", [Challenge("Bearer", {"a": "x"})]),
        ('Bearer a="x, Basic b=\\"c\\"", d=e', [Challenge("Bearer", {"a": 'x, Basic b="c"', "d": "e"})]),
        ('Bearer a="\\h\\i\\\\", b=c', [Challenge("Bearer", {"a": "hi\\", "b": "c"})]),
        (
            'Bearer a="x\ty", b="M\xfcller", c="\\\xe9"',
            [Challenge("Bearer", {"a": "x\ty", "b": "M\xfcller", "c": "\xe9"})],
        ),
        ("Bearer !#$%&'*+-.^_`|~=!#$%&'*+-.^_`|~", [Challenge("Bearer", {"!#$%&'*+-.^_`|~": "!#$%&'*+-.^_`|~"})]),
        ("", []),
        (" \t ", []),
        (" , ,, ", []),
        (None, []),
        ([], []),
        (b'Bearer a="\xe9"', [Challenge("Bearer", {"a": "\xe9"})]),
        (["Basic realm=x", b"Bearer a=b"], [Challenge("Basic", {"realm": "x"}), Challenge("Bearer", {"a": "b"})]),
    ],
)
def test_well_formed_challenges_are_read(header, expected):
    """
    Every form of the grammar is read: schemes alone, with token68, with parameters, several in a line and in lines.
    """
    assert parse_challenges(header) == tuple(expected)


@pytest.mark.parametrize(
    "defect",
    [
        "Bearer a=b, a=c",
        "Bearer a=b, A=c",
        "Bearer a=b, c=urn:d",
        "Bearer a=b, c=d e",
        "Bearer a=b, c=",
        "Bearer a=b, =c",
        "Bearer a=b, c==d",
        'Bearer a=b, c="d"e',
        'Bearer a=b, c="d\x00"',
        'Bearer a=b, c="d\x7f"',
        'Bearer a=b, c="d\r\n"',
        "Bearer a=b,\r\n c=d",
        "Bearer a=b, @",
        "Bearer a=b, \u212a=c",
        'Bearer a=b, "c, Basic d=e"',
        "Bearer abc==, a=b",
        "Bearer a= , b=c",
        "Bearer abc== def",
        "Bearer Basic a=b",
        "Bearer a b=c",
        "Bearer a=b c=d",
        "Bearer @",
        "Bearer a/b=c",
        "Bearer a@b, c=d, e=f",
        "B@rer a=b",
    ],
)
def test_a_defect_costs_the_challenge_it_stands_in(defect):
    """
    A challenge with a defect is dropped as a whole; those before and after it in the same line are kept.
    """
    expected = (Challenge("First", {"x": "1"}), Challenge("Last", {"y": "2"}))

    # The first challenge ends with a scheme of its own, for a defect without a scheme belongs to the challenge before it.
    found = parse_challenges(f"First x=1, Middle, {defect}, Last y=2")

    assert tuple(challenge for challenge in found if challenge.scheme != "Middle") == expected


@pytest.mark.parametrize("header", ["a=b", 'a="b", c=d', "=", "@", "abc==", "a/b", '"Bearer a=b"', "=Bearer a=b"])
def test_what_stands_before_the_first_scheme_belongs_to_nothing(header):
    """
    A line that does not begin with a scheme is ignored up to its first scheme.
    """
    assert parse_challenges(header) == ()
    assert parse_challenges(header + ", Bearer x=y") == (Challenge("Bearer", {"x": "y"}),)


@pytest.mark.parametrize(
    "open_string", ['Bearer a="b', 'Bearer a="b\\', 'Bearer a="b\\"', 'Bearer a=b, "', 'Bearer "a']
)
def test_a_string_that_never_ends_takes_the_rest_of_its_line_only(open_string):
    """
    What follows an opening quote that is never closed is lost, but nothing before it and no other line.
    """
    header = ["Basic realm=x, " + open_string + ", Digest a=b", "Bearer c=d"]

    assert parse_challenges(header) == (Challenge("Basic", {"realm": "x"}), Challenge("Bearer", {"c": "d"}))


def test_a_line_never_continues_the_challenge_of_another():
    """
    A bare parameter at the start of a line is not added to what the line before it said.
    """
    assert parse_challenges(["Bearer a=b", "c=d"]) == (Challenge("Bearer", {"a": "b"}),)


@pytest.mark.parametrize(
    "header", [5, 1.5, True, object(), [None, 5, ["Bearer a=b"]], {"a": 1}.items(), bytearray(b"Bearer a=b")]
)
def test_what_is_no_header_gives_no_challenge(header):
    """
    Values that are neither text nor octets nor lists of them are read as no header.
    """
    assert parse_challenges(header) == ()


def test_a_line_is_bounded():
    """
    A line of the longest length is read, a longer one is ignored while its neighbours are read.
    """
    longest = 'Bearer a="' + "b" * (MAX_LINE_LENGTH - 11) + '"'

    assert len(parse_challenges(longest)) == 1
    assert parse_challenges(longest + " ") == ()
    assert parse_challenges((longest + " ").encode()) == ()
    assert parse_challenges([longest + " ", "Bearer a=b"]) == (Challenge("Bearer", {"a": "b"}),)


def test_a_header_of_100_kilobytes_is_ignored():
    """
    An endless list of empty members is not read at all.
    """
    assert parse_challenges("," * 100_000 + "Bearer a=b") == ()


def test_the_number_of_lines_is_bounded():
    """
    Lines beyond the bound are ignored, whatever they are, so that an endless source ends.
    """
    lines = ["Bearer"] * (MAX_LINES + 1)

    assert len(parse_challenges(lines)) == MAX_LINES
    assert len(parse_challenges(repeat("Bearer"))) == MAX_LINES
    assert parse_challenges(repeat(5)) == ()


def test_the_number_of_challenges_is_bounded():
    """
    The first challenges up to the bound are returned.
    """
    assert len(parse_challenges("Bearer," * MAX_CHALLENGES)) == MAX_CHALLENGES
    assert len(parse_challenges("Bearer," * (MAX_CHALLENGES + 1))) == MAX_CHALLENGES


def test_the_number_of_parameters_is_bounded():
    """
    A challenge with more parameters than the bound is dropped.
    """
    most = [f"p{number}=x" for number in range(MAX_PARAMS)]

    assert len(parse_challenges("Bearer " + ",".join(most))) == 1
    assert parse_challenges("Bearer " + ",".join([*most, "one=more"]) + ", Basic a=b") == (
        Challenge("Basic", {"a": "b"}),
    )


def test_a_challenge_cannot_be_changed():
    """
    Neither its fields nor its parameters can be set, also not through the mapping it was built from.
    """
    params = {"a": "b"}
    challenge = Challenge("Bearer", params)

    params["a"] = "c"

    assert challenge.params == {"a": "b"}
    with pytest.raises(TypeError):
        challenge.params["a"] = "c"
    with pytest.raises(FrozenInstanceError):
        challenge.scheme = "Basic"


def test_a_challenge_is_a_value():
    """
    Equal challenges are equal in sets, as copies and after pickling; a token68, which may be secret, stays out of the repr.
    """
    challenge = Challenge("Bearer", {"a": "b"}, "c2VjcmV0")

    assert {challenge, Challenge("Bearer", {"a": "b"}, "c2VjcmV0")} == {challenge}
    assert copy.deepcopy(challenge) == challenge
    assert pickle.loads(pickle.dumps(challenge)) == challenge
    assert "c2VjcmV0" not in repr(challenge)


def test_the_case_of_a_scheme_does_not_matter():
    """
    A scheme is compared without case, as written otherwise.
    """
    assert Challenge("bEARER").is_of_scheme("Bearer")
    assert not Challenge("Bearerx").is_of_scheme("Bearer")


def test_writing_orders_parameters():
    """
    The realm comes first, then the error and its description, then the others as they were given; all are quoted.
    """
    params = {"max_age": "5", "error_description": "d", "acr_values": "low high", "error": "e", "realm": "r"}

    header = format_challenge("Bearer", params)

    assert header == 'Bearer realm="r", error="e", error_description="d", max_age="5", acr_values="low high"'


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('a"b', "a?b"),
        ("a\\b", "a?b"),
        ("a\r\nSet-Cookie: b", "a??Set-Cookie: b"),
        ("a\tb\x00\x7f", "a?b??"),
        ("M\xfcller \u20ac", "M?ller ?"),
        ('", Basic realm="x', "?, Basic realm=?x"),
        ("", ""),
    ],
)
def test_writing_replaces_what_is_not_permitted(value, written):
    """
    No value can end its string, its header or its line.
    """
    assert format_challenge("Bearer", {"realm": value}) == f'Bearer realm="{written}"'


@pytest.mark.parametrize(
    ("scheme", "params"),
    [
        ("Bearer", {}),
        ("", {"a": "b"}),
        ("Bea rer", {"a": "b"}),
        ("Bearer\n", {"a": "b"}),
        ("B\xe9arer", {"a": "b"}),
        ("Bearer", {"": "b"}),
        ("Bearer", {"a b": "b"}),
        ("Bearer", {"a\r\n": "b"}),
        ("Bearer", {"a": "b", "A": "c"}),
    ],
)
def test_writing_refuses_what_is_no_challenge(scheme, params):
    """
    A scheme or name that is no token, a name that occurs twice and no parameter at all are mistakes of the programmer.
    """
    with pytest.raises(ValueError):
        format_challenge(scheme, params)


@pytest.mark.parametrize(
    ("scheme", "params"), [("Bearer", {"a": 5}), ("Bearer", {5: "a"}), ("Bearer", {"a": b"b"}), (None, {"a": "b"})]
)
def test_writing_refuses_what_is_no_text(scheme, params):
    """
    Numbers and octets are not written as if they were text.
    """
    with pytest.raises(TypeError):
        format_challenge(scheme, params)
