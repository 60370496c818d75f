"""
Case group F, and B04 and B07 of the issuer's side: each step is a test that names it, or is shown where a service is.

The steps are numbered from 1 in the order of the shared cases; a check holds the table against them.
"""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from keys import (
    FileKeyStore,
    KeyRing,
    KeyTimes,
    RingCorrupt,
    SelfTestFailed,
    StandbyNotMature,
    create_ring,
    generate_key,
    import_private_jwk,
    revoke,
    rotate,
    settle,
)
from keys.ring_json import dump_ring, parse_ring

CASES = Path(__file__).parents[1] / "data" / "cases.json"
FORBIDDEN = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}
WIDE = KeyTimes(max_age_s=300)

SERVICE = "shown where a service is: tests/issuer/test_cases_f.py"

# (case, step) -> where it is shown.
STEPS = {
    ("F01", 1): SERVICE,
    ("F01", 2): "test_store.py: test_two_creations_at_once_make_one_ring",
    ("F01", 3): SERVICE,
    ("F01", 4): "test_store.py: test_a_stale_save_is_refused",
    ("F01", 5): SERVICE,
    ("F03", 1): "test_f03_a_fresh_ring_does_not_rotate",
    ("F03", 2): "test_f03_a_mature_standby_signs",
    ("F03", 3): "test_f03_a_forced_rotation_warns",
    ("F03", 4): "test_f03_a_cache_from_before_publication_knows_the_key_that_signs",
    ("F03", 5): "test_f03_an_emergency_needs_no_waiting",
    ("F04", 1): "test_f04_the_old_key_stays_for_its_last_token",
    ("F04", 2): "test_f04_the_old_key_stays_for_its_last_token",
    ("F04", 3): "test_f04_a_retiring_key_may_be_revoked",
    ("F04", 4): "test_f04_the_old_key_leaves_when_its_last_token_is_dead",
    ("F04", 5): "test_f04_the_old_key_leaves_when_its_last_token_is_dead",
    ("F05", 1): "test_f05_each_phase_publishes_what_it_must",
    ("F05", 2): "test_lifecycle_properties.py: test_no_token_outlives_its_published_key",
    ("F05", 3): SERVICE,
    ("F05", 4): "test_f05_the_document_has_public_members_only",
    ("F06", 1): "test_store.py: test_a_wrong_sealing_key_destroys_nothing",
    ("F06", 2): "test_sealing_key.py: test_a_file_without_a_sealing_key_is_refused",
    ("F06", 3): "test_store.py: test_a_wrong_sealing_key_destroys_nothing",
    ("F06", 4): SERVICE,
    ("F06", 5): "test_transfer.py: test_resealing_seals_with_the_first_key",
    ("F06", 6): "test_sealing.py: test_a_wrong_sealing_key_of_the_right_id_is_told_from_damage",
    ("F08", 1): "test_store.py: test_a_file_that_does_not_open_is_never_replaced",
    ("F08", 2): "test_store.py: test_a_file_that_does_not_open_is_never_replaced",
    ("F08", 3): "test_f08_one_malformed_entry_refuses_the_ring",
    ("F08", 4): "test_f08_a_wrong_curve_or_scalar_refuses_the_ring",
    ("F08", 5): "test_store.py: test_a_ring_that_was_deleted_is_missed",
    ("F08", 6): "test_store.py: test_a_missing_ring_is_never_made_up",
    ("F08", 7): "test_f08_a_kid_twice_refuses_the_ring",
    ("F09", 1): "test_private_file.py: test_a_full_disk_leaves_the_old_content_and_no_litter",
    ("F09", 2): "test_private_file.py: test_a_short_write_goes_on",
    ("F09", 3): "test_private_file.py: test_replacing_takes_the_durable_steps_in_order",
    ("F09", 4): "test_store.py: test_a_loose_file_is_refused",
    ("F09", 5): "test_processes.py: test_an_unreadable_file_is_reported_on_load",
    ("F09", 6): "test_processes.py: test_a_read_only_folder_serves_but_does_not_rotate",
    ("F09", 7): "test_private_file.py: test_a_file_has_its_mode_from_the_first_instant",
    ("F12", 1): "test_store.py: test_a_missing_ring_is_never_made_up",
    ("F12", 2): "test_f12_a_restart_with_its_volume_has_the_same_keys",
    ("F12", 3): SERVICE,
    ("F12", 4): SERVICE,
    ("F13", 1): SERVICE,
    ("F13", 2): SERVICE,
    ("F13", 3): "test_sealing.py: test_sealed_content_with_a_mismatched_pair_is_refused",
    ("F13", 4): "test_store.py: test_a_stamp_tells_that_the_file_is_gone",
}


def kids(ring, now):
    return {key["kid"] for key in ring.jwks(now)["keys"]}


