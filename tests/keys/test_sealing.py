"""
Sealed rings: what opens, and that nothing else does.
"""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace

import pytest
from joserfc import jwe
from joserfc.jwk import OctKey

from keys import (
    MAX_HISTORY,
    KeyRing,
    RingCorrupt,
    RingOfAnotherWorkspace,
    SealingKey,
    SealingKeys,
    SealingKeyUnknown,
    SealingKeyWrong,
    SelfTestFailed,
    generate_key,
    open_ring,
    revoke,
    rotate,
    seal_ring,
)
from keys.ring import MAX_RECORDS
from keys.ring_json import dump_ring
from keys.sealing import _REGISTRY, MAX_BLOB_OCTETS, MAX_REVISION, _derive

OLD = SealingKey("2026-05", b"\x22" * 32)


@pytest.fixture(scope="module")
def blob(ring, sealing):
    return seal_ring(ring, revision=7, keys=sealing)


@pytest.fixture
def opened(sealing):
    """
    A function that opens a blob as workspace `acme` with the configured sealing keys.
    """

    def opened(blob, workspace="acme", keys=sealing):
        return open_ring(blob, workspace=workspace, keys=keys, where="acme.jwe")

    return opened


def header_of(blob):
    part = blob.split(b".")[0]
    return json.loads(urlsafe_b64decode(part + b"=" * (-len(part) % 4)))


def with_header(blob, **change):
    header = {name: value for name, value in {**header_of(blob), **change}.items() if value is not ...}
    part = urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=")
    return part + blob[blob.index(b".") :]


def sealed(sealing, content, **change):
    """
    Seal any content under any header with the right key, as only a holder of the sealing key could.
    """
    derived = _derive(sealing.current, "acme")
    header = {
        "alg": "dir",
        "enc": "A256GCM",
        "kid": sealing.current.id,
        "cty": "caplo-ring+json",
        "ws": "acme",
        "rev": 7,
        "kcv": derived.check_value,
        **change,
    }
    return jwe.encrypt_compact(header, content, derived.key, registry=_REGISTRY).encode()


def test_a_sealed_ring_opens_as_it_was(ring, blob, opened):
    """
    Ring and revision come back.
    """
    assert opened(blob) == (ring, 7)


def test_the_header_says_what_was_sealed(blob):
    """
    A compact JWE with `dir` and `A256GCM`; workspace, revision, content type and sealing key id are protected.
    """
    header = header_of(blob)

    assert header.pop("kcv")
    assert header == {
        "alg": "dir",
        "enc": "A256GCM",
        "kid": "2026-11",
        "cty": "caplo-ring+json",
        "ws": "acme",
        "rev": 7,
    }
    assert blob.count(b".") == 4


def test_a_blob_shows_no_private_part(ring, blob):
    """
    Nothing of a key stands in it in clear, and sealing again gives other octets.
    """
    secret = ring.active.private_jwk.reveal()["d"].encode()

    assert secret not in blob
    assert ring.active.kid.encode() not in blob


def test_sealing_twice_gives_different_blobs(ring, sealing, blob):
    """
    Every seal has a nonce of its own.
    """
    assert seal_ring(ring, revision=7, keys=sealing) != blob


@pytest.mark.parametrize("revision", [0, -1, MAX_REVISION + 1])
def test_a_revision_is_positive_and_exact(ring, sealing, revision):
    """
    What JSON could not carry exactly is no revision.
    """
    with pytest.raises(ValueError, match="revision"):
        seal_ring(ring, revision=revision, keys=sealing)


def test_a_ring_that_fails_its_self_test_is_not_sealed(ring, sealing):
    """
    F13: a mismatched pair does not get into a store.
    """
    wrong = replace(ring.records[1], private_jwk=generate_key().private_jwk)

    with pytest.raises(SelfTestFailed):
        seal_ring(KeyRing("acme", (ring.records[0], wrong, ring.records[2])), revision=1, keys=sealing)


def test_a_blob_cut_anywhere_is_refused(blob, opened):
    """
    Every proper prefix is refused as empty, cut off or no ring at all.
    """
    problems = set()
    for length in range(len(blob)):
        with pytest.raises(RingCorrupt) as refusal:
            opened(blob[:length])
        problems.add(refusal.value.problem)

    assert problems == {"empty", "not_sealed", "truncated"}


