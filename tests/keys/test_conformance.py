"""
The rules of the standards that fall to the keys: each has its test, or the part that it waits for.
"""

import csv
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / ".." / "shared" / "conformance.csv"

ELSEWHERE = "shown where tokens and key sets are read, by the verifier's tests"
ROUTE = "shown where the key set is served, by the issuer's tests"

PLACES = {
    "seed-jwks-place": ROUTE,
    "es-64-octets": "test_es256.py: test_signatures_are_64_octets_and_repeat",
    "ec-coords": "test_key.py: test_a_coordinate_keeps_its_leading_zero",
    "bcp-key-one-alg": ELSEWHERE,
    "bcp-curve-check": "test_key.py: test_a_point_off_the_curve_fails_the_self_test",
    "bcp-rfc6979": "test_es256.py: test_signatures_are_those_of_rfc_6979",
    "jwks-format": ROUTE,
    "jwks-members": "test_ring.py: test_the_key_set_holds_public_members_only",
    "jwks-no-private": "test_cases.py: test_b04_no_private_member_is_ever_published",
    "kid-thumbprint": "test_key.py: test_the_thumbprint_is_the_hash_of_the_required_members_alone",
    "key-states": "test_lifecycle_properties.py: test_any_steps_at_any_clock_keep_the_ring_whole",
    "key-one-purpose": "shown where tokens are minted, by the issuer's tests: the signer is handed to nothing else",
    "key-cryptoperiod": "test_inventory.py: test_the_inventory_tells_what_happens_next",
    "key-overlap": "test_lifecycle_properties.py: test_planned_rotations_never_meet_a_verifier_that_lacks_the_key",
    "key-compromise": "test_lifecycle.py: test_revoking_the_active_key_promotes_a_standby",
    "key-destroy": "test_store.py: test_a_revocation_leaves_no_private_octets",
    "key-storage": "test_sealing.py: test_a_blob_shows_no_private_part",
    "agility": "test_key.py: test_a_second_algorithm_is_one_entry_in_the_list",
}


@pytest.mark.skipif(not RULES.exists(), reason="the shared folder is not there")
def test_every_rule_for_keys_has_its_place():
    """
    No rule whose side is `keys` is left out silently, and every test that is named exists.
    """
    with RULES.open(newline="") as file:
        rules = {rule["id"] for rule in csv.DictReader(file) if rule["side"] == "keys"}

    assert set(PLACES) == rules
    for place in PLACES.values():
        file, _, name = place.partition(": ")
        if name.startswith("test_"):
            assert f"def {name}(" in Path(__file__).with_name(file).read_text()