def members(document):
    if isinstance(document, dict):
        return set(document).union(*map(members, document.values()))
    return set().union(*map(members, document)) if isinstance(document, list) else set()


def test_every_step_of_group_f_is_accounted_for():
    """
    No step is left out silently, and every test that the table names exists.
    """
    cases = [case for case in json.loads(CASES.read_text()) if case["group"] == "F"]
    steps = {(case["id"], number) for case in cases for number in range(1, len(case["input"]["steps"]) + 1)}

    shown = {place for place in STEPS.values() if place != SERVICE}

    assert set(STEPS) == steps
    for place in shown:
        file, _, name = place.rpartition(": ")
        assert f"def {name}(" in Path(__file__).with_name(file or "test_cases.py").read_text()


def test_f03_a_fresh_ring_does_not_rotate(now):
    """
    F03, step 1: at once after creation the standby has not been published long enough; the refusal names the instant.
    """
    ring = create_ring("acme", now=now, times=WIDE)

    with pytest.raises(StandbyNotMature) as refusal:
        rotate(ring, now=now, times=WIDE, expected_active=ring.active.kid)

    assert refusal.value.earliest == now + 300 + 120 + 30 + 65 + 15


def test_f03_a_mature_standby_signs(now):
    """
    F03, step 2: published for all that caches, clocks and leases may take, the former standby signs.
    """
    ring = create_ring("acme", now=now, times=WIDE)

    rotation = rotate(ring, now=now + 530, times=WIDE, expected_active=ring.active.kid)

    assert rotation.ring.signer().kid == ring.standbys[0].kid
    assert not rotation.early


def test_f03_a_forced_rotation_warns(now):
    """
    F03, step 3: earlier, with a reason, it is done and warns of refusals for up to 30 s.
    """
    ring = create_ring("acme", now=now, times=WIDE)

    rotation = rotate(ring, now=now, times=WIDE, expected_active=None, force=True, reason="drill")

    assert rotation.early
    assert "30 s" in rotation.notices[0]


def test_f03_a_cache_from_before_publication_knows_the_key_that_signs(now):
    """
    F03, step 4: a verifier that fetched one second before a standby was published has fetched again before it signs.
    """
    ring = rotate(create_ring("acme", now=now, times=WIDE), now=now + 530, times=WIDE, expected_active=None).ring
    newest = max(ring.standbys, key=lambda key: key.published_at)
    cached_until = (newest.published_at - 1) + WIDE.max_age_s + WIDE.stale_if_error_s

    for second in range(0, 3600, 10):
        at = newest.published_at + second
        ring = (
            settle(ring, at)
            if at < ring.next_rotation_at
            else rotate(ring, now=at, times=WIDE, expected_active=None).ring
        )
        if ring.active.kid == newest.kid:
            break

    assert ring.active.kid == newest.kid
    assert ring.active.activated_at > cached_until + WIDE.cooldown_s


def test_f03_an_emergency_needs_no_waiting(now):
    """
    F03, step 5: the standby that has been published longest signs at once, and is known when it was published long enough.
    """
    ring = create_ring("acme", now=now, times=WIDE)

    late = revoke(ring, ring.active.kid, now=now + 530, times=WIDE, reason="leaked")
    soon = revoke(ring, ring.active.kid, now=now + 1, times=WIDE, reason="leaked")

    assert (late.promoted_kid, late.early) == (ring.standbys[0].kid, False)
    assert (soon.promoted_kid, soon.early) == (ring.standbys[0].kid, True)


def test_f04_the_old_key_stays_for_its_last_token(ring, now, times):
    """
    F04, steps 1 and 2: a token signed a second before the rotation finds its key until it is dead, tolerance included.
    """
    rotation = rotate(ring, now=now + 350, times=times, expected_active=None)

    alive = range(rotation.at, rotation.at - 1 + 60 + 60)

    assert all(rotation.old_kid in kids(rotation.ring, second) for second in alive)


def test_f04_a_retiring_key_may_be_revoked(ring, now, times):
    """
    F04, step 3: allowed, and the answer says that its live tokens stop verifying.
    """
    rotation = rotate(ring, now=now + 350, times=times, expected_active=None)

    done = revoke(rotation.ring, rotation.old_kid, now=rotation.at + 10, times=times, reason="leaked")

    assert rotation.old_kid not in kids(done.ring, rotation.at + 10)
    assert "stop verifying" in done.notices[0]


def test_f04_the_old_key_leaves_when_its_last_token_is_dead(ring, now, times):
    """
    F04, steps 4 and 5: 140 s after the rotation the key is gone, without anybody doing anything, and for good.
    """
    rotation = rotate(ring, now=now + 350, times=times, expected_active=None)

    assert rotation.old_kid in kids(rotation.ring, rotation.at + 139)
    assert rotation.old_kid not in kids(rotation.ring, rotation.at + 140)
    assert rotation.old_kid not in kids(rotation.ring, rotation.at + 86_400)


