"""
Customers' sign-ins at two instances on one Redis: used once, ended everywhere, and nobody takes what is another client's.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from issuer.limits import Rates
from issuer.state_redis import redis_state

from .estate import SEALING
from .instances import closed
from .redis_kinds import begin_epoch
from .signed_in import SignedIn, with_provider
from .world import NOW

CALLS = 20


@pytest.fixture
def sites(redis_server, patient):
    """
    Two instances that met their Redis an hour ago, without limits; what providers sign at either is never the same.
    """
    begin_epoch(redis_server, age_s=3600)
    unlimited = Rates(client=None, customer=None)

    def build(**parts):
        return SignedIn(
            with_provider(), state=redis_state(redis_server.url, SEALING, unlimited, now=lambda: NOW), **parts
        )

    first = build()
    second = build(beside=first)
    second.ids = count(1000)
    with closed([first, second]) as built:
        assert all(each.http for each in built)
        yield built


def at_once(call):
    with ThreadPoolExecutor(CALLS) as threads:
        return Counter(threads.map(call, range(CALLS)))


def outcome(answer):
    status, _, told = answer
    return told.get("reason", status)


def test_an_id_token_is_used_once_wherever_it_is_brought(sites):
    """
    Twenty at once, recorded and exchanged, at either instance: one of them gets through.
    """
    token = sites[0].id_token(alg="ES256", nonce="n-1")

    def bring(number):
        site = sites[number % 2]
        if number % 4 < 2:
            return outcome(site.record(token, nonce="n-1"))
        return site.exchange(token, nonce="n-1").status

    got = at_once(bring)

    assert got[200] + got[201] == 1
    assert got["used"] + got[400] == CALLS - 1


def test_a_nonce_is_used_once_wherever_it_is_brought(sites):
    """
    Twenty ID tokens with one nonce, all at once: one of them is recorded.
    """
    tokens = [sites[0].id_token(nonce="n-1") for _ in range(CALLS)]

    got = at_once(lambda number: outcome(sites[number % 2].record(tokens[number], nonce="n-1")))

    assert got == {201: 1, "nonce_used": CALLS - 1}


def test_nobody_uses_up_what_is_another_clients(sites):
    """
    An ID token and its nonce that another client, another workspace or a wrong nonce was tried with first are as good as new.
    """
    here, there = sites
    token = here.id_token(nonce="n-1")
    own = here.id_token(aud="app-4", nonce="n-1")

    refused = [
        outcome(there.record(token, client="c1", nonce="n-1")),
        there.exchange(token, client="c1", nonce="n-1").reason,
        outcome(there.record(token, nonce="n-2")),
        outcome(there.record(token)),
        outcome(there.record(token, nonce="n-1", conversation="\n")),
        outcome(there.record(there.id_token(nonce="n-1", key="rsa-2", header={"kid": "rsa-1"}), nonce="n-1")),
    ]
    elsewhere = [
        outcome(there.record(own, client="c1", nonce="n-1")),
        outcome(there.record(token, workspace="acme", nonce="n-1")),
    ]

    assert refused == ["client", "id_token:client", "nonce", "nonce", 400, "signature"]
    assert elsewhere == [201, 201]
    assert outcome(here.record(token, nonce="n-1")) == 201


@pytest.mark.parametrize("way", ["end", "logout", "next customer"])
def test_what_ended_at_one_instance_has_ended_at_the_other(way, sites):
    """
    Neither instance mints from it any more, from the answer on.
    """
    here, there = sites
    told = here.record(here.id_token(sid="session-1"), conversation="conv_1")[2]
    assert [site.ask_with(told["sign_in_id"]).status for site in sites] == [200, 200]

    match way:
        case "end":
            assert there.about("DELETE", f"/sign-ins/{told['handle']}")[0] == 204
        case "logout":
            assert there.log_out(there.logout_token(sid="session-1"))[0] == 200
        case _:
            next_one = there.record(there.id_token(sub="another"), conversation="conv_1")[2]
            assert next_one["confirmed_after"] == NOW + 5

    assert {site.ask_with(told["sign_in_id"]).reason for site in sites} == {"sign_in:unknown"}


def test_customers_who_alternate_in_a_conversation(sites):
    """
    A, B and A again, at whichever instance: only the last one is signed in, and what A confirmed the first time is over.
    """
    ids = []
    for number, sub in enumerate(["a", "b", "a"]):
        site = sites[number % 2]
        ids.append(site.record(site.id_token(sub=sub), conversation="conv_1")[2]["sign_in_id"])
    details = sites[0].details(confirmation={"by": "client", "at": NOW})

    alive = [sites[1].ask_with(each).reason for each in ids]

    assert alive == ["sign_in:unknown", "sign_in:unknown", None]
    assert sites[1].ask_with(ids[2], authorization_details=details).reason == "confirmation:other_customer"