def test_a_blob_with_a_flipped_bit_is_refused(blob, opened):
    """
    One bit, in every octet: nothing opens, also where base64url would leave bits unused.
    """
    for place in range(len(blob)):
        changed = bytearray(blob)
        changed[place] ^= 1 << place % 7

        with pytest.raises((RingCorrupt, RingOfAnotherWorkspace, SealingKeyUnknown, SealingKeyWrong)):
            opened(bytes(changed))


@pytest.mark.parametrize("extra", [b"\n", b"A", b".", b"=", b" ", b"\x00"])
def test_a_blob_with_something_after_it_is_refused(blob, opened, extra):
    """
    A ring has one spelling.
    """
    with pytest.raises(RingCorrupt):
        opened(blob + extra)


def test_a_blob_that_is_too_large_is_not_looked_at(opened):
    """
    Reading is bounded.
    """
    with pytest.raises(RingCorrupt) as refusal:
        opened(b"A" * (MAX_BLOB_OCTETS + 1))

    assert refusal.value.problem == "too_large"


@pytest.mark.parametrize(
    "garbage",
    [
        b"garbage",
        b"\x00" * 100,
        b'{"keys": []}',
        b"....",
        b"bm8.A.A.A.A",
        urlsafe_b64encode(b"[" * 700) + b"....",
        b"A" * 2000 + b"....",
        urlsafe_b64encode(b'["ws"]') + b"....",
        urlsafe_b64encode(b'"ws"') + b"....",
        urlsafe_b64encode(b"5") + b"....",
    ],
)
def test_garbage_is_no_sealed_ring(garbage, opened):
    """
    Whatever stands in the file, the answer is our own error.
    """
    with pytest.raises(RingCorrupt) as refusal:
        opened(garbage)

    assert refusal.value.problem == "not_sealed"


@pytest.mark.parametrize(
    "change",
    [
        {"alg": "A256GCMKW"},
        {"alg": "PBES2-HS256+A128KW"},
        {"enc": "A128GCM"},
        {"cty": "JWT"},
        {"zip": "DEF"},
        {"crit": ["ws"]},
        {"ws": "A/B"},
        {"ws": 5},
        {"ws": ...},
        {"kid": "../x"},
        {"kid": ["2026-11"]},
        {"kcv": "short"},
        {"kcv": "\ud800" * 22},
        {"rev": 0},
        {"rev": True},
        {"rev": "7"},
        {"rev": 7.0},
        {"rev": 2**53},
    ],
)
def test_another_kind_of_header_is_no_sealed_ring(blob, opened, change):
    """
    Algorithms, compression, content type, unknown and malformed members are refused before any key is touched.
    """
    with pytest.raises(RingCorrupt) as refusal:
        opened(with_header(blob, **change))

    assert refusal.value.problem == "not_sealed"


def test_a_header_with_a_repeated_member_is_no_sealed_ring(blob, opened):
    """
    Two readers could take it for different rings.
    """
    twice = json.dumps(header_of(blob))[:-1] + ', "rev": 7}'

    with pytest.raises(RingCorrupt) as refusal:
        opened(urlsafe_b64encode(twice.encode()).rstrip(b"=") + blob[blob.index(b".") :])

    assert refusal.value.problem == "not_sealed"


def test_a_changed_revision_is_found(blob, opened):
    """
    An older blob cannot be dressed up as a newer one: the header is authenticated.
    """
    with pytest.raises(RingCorrupt) as refusal:
        opened(with_header(blob, rev=8))

    assert refusal.value.problem == "damaged"


def test_a_blob_of_another_workspace_is_refused(blob, opened):
    """
    Put in another place, it says whose ring it is.
    """
    with pytest.raises(RingOfAnotherWorkspace) as refusal:
        opened(blob, workspace="globex")

    assert (refusal.value.found, refusal.value.expected) == ("acme", "globex")


def test_a_blob_that_claims_another_workspace_does_not_open(blob, opened):
    """
    With a changed header the key derived for the claimed workspace does not fit.
    """
    with pytest.raises(SealingKeyWrong):
        opened(with_header(blob, ws="globex"), workspace="globex")


def test_content_of_another_workspace_does_not_pass(other_ring, sealing, opened):
    """
    Also what a holder of the sealing key sealed under the wrong header is refused.
    """
    with pytest.raises(RingOfAnotherWorkspace):
        opened(sealed(sealing, dump_ring(other_ring)))


@pytest.mark.parametrize("content", [b"", b"{}", b"not json"])
def test_sealed_content_that_is_no_ring_is_refused(sealing, opened, content):
    """
    A good seal does not make a good ring.
    """
    with pytest.raises(RingCorrupt) as refusal:
        opened(sealed(sealing, content))

    assert refusal.value.problem == "content"