def test_f05_each_phase_publishes_what_it_must(ring, now, times):
    """
    F05, step 1: active and standbys always, retiring until its instant, never retired or revoked.
    """
    rotation = rotate(ring, now=now + 350, times=times, expected_active=None)
    settled = settle(rotation.ring, rotation.unpublish_at)
    done = revoke(settled, settled.standbys[0].kid, now=rotation.unpublish_at, times=times, reason="leaked")

    phases = [(ring, now), (rotation.ring, rotation.at), (settled, rotation.unpublish_at), (done.ring, done.at)]

    for phase, instant in phases:
        expected = {record.kid for record in phase.records if record.state in ("active", "standby", "retiring")}
        assert kids(phase, instant) == expected
    assert [len(kids(*phase)) for phase in phases] == [3, 4, 3, 3]


def test_f05_the_document_has_public_members_only(ring, now):
    """
    F05, step 4: alg, use, kid, kty, crv, x, y only; headers and HEAD are the route's.
    """
    for key in ring.jwks(now)["keys"]:
        assert set(key) == {"kty", "crv", "x", "y", "use", "alg", "kid"}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_f08_one_malformed_entry_refuses_the_ring(ring, place):
    """
    F08, step 3: good entries beside a malformed one do not make a ring.
    """
    document = json.loads(dump_ring(ring))
    document["records"][place]["public_jwk"]["crv"] = None

    with pytest.raises(RingCorrupt):
        parse_ring(json.dumps(document).encode(), where="acme.jwe")


@pytest.mark.parametrize("change", [{"crv": "P-384"}, {"kty": "OKP"}, {"d": "A" * 43}, {"d": "AA"}])
def test_f08_a_wrong_curve_or_scalar_refuses_the_ring(ring, sealing, path, change):
    """
    F08, step 4: a key that is not on P-256, or whose d does not match x and y, is neither saved nor loaded.
    """
    document = json.loads(dump_ring(ring))
    record = document["records"][1]
    record["private_jwk"].update(change)
    record["public_jwk"].update({name: value for name, value in change.items() if name != "d"})
    wrong = parse_ring(json.dumps(document).encode(), where="acme.jwe")

    with pytest.raises(SelfTestFailed):
        wrong.self_test()
    with pytest.raises(SelfTestFailed):
        asyncio.run(FileKeyStore(path, "acme", sealing).save(wrong, expect=0))

    assert not path.exists()


def test_f08_a_kid_twice_refuses_the_ring(ring):
    """
    F08, step 7: two entries of one kid are no ring.
    """
    document = json.loads(dump_ring(ring))
    document["records"][2] = document["records"][1]

    with pytest.raises(RingCorrupt):
        parse_ring(json.dumps(document).encode(), where="acme.jwe")


def test_f12_a_restart_with_its_volume_has_the_same_keys(store, ring, now, path, sealing):
    """
    F12, step 2: what was saved before the restart is what is published after it.
    """
    asyncio.run(store.save(ring, expect=0))

    again, _ = asyncio.run(FileKeyStore(path, "acme", sealing).load())

    assert again.jwks(now) == ring.jwks(now)
    assert again.signer().kid == ring.signer().kid


def test_b04_no_private_member_is_ever_published(ring, now, times):
    """
    B04: after each step, and with an imported private key in the ring, no private member stands anywhere in the document.
    """
    imported = replace_key(ring, import_private_jwk(generate_key().private_jwk.reveal()))
    rotated = rotate(imported, now=now + 350, times=times, expected_active=None).ring
    revoked = revoke(rotated, rotated.active.kid, now=now + 360, times=times, reason="leaked").ring

    for phase in (ring, imported, rotated, revoked):
        assert FORBIDDEN.isdisjoint(members(phase.jwks(now + 360)))


def replace_key(ring, key):
    """
    Put another key pair in the place of a standby.
    """
    standby = replace(ring.standbys[0], kid=key.kid, public_jwk=key.public_jwk, private_jwk=key.private_jwk)
    return KeyRing(ring.workspace, (ring.active, standby, ring.standbys[1]))


def test_b07_a_leading_zero_is_published(now, times):
    """
    B07: of 400 keys about three have a coordinate that begins with a zero octet; every coordinate has 43 characters.
    """
    keys = [generate_key() for _ in range(400)]

    lengths = {len(key.public_jwk[name]) for key in keys for name in ("x", "y")}

    assert lengths == {43}
    assert create_ring("acme", now=now, times=times, generate=iter(keys).__next__).active.kid == keys[0].kid
