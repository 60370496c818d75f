"""
What operations ask: liveness, readiness, metrics.
"""

from issuer.rings import LEASE_S
from keys import RingMissing


def test_a_process_that_answers_is_alive(client, harness):
    """
    Whatever the state of the keys: restarting would not help.
    """
    harness.monotonic.at += LEASE_S + 1

    response = client.get("/health/live")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_a_service_whose_rings_are_confirmed_is_ready(client, harness):
    """
    Each workspace is listed with what an operator looks for.
    """
    harness.monotonic.at += 2.04

    response = client.get("/health/ready")

    row = {
        "usable": True,
        "view_age_seconds": 2.0,
        "active_key_age_seconds": 1000,
        "rotation_overdue": False,
        "rotation_problem": None,
        "key_age_alarm": False,
        "problem": None,
    }
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    assert response.json() == {"status": "ok", "workspaces": {"root": row, "acme": row}}


def test_one_ring_that_cannot_be_used_makes_the_service_unready(client, harness):
    """
    503 with the problem by its code; the others are shown as they are.
    """
    harness.stores["acme"].failure = RingMissing(where="/secret/path", workspace="acme")
    harness.monotonic.at += LEASE_S + 1
    harness.poll()

    response = client.get("/health/ready")

    workspaces = response.json()["workspaces"]
    assert response.status_code == 503
    assert response.headers["retry-after"]
    assert response.json()["status"] == "unavailable"
    assert (workspaces["acme"]["usable"], workspaces["acme"]["problem"]) == (False, "ring_missing")
    assert (workspaces["root"]["usable"], workspaces["root"]["problem"]) == (True, None)
    assert "/secret/path" not in response.text


def test_an_overdue_rotation_is_shown_but_keeps_the_service_ready(client, harness):
    """
    An old key is for an operator to look at; refusing to mint would make it an outage.
    """
    harness.clock.at += harness.service.times.rotation_s

    response = client.get("/health/ready")

    assert response.status_code == 200
    assert response.json()["workspaces"]["acme"]["rotation_overdue"]


def test_no_key_id_is_shown(client, harness):
    """
    Health answers need no authentication, so they say no more than they must.
    """
    kids = [record.kid for store in harness.stores.values() for record in store.ring.records]

    text = client.get("/health/ready").text + client.get("/metrics").text

    assert not [kid for kid in kids if kid in text]


def test_metrics_have_the_text_format(client):
    """
    The media type that every scraper reads.
    """
    response = client.get("/metrics")

    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'customer_context_ring_usable{workspace="acme"} 1.0' in response.text
