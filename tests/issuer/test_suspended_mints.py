"""
Suspensions at the mint: whoever is cut off gets no token from the moment the ring says so, and everybody else does.
"""

import asyncio

import pytest

from issuer.suspensions import Suspension, Suspensions, Target, ring_with_suspensions

from .world import BILLING, NOW, SHOP


@pytest.fixture
def suspend(build_site):
    """
    Build a service whose ring suspends these targets, and hand it out.
    """

    def suspend(*targets, until=None):
        site = build_site()
        suspensions = Suspensions(
            tuple(
                Suspension(id=f"sus-{at}", target=target, reason="leaked", at=NOW - 10, until=until)
                for at, target in enumerate(targets)
            )
        )
        store = site.ring_stores["root"]
        store.ring, store.revision = ring_with_suspensions(store.ring, suspensions), store.revision + 1
        asyncio.run(site.service.rings["root"].poll())
        return site

    return suspend


@pytest.mark.parametrize(
    ("target", "error"),
    [
        (Target("client", "orc_main"), "unauthorized_client"),
        (Target("agent", "agt_support"), "access_denied"),
        (Target("customer", "cus_48213", "shop-login"), "access_denied"),
        (Target("action", "cancel_order"), "access_denied"),
    ],
)
def test_nothing_is_minted_for_what_is_suspended(suspend, target, error):
    """
    D21: the code says whether it is the client itself; the log says which suspension, and the key has its mints left.
    """
    site = suspend(target)

    answer = site.ask(authorization_details=site.details())

    assert answer.refusal == (400, error, f"suspended:{target.kind}")
    assert dict(site.events)["token_refused"]["suspension"] == "sus-0"
    assert "cus_48213" not in answer.text
    assert site.state.claims == []


def test_everybody_else_goes_on(suspend):
    """
    Another client, agent, customer, namespace or action, and the same client at another workspace.
    """
    others = [
        Target("client", "orc_second"),
        Target("agent", "agt_orders"),
        Target("customer", "cus_1", "shop-login"),
        Target("customer", "cus_48213", "bank-login"),
        Target("action", "note_order"),
    ]
    site = suspend(*others)

    assert site.ask(authorization_details=site.details()).status == 200
    assert site.ask(client="orc_second").error == "unauthorized_client"
    assert site.ask(client="orc_second", workspace="acme").status == 200


def test_a_suspended_action_does_not_stop_reads(suspend):
    """
    A read has no action.
    """
    site = suspend(Target("action", "cancel_order"))

    assert [site.ask(scope="orders:read").status, site.ask(resource=BILLING).status] == [200, 200]


@pytest.mark.parametrize("agent", ["agt_orders", "agt_support", "agt_of_another_issuer"])
def test_every_agent_of_the_chain_counts(suspend, agent):
    """
    The one that calls, the one it acts for, and one of another issuer further in.
    """
    site = suspend(Target("agent", agent))
    chain = {"sub": "agt_support", "act": {"sub": "agt_of_another_issuer", "iss": "https://other.example"}}

    answer = site.ask(subject_token=site.subject_token(act=chain), **site.actor())

    assert answer.refusal == (400, "access_denied", "suspended:agent")


def test_a_suspension_ends_by_itself(suspend):
    """
    At its instant, without a change of the ring.
    """
    site = suspend(Target("client", "orc_main"), until=NOW + 60)

    assert site.ask().error == "unauthorized_client"
    site.clock.at = NOW + 60
    assert site.ask(resource=SHOP).status == 200


def test_a_ring_whose_suspensions_cannot_be_read_is_not_used(suspend):
    """
    The one in use goes on until its lease is over, then nothing is minted: somebody might be let through.
    """
    site = suspend(Target("client", "orc_main"))
    ring, store = site.service.rings["root"], site.ring_stores["root"]
    spoilt = type(store.ring)(store.ring.workspace, store.ring.records, {"suspensions": [["sus-9"]]})
    store.ring, store.revision = spoilt, store.revision + 1

    asyncio.run(ring.poll())

    assert ring.status(NOW).problem == "suspensions_unreadable"
    assert site.ask().error == "unauthorized_client"
    site.monotonic.at += 15.5
    assert site.ask(client="orc_second").refusal == (503, "temporarily_unavailable", "ring:unavailable")


def test_what_is_minted_is_counted_under_its_key(site):
    """
    By audience and action; what is refused is not counted.
    """
    kid = site.service.rings["root"].current(NOW).kid
    before = site.service.mints.under({kid}, NOW).total

    site.ask(scope="orders:read")
    site.ask(authorization_details=site.details())
    site.ask(scope="nothing:such")

    minted = site.service.mints.under({kid}, NOW)
    assert minted.total == before + 2
    assert {(each.audience, each.action) for each in minted.counts} >= {(SHOP, None), (SHOP, "cancel_order")}
