"""
Only I-JSON within bounds has a digest, and what was digested is what comes out (D2, RFC 8785, RFC 7493).
"""

import json
import time
from collections import OrderedDict, UserDict
from decimal import Decimal
from enum import IntEnum
from itertools import count
from types import MappingProxyType

import pytest
import rfc8785

from verifier.action import (
    MAX_ARGUMENTS_DEPTH,
    MAX_CANONICAL_OCTETS,
    MAX_VALUES,
    ArgumentsError,
    action_digest,
    bind_action,
    canonical_json,
    is_action_name,
    is_idempotency_key,
    read_idempotency_key,
)
from verifier.frozen import FrozenDict

KEY = "k" * 16
LARGEST = 2**53 - 1


class Number(IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()


def digest(arguments: object) -> str:
    """
    Compute the digest of arguments of one action.
    """
    return action_digest(action="a", arguments=arguments, idempotency_key=KEY)


def nested(depth: int) -> dict[str, object]:
    """
    Return arguments of *depth* levels.
    """
    value: object = 1
    for _ in range(depth - 1):
        value = [value]
    return {"x": value} if depth else {}


@pytest.mark.parametrize("body", [b"", "", b"{}", "{}", b" { } ", {}, FrozenDict(), MappingProxyType({})], ids=range(8))
def test_no_arguments_at_all(body):
    """
    An empty body is the empty object.
    """
    assert digest(body) == digest({})


@pytest.mark.parametrize(
    "arguments",
    [
        {"b": [1, {"c": None}], "a": "é"},
        OrderedDict(a="é", b=[1, {"c": None}]),
        {"a": "é", "b": (1.0, FrozenDict(c=None))},
        '{"a":"\\u00e9","b":[1,{"c":null}]}',
        b'{ "b" : [1e0, {"c":null}], "a" : "\xc3\xa9" }',
    ],
)
def test_spelling_does_not_matter(arguments):
    """
    A mapping of any kind and raw JSON of any spelling give one digest for one meaning.
    """
    assert digest(arguments) == digest({"a": "é", "b": [1, {"c": None}]})


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        [],
        "[]",
        b"null",
        '"x"',
        1,
        bytearray(b"{}"),
        [("a", 1)],
        b"{",
        b'{"a":1,"a":2}',
        b'{"x":{"a":1,"\\u0061":2}}',
        b'{"a":NaN}',
        b'{"a":1e400}',
        b'{"a":"\\ud800"}',
        b'{"a":"\xff"}',
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": float("-inf")},
        {"a": LARGEST + 1},
        {"a": -LARGEST - 1},
        {"a": 10**5000},
        b'{"a":9007199254740992}',
        {"a": 2.0**53},
        {"a": -(2.0**53)},
        {"a": 1e20},
        {"a": float(10**21 - 2**17)},
        {"a": "\ud800"},
        {"\udc00": 1},
        {1: "a"},
        {None: "a"},
        {Text("a"): 1},
        {"a": Text("b")},
        {"a": Number.ONE},
        {"a": Decimal(1)},
        {"a": b"b"},
        {"a": {1}},
        {"a": object()},
        {"a": iter(())},
    ],
    ids=range(38),
)
def test_what_is_not_i_json_has_no_digest(arguments):
    """
    Other values than one I-JSON object are refused as `ArgumentsError`, which is a ValueError.
    """
    with pytest.raises(ArgumentsError) as refusal:
        digest(arguments)

    assert isinstance(refusal.value, ValueError)


@pytest.mark.parametrize("value", [LARGEST, -LARGEST, float(LARGEST), 1e21, -1e21, 1e300, 0.1, -0.0, 5e-324, True])
def test_numbers_at_the_edges_have_a_digest(value):
    """
    Integers up to 2^53-1, floats that are no such integers, and integral ones from 1e21 on have a digest.
    """
    assert canonical_json(value) == rfc8785.dumps(value)
    assert len(digest({"a": value})) == 43


def test_depth_is_bounded_exactly():
    """
    `MAX_ARGUMENTS_DEPTH` levels have a digest, one more has none, as a mapping and as raw JSON.
    """
    for form in (dict, json.dumps):
        assert digest(form(nested(MAX_ARGUMENTS_DEPTH)))
        with pytest.raises(ArgumentsError):
            digest(form(nested(MAX_ARGUMENTS_DEPTH + 1)))


def test_the_number_of_values_is_bounded_exactly():
    """
    `MAX_VALUES` values with their containers have a digest, one more has none.
    """
    assert digest({"x": [0] * (MAX_VALUES - 2)})
    with pytest.raises(ArgumentsError):
        digest({"x": [0] * (MAX_VALUES - 1)})


