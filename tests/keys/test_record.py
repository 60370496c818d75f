"""
A key record: which members go with which state, and the order of its instants.
"""

from dataclasses import replace

import pytest

from keys import InvalidKey, KeyRecord, generate_key
from keys.record import is_reason
from keys.timing import MAX_INSTANT

KEY = generate_key()
BASE = {
    "kid": KEY.kid,
    "alg": "ES256",
    "public_jwk": KEY.public_jwk,
    "created_at": 100,
    "published_at": 100,
    "mature_at": 450,
}
SIGNED = {"activated_at": 500, "rotation_due_at": 9000, "deactivated_at": 600}
MEMBERS = {
    "standby": {"private_jwk": KEY.private_jwk},
    "active": {"private_jwk": KEY.private_jwk, "activated_at": 500, "rotation_due_at": 9000},
    "retiring": {**SIGNED, "unpublish_at": 740},
    "retired": {**SIGNED, "unpublish_at": 740, "reason": "asked for"},
    "revoked": {"unpublish_at": 200, "revoked_at": 200, "reason": "leaked"},
}


def record(state, **change):
    return KeyRecord(**{**BASE, "state": state, **MEMBERS[state], **change})


@pytest.mark.parametrize("state", MEMBERS)
def test_a_record_of_each_state_is_built(state):
    """
    The members that belong to a state are taken as they are.
    """
    built = record(state)

    assert built.state == state
    assert built.private_jwk is None or state in ("standby", "active")


def test_a_revoked_key_may_have_signed():
    """
    A key that was active before it was revoked keeps the instants of that time.
    """
    assert record("revoked", **SIGNED, unpublish_at=700, revoked_at=700).activated_at == 500


@pytest.mark.parametrize(
    ("state", "change"),
    [
        *((state, {"private_jwk": KEY.private_jwk}) for state in ("retiring", "retired", "revoked")),
        *((state, {"private_jwk": None}) for state in ("standby", "active")),
        ("standby", {"activated_at": 500}),
        ("standby", {"unpublish_at": 500}),
        ("standby", {"reason": "why"}),
        ("active", {"activated_at": None}),
        ("active", {"rotation_due_at": None}),
        ("active", {"deactivated_at": 600}),
        ("active", {"revoked_at": 600}),
        ("active", {"reason": "why"}),
        ("retiring", {"activated_at": None}),
        ("retiring", {"deactivated_at": None}),
        ("retiring", {"unpublish_at": None}),
        ("retired", {"revoked_at": 740}),
        ("revoked", {"reason": None}),
        ("revoked", {"revoked_at": None}),
        ("revoked", {"activated_at": 150}),
        ("gone", {}),
    ],
)
def test_members_that_do_not_go_with_the_state_are_refused(state, change):
    """
    A key that no longer signs has no private part, a key that waits has not signed, and so on for every state.
    """
    members = {**BASE, "state": state, **MEMBERS.get(state, {}), **change}

    with pytest.raises(ValueError, match=r"state|members|instants"):
        KeyRecord(**members)


@pytest.mark.parametrize(
    ("state", "change"),
    [
        ("standby", {"published_at": 99}),
        ("standby", {"mature_at": 99}),
        ("active", {"activated_at": 99}),
        ("retiring", {"deactivated_at": 499}),
        ("retiring", {"unpublish_at": 599}),
        ("revoked", {"unpublish_at": 201}),
        ("revoked", {"revoked_at": 99, "unpublish_at": 99}),
        ("standby", {"created_at": -1}),
        ("standby", {"mature_at": MAX_INSTANT + 1}),
    ],
)
def test_instants_out_of_order_or_range_are_refused(state, change):
    """
    A life runs forwards, between 1970 and the year 9999.
    """
    with pytest.raises(ValueError, match=r"order|revoked|range"):
        record(state, **change)


@pytest.mark.parametrize(
    ("state", "change"),
    [
        ("standby", {"created_at": True}),
        ("standby", {"published_at": 100.0}),
        ("standby", {"mature_at": None}),
        ("active", {"activated_at": "500"}),
        ("standby", {"private_jwk": {"d": "AA"}}),
    ],
)
def test_members_of_another_type_are_refused(state, change):
    """
    Instants are ints, a private part is wrapped.
    """
    with pytest.raises(TypeError):
        record(state, **change)


@pytest.mark.parametrize("kid", ["", "k1", KEY.kid + "A", KEY.kid[:-1] + "="], ids=["empty", "short", "long", "padded"])
def test_a_kid_is_a_thumbprint(kid):
    """
    Anything but 43 characters of base64url is no kid.
    """
    with pytest.raises(ValueError, match="kid"):
        record("standby", kid=kid)


def test_the_published_form_must_be_of_this_key():
    """
    A JWK of another kid or algorithm does not get into a record.
    """
    with pytest.raises(InvalidKey):
        record("standby", public_jwk=generate_key().public_jwk)
    with pytest.raises(InvalidKey):
        record("standby", alg="ES384")


@pytest.mark.parametrize(
    ("state", "now", "published"),
    [
        ("standby", 0, True),
        ("active", MAX_INSTANT, True),
        ("retiring", 739, True),
        ("retiring", 740, False),
        ("retired", 0, False),
        ("revoked", 0, False),
    ],
)
def test_what_is_published_follows_from_state_and_clock(state, now, published):
    """
    A retiring key drops out at its instant without a write; what has left never comes back, whatever the clock says.
    """
    assert record(state).is_published(now) is published


def test_a_key_that_stays_has_no_end_yet():
    """
    The instant of leaving the key set is the stored one, or the end of time.
    """
    assert record("active").gone_at == MAX_INSTANT
    assert record("retiring").gone_at == 740


def test_the_key_pair_comes_out_of_a_record_that_has_one():
    """
    A waiting or signing record gives its key pair, one whose private part is destroyed does not.
    """
    assert record("standby").signing_key() == KEY
    with pytest.raises(ValueError, match="destroyed"):
        record("retiring").signing_key()


def test_a_record_does_not_show_its_private_part():
    """
    Neither repr nor str holds private material.
    """
    built = record("active")

    assert KEY.private_jwk.reveal()["d"] not in f"{built!r} {built}"
    assert "private" not in repr(built)


def test_a_record_is_frozen():
    """
    A change makes another record.
    """
    built = record("standby")

    assert replace(built, mature_at=451) != built
    with pytest.raises(AttributeError):
        built.state = "active"


@pytest.mark.parametrize(
    ("reason", "good"),
    [
        ("leaked", True),
        ("Schlüssel verloren", True),
        ("x" * 500, True),
        ("x" * 501, False),
        ("", False),
        ("   ", False),
        ("two\nlines", False),
        ("\x1b[31m", False),
        ("\ud800", False),
        (None, False),
        (5, False),
    ],
)
def test_a_reason_says_something_on_one_line(reason, good):
    """
    1 to 500 printable characters are a reason; control characters, line breaks and lone surrogates are not.
    """
    assert is_reason(reason) is good


def test_a_reason_that_is_none_is_not_stored():
    """
    A record refuses a reason that a log line could not hold.
    """
    with pytest.raises(ValueError, match="reason"):
        record("retired", reason="two\nlines")
