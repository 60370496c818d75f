"""
A ring: its invariants, what it publishes at which instant, and its self-test.
"""

import asyncio
from dataclasses import replace

import pytest

from keys import KeyRing, PrivateJWK, SelfTestFailed, UnknownKey, generate_key, revoke, rotate
from keys.key import ALGORITHMS
from keys.ring import MAX_RECORDS

FORBIDDEN = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}


@pytest.fixture
def rotated(ring, now, times):
    """
    The ring after a planned rotation and the revocation of a standby: every kind of record but a retired one.
    """
    ring = rotate(ring, now=now + 350, times=times, expected_active=None).ring
    return revoke(ring, ring.standbys[0].kid, now=now + 360, times=times, reason="leaked").ring


def test_a_ring_has_one_active_key_and_two_standbys(ring):
    """
    Fewer or more of either, a kid twice, or no record at all do not make a ring.
    """
    active, first, second = ring.active, *ring.standbys

    for records in ((), (active, first), (first, second), (active, first, second, first), (active, active, first)):
        with pytest.raises(ValueError, match="ring"):
            KeyRing("acme", records)


def test_a_ring_has_no_third_standby(ring, other_ring):
    """
    Exactly two keys wait.
    """
    with pytest.raises(ValueError, match="two standbys"):
        KeyRing("acme", (*ring.records, other_ring.standbys[0]))


def test_a_ring_has_no_second_active_key(ring, other_ring):
    """
    Exactly one key signs.
    """
    with pytest.raises(ValueError, match="one active"):
        KeyRing("acme", (*ring.records, other_ring.active))


def test_a_ring_is_bounded(ring, now, times):
    """
    Neither the key set nor the history grows without end.
    """
    retiring = rotate(ring, now=now + 350, times=times, expected_active=None).ring.record(ring.active.kid)
    keys = [generate_key() for _ in range(MAX_RECORDS - 2)]
    many = [replace(retiring, kid=key.kid, public_jwk=key.public_jwk) for key in keys]

    with pytest.raises(ValueError, match="too many retiring"):
        KeyRing("acme", (*ring.records, *many[:17]))
    with pytest.raises(ValueError, match="too many records"):
        KeyRing("acme", (*ring.records, *(replace(record, state="retired") for record in many)))


@pytest.mark.parametrize("name", ["", "-a", "Acme", "a_b", "a/b", "a" * 64, "ümlaut", "acme\n"])
def test_a_workspace_has_a_name(name, ring):
    """
    Names follow D3.
    """
    with pytest.raises(ValueError, match="workspace"):
        KeyRing(name, ring.records)


def test_a_record_is_found_by_its_kid(rotated):
    """
    Records of every state are found; an unknown kid is refused.
    """
    assert [rotated.record(record.kid) for record in rotated.records] == list(rotated.records)
    with pytest.raises(UnknownKey) as refusal:
        rotated.record("nobody")
    assert refusal.value.kid == "nobody"


def test_standbys_come_in_the_order_they_mature(rotated):
    """
    The key that may sign first stands in front, and says when the next rotation is possible.
    """
    first, second = rotated.standbys

    assert first.mature_at < second.mature_at
    assert rotated.next_rotation_at == first.mature_at


def test_standbys_that_mature_together_keep_the_order_of_the_ring(ring):
    """
    Which of two equally old standbys signs next does not hang on their random kids.
    """
    active, first, second = ring.records
    swapped = KeyRing("acme", (active, second, first))

    assert ring.standbys == (first, second)
    assert swapped.standbys == (second, first)


def test_the_latest_instant_is_of_the_last_thing_done(ring, rotated, now):
    """
    Instants that are still to come do not count.
    """
    assert ring.latest_instant == now
    assert rotated.latest_instant == now + 360


def test_active_standby_and_retiring_keys_are_published(rotated, ring, now):
    """
    F05: the key set holds active, standbys and the retiring key until its instant; never a revoked one.
    """
    kids = {record.kid for record in rotated.published(now + 360)}

    assert kids == {rotated.active.kid, *(key.kid for key in rotated.standbys), ring.active.kid}
    assert rotated.published(now + 360)[0] == rotated.active


def test_a_retiring_key_drops_out_without_a_write(rotated, ring, now):
    """
    F04: one second before its instant it is there, from then on it is not.
    """
    gone_at = rotated.record(ring.active.kid).unpublish_at

    assert ring.active.kid in {key["kid"] for key in rotated.jwks(gone_at - 1)["keys"]}
    assert ring.active.kid not in {key["kid"] for key in rotated.jwks(gone_at)["keys"]}


def test_the_key_set_holds_public_members_only(rotated, now):
    """
    B04: kty, crv, x, y, use, alg and kid, and no private member at any depth.
    """
    document = rotated.jwks(now + 360)

    assert list(document) == ["keys"]
    assert len(document["keys"]) == 4
    for key in document["keys"]:
        assert list(key) == ["kty", "crv", "x", "y", "use", "alg", "kid"]
        assert FORBIDDEN.isdisjoint(key)
        assert all(type(value) is str for value in key.values())


def test_the_key_set_is_a_copy(ring, now):
    """
    Changing the document does not change the ring.
    """
    ring.jwks(now)["keys"][0]["x"] = "changed"

    assert ring.jwks(now)["keys"][0]["x"] == ring.active.public_jwk["x"]


def test_the_signer_signs_with_the_active_key(rotated, now):
    """
    What the signer signs verifies with the first key of the key set.
    """
    signer = rotated.signer()

    signature = asyncio.run(signer.sign(b"input"))

    assert signer.kid == rotated.active.kid
    assert ALGORITHMS["ES256"].load_public(rotated.jwks(now)["keys"][0])(b"input", signature)


def test_a_whole_ring_passes_its_self_test(rotated):
    """
    Keys with and without a private part are tested.
    """
    rotated.self_test()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_private_part_of_another_key_fails_the_self_test(ring, place):
    """
    F13: the key pair of the active key and of each standby is tested.
    """
    records = list(ring.records)
    records[place] = replace(records[place], private_jwk=PrivateJWK(generate_key().private_jwk.reveal()))
    wrong = KeyRing("acme", tuple(records))

    with pytest.raises(SelfTestFailed) as failure:
        wrong.self_test()

    assert failure.value.kid == records[place].kid


def test_a_public_part_without_private_one_is_tested_too(rotated, ring):
    """
    A retiring key whose point or kid was changed is found.
    """
    other = generate_key()
    changed = {**other.public_jwk, "kid": ring.active.kid}
    records = (
        replace(record, public_jwk=changed) if record.kid == ring.active.kid else record for record in rotated.records
    )

    with pytest.raises(SelfTestFailed):
        KeyRing("acme", tuple(records)).self_test()


def test_a_ring_does_not_show_private_parts(ring):
    """
    repr and str of a whole ring hold no private member.
    """
    secrets = [record.private_jwk.reveal()["d"] for record in ring.records]

    assert not any(secret in f"{ring!r} {ring}" for secret in secrets)
