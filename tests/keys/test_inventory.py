"""
The inventory of a ring.
"""

import json

from keys import inventory, revoke, rotate


def test_the_inventory_tells_what_happens_next(ring, now, times):
    """
    Each key has its state, all instants, and the next thing that will happen to it with its instant.
    """
    rotation = rotate(ring, now=now + 350, times=times, expected_active=None)
    later = revoke(rotation.ring, rotation.standby_kid, now=now + 400, times=times, reason="leaked").ring

    rows = inventory(later, now + 400)

    assert [row["state"] for row in rows] == ["active", "standby", "standby", "retiring", "revoked"]
    assert [row["next"] for row in rows] == [
        {"what": "rotation_due", "at": now + 350 + 2_592_000},
        {"what": "may_activate", "at": now + 350},
        {"what": "may_activate", "at": now + 750},
        {"what": "unpublish", "at": now + 490},
        None,
    ]
    assert [row["published"] for row in rows] == [True, True, True, True, False]
    assert rows[4]["reason"] == "leaked"


def test_a_retiring_key_has_no_next_step_after_its_instant(ring, now, times):
    """
    When it has dropped out of the key set, nothing is left to happen.
    """
    rotation = rotate(ring, now=now + 350, times=times, expected_active=None)

    row = inventory(rotation.ring, rotation.unpublish_at)[3]

    assert (row["kid"], row["published"], row["next"]) == (rotation.old_kid, False, None)


def test_the_inventory_is_public(ring, now):
    """
    It is JSON and holds neither private parts nor whole JWKs.
    """
    text = json.dumps(inventory(ring, now))

    assert "jwk" not in text
    assert not any(record.private_jwk.reveal()["d"] in text for record in ring.records)