@pytest.mark.parametrize("character", ["y", "é", "\x01", '"'])
def test_the_length_is_bounded_exactly(character):
    """
    A canonical form of `MAX_CANONICAL_OCTETS` has a digest, one that is longer by an octet has none.
    """

    def octets(text: str) -> int:
        return len(rfc8785.dumps({"action": "a", "arguments": {"x": text}, "idempotencyKey": KEY}))

    room = MAX_CANONICAL_OCTETS - octets("")
    longest = character * (room // (octets(character) - octets("")))
    longest += "z" * (MAX_CANONICAL_OCTETS - octets(longest))

    assert digest({"x": longest})
    with pytest.raises(ArgumentsError):
        digest({"x": longest + "z"})


@pytest.mark.parametrize(
    "arguments",
    [
        '{"x":"' + "y" * 70_000 + '"}',
        b'{"x":' + b" " * 70_000 + b"1}",
        "[" * 41 + '"' + '\\"' * 30_000,
        {"x": "y" * 10_000_000},
        {"y" * 10_000_000: 1},
        {"x": [[0] * 1_000_000] * 1_000_000},
        {str(number): number for number in range(100_000)},
    ],
    ids=range(7),
)
def test_what_is_far_too_large_is_refused_at_once(arguments):
    """
    Length and number are counted before anything costly is done.
    """
    began = time.process_time()

    with pytest.raises(ArgumentsError):
        digest(arguments)

    assert time.process_time() - began < 1


def test_what_contains_itself_is_refused():
    """
    A value without an end is one that is nested too deeply.
    """
    endless: dict[str, object] = {}
    endless["x"] = [endless]

    with pytest.raises(ArgumentsError):
        digest(endless)


class Failing(UserDict):
    def __getitem__(self, key):
        raise LookupError("secret")


class Endless(UserDict):
    def __iter__(self):
        return map(str, count())

    def __getitem__(self, key):
        return key


@pytest.mark.parametrize(
    "arguments", [Failing(x=1), {"x": Failing(x=1)}, Endless()], ids=["at once", "within", "endless"]
)
def test_a_mapping_that_fails_has_no_digest(arguments):
    """
    Whatever a mapping of somebody else's raises, or however long it goes on, it ends as arguments that cannot be digested.
    """
    with pytest.raises(ArgumentsError) as refusal:
        digest(arguments)

    assert "secret" not in f"{refusal.value!r}"


@pytest.mark.parametrize(
    "arguments", ['{"secret":1,"secret":2}', {"secret": float("nan")}, {"x": "secret\ud800"}, '"secret"']
)
def test_a_refusal_holds_no_argument(arguments):
    """
    The text says which rule is broken and nothing of what broke it.
    """
    with pytest.raises(ArgumentsError) as refusal:
        digest(arguments)

    assert "secret" not in f"{refusal.value!r}"


def test_what_was_digested_comes_out_frozen():
    """
    The arguments that come back are a frozen copy of those that were digested, whatever happens to the source.
    """
    source = {"x": [{"y": 1}]}
    bound = bind_action(action="a", arguments=source, idempotency_key=KEY)

    source["x"][0]["y"] = 2

    assert bound.arguments == {"x": ({"y": 1},)}
    assert digest(bound.arguments) == bound.digest
    with pytest.raises(TypeError):
        bound.arguments["x"] = 1
    with pytest.raises(TypeError):
        bound.arguments["x"][0]["y"] = 1


NAMES = ["a", "cancel_order", "A.b-c:d_9", "a" * 128]
NO_NAMES = ["", "a" * 129, "a b", "a/b", "é", "a\n", "a~", None, 1, b"a"]


@pytest.mark.parametrize("name", NAMES)
def test_an_action_name(name):
    """
    1 to 128 of `A-Z a-z 0-9 . _ : -` name an action.
    """
    assert is_action_name(name)
    assert action_digest(action=name, arguments={}, idempotency_key=KEY)


@pytest.mark.parametrize("name", NO_NAMES)
def test_no_action_name(name):
    """
    Everything else names none, and has no digest.
    """
    assert not is_action_name(name)
    with pytest.raises(ValueError):
        action_digest(action=name, arguments={}, idempotency_key=KEY)


@pytest.mark.parametrize("key", ["k" * 16, "k" * 128, "Aa0._~-Aa0._~-Aa"])
def test_an_idempotency_key(key):
    """
    16 to 128 of `A-Z a-z 0-9 . _ ~ -` are a key, bare or in one pair of double quotes (D12, D17).
    """
    assert is_idempotency_key(key)
    assert read_idempotency_key(key) == read_idempotency_key(f'"{key}"') == key


def test_an_idempotency_key_is_read_as_plain_text():
    """
    A subclass of str does not say for itself how long it is or what it begins with.
    """

    class Lying(str):
        __slots__ = ()

        def __len__(self):
            raise RuntimeError

    assert type(read_idempotency_key(Lying(f'"{KEY}"'))) is str


@pytest.mark.parametrize(
    "key",
    [
        *(
            "",
            "k" * 15,
            "k" * 129,
            "k" * 15 + " ",
            "k" * 15 + ":",
            "é" * 16,
            "k" * 16 + "\n",
            None,
            7,
            b"k" * 16,
            ["k" * 16],
        ),
        *(
            '"',
            '""',
            '"' + KEY,
            KEY + '"',
            f'""{KEY}""',
            f'"{KEY}" ',
            f' "{KEY}"',
            f"'{KEY}'",
            f'"{KEY}";a=1',
            '"kkkkkkkk\\"kkkkkkkk"',
        ),
    ],
    ids=range(21),
)
def test_no_idempotency_key(key):
    """
    Everything else is none, in either spelling, and has no digest.
    """
    assert not is_idempotency_key(key)
    assert read_idempotency_key(key) is None
    with pytest.raises(ValueError):
        action_digest(action="a", arguments={}, idempotency_key=key)
