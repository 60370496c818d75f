"""
JSON that two parsers could read differently is refused, in bounded time, and with one exception type only.
"""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifier.strict_json import MAX_DEPTH, StrictJSONError, loads, loads_object

OUR_WORDS = {
    "not UTF-8",
    "not one JSON value",
    "not a JSON object",
    "a member name occurs twice",
    "a number is out of range",
    "NaN and Infinity are not JSON",
    "nested too deeply",
    "a lone surrogate is not text",
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"{}", {}),
        (b" \t\r\n[1] \n", [1]),
        (b"null", None),
        ('"é"', "é"),
        (b'"\xc3\xa9"', "é"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        ('"\U0001f600"', "\U0001f600"),
        (b'"\\\\ud800"', "\\ud800"),
        (b"-0", 0),
        (b"1e308", 1e308),
        (b"5e-325", 0.0),
        (b'{"a":1,"A":2}', {"a": 1, "A": 2}),
        (b'{"\\u0061":1}', {"a": 1}),
        ("9" * 4000, int("9" * 4000)),
    ],
)
def test_one_json_value_is_read(text, value):
    """
    Text and UTF-8 octets give the value, whatever legal spelling it has.
    """
    assert loads(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"{}x",
        b"{}{}",
        b"[1,]",
        b"{'a':1}",
        b"/**/{}",
        b"01",
        b"+1",
        b"1.",
        b'"\t"',
        b'"\\x"',
        b"\xef\xbb\xbf{}",
        "\ufeff{}",
        "{}".encode("utf-16"),
        "{}".encode("utf-32-le"),
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xc0\xaf"',
        b"NaN",
        b"Infinity",
        b"[-Infinity]",
        b"1e400",
        b"-1e400",
        b'{"x":1.5e999}',
        "9" * 5000,
        b'{"a":1,"a":1}',
        b'{"a":1,"\\u0061":1}',
        b'[{"x":{"a":1,"b":2,"a":3}}]',
        b'"\\ud800"',
        b'["\\udc00\\ud800"]',
        b'{"\\udfff":1}',
        b'{"a":{"b":["\\ud83d"]}}',
        '["\ud800"]',
        '{"\udc00":1}',
        '"\\ud83d\ude00"',
    ],
)
def test_what_is_not_exactly_one_strict_value_is_refused(text):
    """
    Other encodings, trailing text, repeated names, numbers that are none and lone surrogates are refused.
    """
    with pytest.raises(StrictJSONError) as refusal:
        loads(text)

    assert str(refusal.value) in OUR_WORDS
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_is_bounded_exactly(opening, closing):
    """
    `MAX_DEPTH` levels are read, one more is refused.
    """
    deepest = opening * MAX_DEPTH + "1" + closing * MAX_DEPTH

    assert loads(deepest) is not None
    with pytest.raises(StrictJSONError):
        loads(opening + deepest + closing)


@pytest.mark.parametrize(
    "value", [[[]] * 200, {f"[{number}": "{[" * 50 for number in range(50)}, '["' * 100, ['\\"[[[', "[" * 99]]
)
def test_brackets_in_breadth_or_in_strings_are_no_depth(value):
    """
    Many brackets side by side, and brackets within strings, do not count as nesting.
    """
    assert loads(json.dumps(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "[" * 41 + '"' + '\\"' * 100_000,
        "[" * 200_000,
        '{"a":' * 50_000,
        "[" * 41 + '"\\' * 100_000,
        "[" * 41 + '"' * 200_001,
        '["' * 100_000,
    ],
    ids=["escaped_quotes", "arrays", "objects", "backslashes", "quotes", "strings"],
)
def test_hostile_text_takes_linear_time(text):
    """
    Text made to be read slowly is refused in no time: a string that never ends is looked through once, not from each quote.
    """
    began = time.process_time()

    with pytest.raises(StrictJSONError):
        loads(text)

    assert time.process_time() - began < 2


@pytest.mark.parametrize("text", [b"[]", b"null", b'"{}"', b"1", b"true"])
def test_an_object_is_demanded(text):
    """
    `loads_object` takes an object and nothing else that is JSON.
    """
    assert loads_object(b'{"a":[]}') == {"a": []}
    with pytest.raises(StrictJSONError):
        loads_object(text)


@given(st.binary() | st.text(st.characters(codec=None, exclude_categories=())))
def test_any_octets_and_any_text_raise_one_type(text):
    """
    Nothing but `StrictJSONError` leaves the reader, in words that hold none of the text.
    """
    words = ""

    try:
        loads(text)
    except StrictJSONError as error:
        words = str(error)

    assert words in OUR_WORDS | {""}


@given(st.text(alphabet='[]{}":,\\u0dea1.-+NIft \n', max_size=60))
def test_any_text_of_json_characters_agrees_with_the_lenient_reader(text):
    """
    What the strict reader accepts, the standard library reads as the same value.
    """
    try:
        value = loads(text)
    except StrictJSONError:
        return

    assert value == json.loads(text)


@given(json_values)
def test_what_was_written_is_read_back(value):
    """
    Every JSON value survives the way through text, escaped or not.
    """
    assert loads(json.dumps(value)) == value
    assert loads(json.dumps(value, ensure_ascii=False).encode()) == value
