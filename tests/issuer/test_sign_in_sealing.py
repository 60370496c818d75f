"""
How sign-ins are sealed: what it takes to open one, and what names give away.
"""

from dataclasses import replace

import pytest

from issuer.sign_in_sealing import SignInSealing, _key, handle_of, is_handle
from keys import SealingKey, SealingKeys

from .sign_in_event import EVENT
from .world import NOW

MINE, THEIRS = SealingKeys(SealingKey("2026-11", b"\x11" * 32)), SealingKeys(SealingKey("2026-11", b"\x22" * 32))


@pytest.fixture
def sealing():
    return SignInSealing(MINE, "acme", "orc_main")


def test_the_service_alone_does_not_open_a_customer(sealing):
    """
    With every key of the service, and any id but the right one, the customer stays sealed.
    """
    sign_in_id, sign_in, sealed = sealing.seal(EVENT, NOW)
    other_id, _, _ = sealing.seal(EVENT, NOW)
    (keys,) = sealing._keys.values()
    record = sealed.split(b" ")[2]

    opened = [sealing._opened(key, sign_in.handle, record) for key in (keys.summary, _key(keys, other_id))]

    assert opened == [None, None]
    assert sealing._opened(_key(keys, sign_in_id), sign_in.handle, record) == {
        "sub": "cus_48213",
        "conversation": "conv-77",
    }


def test_an_id_alone_does_not_open_a_customer(sealing):
    """
    Whoever has the id and the record and makes up a key of the service opens nothing.
    """
    sign_in_id, sign_in, sealed = sealing.seal(EVENT, NOW)
    made_up = SignInSealing(THEIRS, "acme", "orc_main")
    (keys,) = made_up._keys.values()
    summary = made_up._sealed(keys.summary, sign_in.handle, {})

    mixed = b" ".join([b"2026-11", summary, sealed.split(b" ")[2]])

    assert made_up.describe(sign_in.handle, sealed, None) is None
    assert made_up._opened(keys.summary, sign_in.handle, summary) == {}
    assert made_up.open(sign_in_id, mixed, None) is None
    assert sealing.open(sign_in_id, sealed, None) == sign_in


def test_sealing_twice_looks_different_each_time(sealing):
    """
    Nobody sees from what is stored that a customer signed in again.
    """
    ids, sign_ins, sealed = zip(*(sealing.seal(EVENT, NOW) for _ in range(20)), strict=True)

    assert len(set(ids)) == len({each.handle for each in sign_ins}) == len(set(sealed)) == 20


def test_names_tell_kinds_clients_and_workspaces_apart():
    """
    One customer is named differently everywhere, and one text differently as whatever it is.
    """
    places = [("acme", "orc_main"), ("acme", "orc_other"), ("other", "orc_main"), ("acmeo", "rc_main")]

    names = [
        name
        for workspace, client_id in places
        for sealing in (SignInSealing(keys, workspace, client_id) for keys in (MINE, THEIRS))
        for name in (
            *sealing.customer_of_provider("a", "bc"),
            *sealing.customer_of_provider("ab", "c"),
            *sealing.customer("a", "bc"),
            *sealing.session("a", "bc"),
            *sealing.conversation("abc"),
        )
    ]

    assert len({name.partition(":")[2] for name in names}) == len(names) == 40


def test_names_come_under_each_key_the_first_in_front(sealing):
    """
    What was named under an earlier key is found.
    """
    both = SignInSealing(SealingKeys(SealingKey("2027-05", b"\x33" * 32), MINE.current), "acme", "orc_main")

    assert both.conversation("conv-77")[1:] == sealing.conversation("conv-77")
    assert both.indexes(EVENT)[2] == both.conversation("conv-77")[0]
    assert both.indexes(replace(EVENT, sid=None, conversation=None))[1:] == (None, None)


def test_a_handle_is_made_of_its_id(sealing):
    """
    The same one each time, also of a later version, and only of what has the form of an id.
    """
    sign_in_id, sign_in, _ = sealing.seal(EVENT, NOW)

    assert handle_of(sign_in_id) == sign_in.handle
    assert is_handle(sign_in.handle)
    assert [handle_of(each) for each in ("", sign_in.handle, sign_in_id + "A", "é" * 43, "A" * 42 + "B")] == [None] * 5
    assert handle_of("A" * 43) == "erI6NFNgQZXm7yJZsrkIeg"
