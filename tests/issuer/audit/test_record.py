"""
Records: what they may say, and the one line that each is written as and read from.
"""

import json
from dataclasses import replace

import pytest

from issuer.audit import Actor, Entry, Malformed
from issuer.audit.canonical import canonical
from issuer.audit.record import (
    EVENTS,
    MAX_LINE_OCTETS,
    entry_members,
    parse_entry,
    parse_record,
    read_seq,
    record_members,
)

from .stage import NOW, SECOPS, Chain, entry


@pytest.fixture(scope="module")
def chain():
    return Chain(2)


def changed(line, **changes):
    """
    Return a line with other members, canonical again; `...` leaves one out.
    """
    members = {**json.loads(line), **changes}
    return canonical({name: value for name, value in members.items() if value is not ...})


def test_a_record_comes_back_from_its_line(chain):
    """
    Every member, and what its MAC is over.
    """
    signed = parse_record(chain.lines[1])

    assert signed.record == chain.records[1]
    assert signed.content == canonical(record_members(chain.records[1]))
    assert signed.mac == json.loads(chain.lines[1])["mac"]


def test_a_line_says_everything_in_plain_words(chain):
    """
    What an investigator greps for.
    """
    first = json.loads(chain.lines[0])

    assert (first["seq"], first["follows"], first["revision"], first["epoch"]) == (1, 0, 2, 1)
    assert first["sealing_key"] == "2026-11"
    assert first["actor"] == {"kind": "admin", "name": "secops"}
    assert first["source"] == "192.0.2.7"
    assert (first["workspace"], first["event"], first["outcome"], first["at"]) == ("acme", "keys_rotated", "done", NOW)
    assert json.loads(chain.lines[1])["sealing_key"] is None


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_can_be_written_and_read(event):
    """
    With as little as an entry may say.
    """
    least = Entry(at=0, actor=Actor("cli", "root"), event=event)

    assert parse_entry(json.loads(canonical(entry_members(least)))) == least


@pytest.mark.parametrize(
    "changes",
    [
        {"at": -1},
        {"at": True},
        {"at": 1.5},
        {"event": "other"},
        {"event": []},
        {"outcome": "maybe"},
        {"target": ""},
        {"target": "a" * 257},
        {"target": "two\nlines"},
        {"reason": "a" * 501},
        {"reason": 1},
        {"before": []},
        {"after": {"a": 1.0}},
        {"count": 0},
        {"count": 2**53},
    ],
    ids=str,
)
def test_an_entry_has_bounds(changes):
    """
    A mistake shows where it is made, and not in a trail that nobody can read later.
    """
    with pytest.raises(Malformed):
        entry(**changes)


@pytest.mark.parametrize("parts", [("root", "a"), ("admin", ""), ("admin", "a" * 129), ("admin", "a", "\x1b[1m")])
def test_an_actor_has_bounds(parts):
    """
    A known kind, and printable words.
    """
    with pytest.raises(Malformed):
        Actor(*parts)


@pytest.mark.parametrize(
    "changes",
    [
        {"workspace": ""},
        {"seq": 0},
        {"revision": 0},
        {"epoch": 0},
        {"follows": 5},
        {"follows": -1},
        {"sealing_key": ""},
        {"sealing_key": 1},
        {"prev": "short"},
        {"prev": None},
    ],
    ids=str,
)
def test_a_place_has_bounds(chain, changes):
    """
    Numbers begin with 1, and a record follows an earlier one.
    """
    with pytest.raises(Malformed):
        replace(chain.records[0], **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"v": 2},
        {"v": True},
        {"v": ...},
        {"mac": ...},
        {"mac": 1},
        {"mac": "A" * 42 + "B"},
        {"seq": ...},
        {"seq": "1"},
        {"actor": ...},
        {"actor": {"kind": "admin"}},
        {"actor": "secops"},
        {"source": ...},
        {"at": ...},
        {"more": 1},
    ],
    ids=str,
)
def test_a_line_with_other_members_is_no_record(chain, changes):
    """
    None may be missing, added or of another type.
    """
    with pytest.raises(Malformed):
        parse_record(changed(chain.lines[0], **changes))


@pytest.mark.parametrize(
    "respell",
    [
        lambda line: line + b" ",
        lambda line: line.replace(b":", b": ", 1),
        lambda line: line[:-1] + b',"v":1}',
        lambda line: line.replace(b"secops", b"sec\\u006fps"),
        lambda line: json.dumps(dict(reversed(json.loads(line).items())), separators=(",", ":")).encode(),
        lambda line: b"",
        lambda line: b"[]",
        lambda line: b"\xff",
        lambda line: line[:100],
    ],
    ids=["space", "inner_space", "twice", "escape", "order", "empty", "array", "octets", "cut"],
)
def test_another_spelling_is_no_record(chain, respell):
    """
    What two readers could read differently is not read at all.
    """
    with pytest.raises(Malformed):
        parse_record(respell(chain.lines[0]))


def test_a_line_that_is_too_long_is_not_looked_at(chain):
    """
    However it begins.
    """
    with pytest.raises(Malformed):
        parse_record(chain.lines[0] + b" " * MAX_LINE_OCTETS)


@pytest.mark.parametrize(
    ("line", "seq"),
    [
        (b'{"seq":7}', 7),
        (b'{"seq":0}', None),
        (b'{"seq":true}', None),
        (b'{"seq":9007199254740992}', None),
        (b"{}", None),
        (b"seq", None),
    ],
)
def test_the_number_that_a_line_claims_can_be_read_alone(line, seq):
    """
    To find a place in a trail whatever else is wrong with it.
    """
    assert read_seq(line) == seq


def test_an_entry_cannot_be_changed():
    """
    Neither what it says nor what is inside.
    """
    said = Entry(at=NOW, actor=SECOPS, event="key_revoked", after={"kids": ["a"]})

    with pytest.raises(TypeError):
        said.after["kids"] = []
    with pytest.raises(AttributeError):
        said.after["kids"].append("b")