def test_sealed_content_with_a_mismatched_pair_is_refused(ring, sealing, opened):
    """
    F13: the self-test runs on every opening.
    """
    document = json.loads(dump_ring(ring))
    document["records"][1]["private_jwk"]["d"] = document["records"][2]["private_jwk"]["d"]

    with pytest.raises(SelfTestFailed) as failure:
        opened(sealed(sealing, json.dumps(document)))

    assert failure.value.kid == ring.records[1].kid


def test_an_unknown_sealing_key_is_named(ring, opened):
    """
    F06: the message says which id is needed and which are configured.
    """
    blob = seal_ring(ring, revision=1, keys=SealingKeys(OLD))

    with pytest.raises(SealingKeyUnknown) as refusal:
        opened(blob)

    assert (refusal.value.needed, refusal.value.configured) == ("2026-05", ("2026-11",))


def test_a_wrong_sealing_key_of_the_right_id_is_told_from_damage(blob, opened):
    """
    F06: the check value says that the key is another one, not that the file is broken; no key octets are shown.
    """
    wrong = SealingKeys(SealingKey("2026-11", b"\x33" * 32))

    with pytest.raises(SealingKeyWrong) as refusal:
        opened(blob, keys=wrong)

    assert refusal.value.needed == "2026-11"
    assert "33" * 4 not in str(refusal.value)


def test_an_older_sealing_key_still_opens(ring, opened, sealing):
    """
    F06: with old and new configured, rings sealed under either open, and the first seals.
    """
    both = SealingKeys(sealing.current, OLD)
    old_blob = seal_ring(ring, revision=1, keys=SealingKeys(OLD))

    again = seal_ring(opened(old_blob, keys=both)[0], revision=2, keys=both)

    assert header_of(again)["kid"] == "2026-11"
    assert opened(again, keys=sealing) == (ring, 2)


def test_each_workspace_has_a_key_of_its_own(sealing):
    """
    Keys and check values of two workspaces differ, also where the names run into each other.
    """
    derived = [_derive(sealing.current, name) for name in ("acme", "acme2", "a")]

    assert len({value.check_value for value in derived}) == 3
    assert len({value.key.as_dict(private=True)["k"] for value in derived}) == 3


def test_the_derivation_is_that_of_rfc_5869(sealing):
    """
    A ring sealed today opens tomorrow: HKDF-SHA256 with a tag, a zero octet and the length-prefixed workspace, written out.
    """
    info = b"customer-context:ring-sealing:v1" + b"\x00" + b"\x00\x04" + b"acme"
    extracted = hmac.digest(bytes(32), sealing.current.secret, "sha256")
    first = hmac.digest(extracted, info + b"\x01", "sha256")
    second = hmac.digest(extracted, first + info + b"\x02", "sha256")

    derived = _derive(sealing.current, "acme")

    assert derived.key.raw_value == first
    assert urlsafe_b64decode(derived.check_value + "==") == second[:16]


def test_joserfc_opens_a_blob_with_the_derived_key(ring, blob, sealing):
    """
    It is an ordinary JWE.
    """
    key = _derive(sealing.current, "acme").key

    opened = jwe.decrypt_compact(blob, OctKey.import_key(key.as_dict(private=True)), registry=_REGISTRY)

    assert opened.plaintext == dump_ring(ring)


def test_the_longest_history_fits(ring, sealing, opened, times):
    """
    As many ended and retiring keys as a ring can have, each with the longest reason in the widest letters, seal and open.
    """
    start = ring.latest_instant
    gone = revoke(ring, ring.standbys[0].kid, now=start, times=times, reason="\U0001d518" * 500)
    retiring = rotate(gone.ring, now=start + 350, times=times, expected_active=None, reason="\U0001d518" * 500)
    old, like = gone.ring.record(ring.standbys[0].kid), retiring.ring.record(retiring.old_kid)
    keys = [generate_key() for _ in range(MAX_RECORDS - len(ring.records))]
    records = [
        replace(old if number < MAX_HISTORY else like, kid=key.kid, public_jwk=key.public_jwk)
        for number, key in enumerate(keys[: MAX_HISTORY + 16])
    ]
    full = KeyRing("acme", (*ring.records, *records))

    blob = seal_ring(full, revision=1, keys=sealing)

    assert opened(blob) == (full, 1)
    assert len(blob) < MAX_BLOB_OCTETS
