"""
Keyed hashes: every part where it stands, every sealing key, and nothing in common between purposes and workspaces.
"""

import hmac
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from issuer.fingerprints import Fingerprints, keyed_name
from keys import SealingKey, SealingKeys

NEW, OLD = SealingKey("2026-11", b"\x11" * 32), SealingKey("2026-05", b"\x22" * 32)
PARTS = ["digest", "cus_1", "shop", "https://api.shop.example"]


def test_a_fingerprint_binds_every_part_where_it_stands():
    """
    Digest, customer, connection and audience each count, and none of them can lend characters to its neighbour.
    """
    hashes = Fingerprints(SealingKeys(NEW), "idempotency")
    others = [["x" if index == n else part for index, part in enumerate(PARTS)] for n in range(4)]
    shifted = [["digestc", "us_1", *PARTS[2:]], ["digest", "cus_1s", "hop", PARTS[3]], ["", "digestcus_1", *PARTS[2:]]]

    made = {hashes.of("root", *each) for each in [PARTS, *others, *shifted, PARTS[:3], [*PARTS, ""]]}

    assert len(made) == 10
    assert all(len(one) == 32 for (one,) in made)
    assert hashes.of("root", *PARTS) == Fingerprints(SealingKeys(NEW), "idempotency").of("root", *PARTS)


def test_it_is_keyed():
    """
    HMAC-SHA-256 under a secret that the sealing key gives for this purpose and workspace: without it nobody can try a guess.
    """
    framed = b"".join(len(part).to_bytes(4) + part.encode() for part in PARTS)

    (made,) = Fingerprints(SealingKeys(NEW), "idempotency").of("root", *PARTS)

    assert made == hmac.digest(NEW.derive("idempotency", "root"), framed, sha256)
    assert made != sha256(framed).digest()


def test_purposes_and_workspaces_have_nothing_in_common():
    """
    The same parts are something else elsewhere.
    """
    one, other = (Fingerprints(SealingKeys(NEW), purpose) for purpose in ("idempotency", "admin-records"))

    assert len({one.of("root", *PARTS), one.of("acme", *PARTS), other.of("root", *PARTS)}) == 3


def test_what_was_hashed_before_a_rotation_is_known_after_it():
    """
    There is one for each sealing key, that of the one which seals in front.
    """
    before, during = (Fingerprints(SealingKeys(*keys), "idempotency") for keys in ((OLD,), (NEW, OLD)))

    assert during.of("root", *PARTS)[1:] == before.of("root", *PARTS)
    assert during.of("root", *PARTS)[:1] == Fingerprints(SealingKeys(NEW), "idempotency").of("root", *PARTS)


@given(st.lists(st.text(max_size=5), max_size=3), st.lists(st.text(max_size=5), max_size=3))
def test_a_keyed_name_stands_for_its_parts(one, other):
    """
    It has one length, is the same for the same parts alone, however they are divided, and another one under another key.
    """
    assert len(keyed_name(b"k", *one)) == 22
    assert (keyed_name(b"k", *one) == keyed_name(b"k", *other)) is (one == other)
    assert keyed_name(b"k", *one) != keyed_name(b"l", *one)
    assert keyed_name(b"k", "\ud800") != keyed_name(b"k", "\udfff")
