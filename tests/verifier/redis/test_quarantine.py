"""
A Redis that may have forgotten tokens accepts none that it may have forgotten, whoever asks and through whatever connection.
"""

import logging
import time

import pytest

from verifier import CustomerContextError, CustomerContextVerifier, ReplayStoreUnavailable
from verifier.replay_redis import ReplayQuarantine

from .servers import Epochs, replicates, wait_until

EVERY_SERVER = True
MARGIN_S = 5


@pytest.fixture
def used(store, settled):
    """
    A store through which one token was used, on a Redis that it has known for an hour.
    """
    held, now = store(settled.url), time.time()
    assert held.use("before", int(now) + 60, now) is True
    return held


def refuses(held, jti, issued_at, expires_at=None):
    """
    Tell whether a token is refused as one that may have been used before the epoch.
    """
    with pytest.raises(ReplayStoreUnavailable) as refusal:
        held.use(jti, expires_at or int(issued_at) + 60, issued_at)
    return isinstance(refusal.value, ReplayQuarantine)


def accepts_newer(held, server):
    """
    Tell whether a token that was issued since is accepted, a minute later.
    """
    Epochs(server).age(60)
    now = time.time()
    return held.use("after", int(now) + 58, now - 2)


def test_a_redis_that_no_store_has_met_begins_an_epoch(store, server, caplog):
    """
    Opening writes the epoch, with the server's identity and time, and says so; tokens issued up to then are refused.
    """
    held, now = store(server.url), time.time()

    with caplog.at_level(logging.WARNING, "verifier.replay"):
        held.open()

    assert (Epochs(server).record or "").partition(" ")[0] == Epochs(server).identity
    assert 0 <= Epochs(server).age_s < 5
    assert "epoch" in caplog.text
    assert refuses(held, "a", now)
    assert accepts_newer(held, server)


def test_opening_again_changes_nothing(store, server):
    """
    The first who opens writes the epoch; whoever opens later finds it.
    """
    store(server.url).open()
    record = Epochs(server).record

    store(server.url).open()

    assert Epochs(server).record == record


def test_the_epoch_is_there_before_the_first_token(store, server):
    """
    A store that is opened when the program starts serves tokens as soon as the margin has passed.
    """
    held = store(server.url)
    held.open()
    Epochs(server).begin(age_s=MARGIN_S + 3.5)
    now = time.time()

    assert held.use("a", int(now) + 58, now - 2) is True


@pytest.mark.parametrize("tolerance", [0, 30, 60])
def test_the_margin_is_the_tolerance_and_five_seconds(store, server, tolerance):
    """
    A token is refused when it was issued up to the epoch plus the tolerance, which its expiry shows, plus 5 s.
    """
    now = 1_767_225_600.0
    held, margin = store(server.url, now=lambda: now), MARGIN_S + tolerance
    Epochs(server).begin(age_s=margin + 20)

    issued_at = int(now) - 20
    expires_at = issued_at + 60 + tolerance

    assert held.use("younger", expires_at + 2, issued_at + 2) is True
    assert refuses(held, "older", issued_at - 2, expires_at - 2)


def test_a_short_token_hides_no_tolerance(store, server):
    """
    The tolerance that one token shows counts for those that live too short to show it.
    """
    now = 1_767_225_600.0
    held = store(server.url, now=lambda: now)
    scope = held.scoped()
    Epochs(server).begin(age_s=25)

    assert held.run(scope.use("short, the first", int(now) + 10, now - 10)) is True
    with pytest.raises(ReplayQuarantine):
        held.run(scope.use("long", int(now) + 80, now - 10))
    with pytest.raises(ReplayQuarantine):
        held.run(scope.use("short", int(now) + 10, now - 10))


def test_without_an_iat_a_token_is_as_old_as_it_can_be(store, server):
    """
    An unscoped use is refused until the epoch is older than whatever token could be behind it.
    """
    now = 1_767_225_600.0
    held = store(server.url, now=lambda: now)

    Epochs(server).begin(age_s=60)
    with pytest.raises(ReplayQuarantine):
        held.use("a", int(now) + 60)

    Epochs(server).begin(age_s=67)
    assert held.use("a", int(now) + 60) is True


def test_the_clocks_of_redis_and_verifier_need_not_agree(store, settled):
    """
    Each age is taken on one clock: a verifier that lives in another year is served, and quarantined, like any other.
    """
    now = 946_684_800.0
    held = store(settled.url, now=lambda: now)

    assert held.use("a", int(now) + 60, now - 1) is True
    Epochs(settled).begin()
    assert refuses(held, "b", now - 1)


def test_a_restart_without_data(used, store, settled):
    """
    After a restart that lost everything the token is refused by a store that lived through it and by one started after it.
    """
    settled.kill()
    settled.start()
    now = time.time()

    assert refuses(store(settled.url), "before", now)
    assert refuses(used, "before", now)
    assert accepts_newer(used, settled)


def test_a_restart_with_old_data(store, start_server):
    """
    A snapshot brings the epoch record back, but not the identity it names.
    """
    server, now = start_server("--save", "3600 1", "--appendonly", "no"), time.time()
    held = store(server.url)
    held.open()
    Epochs(server).begin(age_s=3600)
    with server.client() as client:
        client.save()
    assert held.use("since the snapshot", int(now) + 60, now) is True
    server.kill()
    server.start()

    assert Epochs(server).age_s > 3000
    assert refuses(held, "since the snapshot", now)
    assert Epochs(server).age_s < 100


@pytest.mark.parametrize("command", ["FLUSHALL", "FLUSHDB", "DEL cc:e"])
def test_a_flush(used, settled, command):
    """
    Without its record a primary begins an epoch, although the connection and the process stayed.
    """
    with settled.client() as client:
        client.execute_command(*command.split())
    now = time.time()

    assert refuses(used, "never seen" if command == "DEL cc:e" else "before", now)
    assert accepts_newer(used, settled)


def test_a_failover_and_the_way_back(used, start_server, settled, store):
    """
    A primary that was a replica for a while begins an epoch, also on a connection that slept through it.
    """
    other = start_server("--save", "", "--repl-diskless-sync-delay", "0", like=settled)
    with settled.client() as client, other.client() as there:
        client.replicaof("127.0.0.1", str(other.port))
        wait_until(lambda: replicates(settled))
        there.ping()
        client.replicaof("NO", "ONE")
    now = time.time()

    assert refuses(used, "before", now)
    assert refuses(used, "never seen", now)
    assert accepts_newer(used, settled)


def test_a_record_of_another_primary(used, settled):
    """
    What was replicated from elsewhere says nothing about this primary.
    """
    Epochs(settled).begin(age_s=3600, identity="0123456789" * 4)

    assert refuses(used, "x", time.time())


@pytest.mark.parametrize(
    "held_there", ["", "nonsense", "{identity} ", "{identity} x", "{identity} nan", "{identity} inf"]
)
def test_a_record_that_says_nothing(used, settled, held_there):
    """
    A record that cannot be read is none.
    """
    with settled.client() as client:
        client.set("cc:e", held_there.format(identity=Epochs(settled).identity))
    now = time.time()

    assert refuses(used, "x", now)
    assert Epochs(settled).age_s < 100


def test_a_clock_of_redis_that_was_set_back(used, settled):
    """
    An epoch that lies in the future begins anew, instead of refusing every token until then.
    """
    Epochs(settled).begin(age_s=-3600)
    now = time.time()

    assert refuses(used, "x", now)
    assert 0 <= Epochs(settled).age_s < 100
    assert accepts_newer(used, settled)


def test_a_token_in_quarantine_is_not_burnt(used, settled):
    """
    It is refused as unavailable each time, so that `replayed` is heard of tokens that were used and of no others.
    """
    Epochs(settled).begin()
    now = time.time()

    assert refuses(used, "x", now)
    assert refuses(used, "x", now)
    with settled.client() as client:
        assert len(client.keys("cc:r:*")) == 1


def test_a_replay_in_quarantine_is_a_replay(used, settled):
    """
    What a record says that is there is true in any epoch.
    """
    Epochs(settled).begin()
    now = time.time()

    assert used.use("before", int(now) + 60, now) is False


@pytest.mark.parametrize(("hidden", "survives"), [("-info", True), ("+info", False)])
def test_a_service_that_hides_its_identity(store, start_server, hidden, survives):
    """
    Without INFO only a lost record begins an epoch: what the documentation says that this cannot see.
    """
    server = start_server("--save", "3600 1", "--appendonly", "no")
    for _ in range(2):
        with server.client() as client:
            client.acl_setuser("shop", enabled=True, passwords=["+pw"], keys="*", commands=["+@all", hidden])
            client.save()
        held = store(f"redis://shop:pw@127.0.0.1:{server.port}")
        held.open()
        server.restart()
    with server.client() as client:
        client.acl_setuser("shop", enabled=True, passwords=["+pw"], keys="*", commands=["+@all", hidden])
    record = Epochs(server).record

    held.open()

    assert (Epochs(server).record == record) is survives
    assert (record or "").startswith("- ") is survives
    assert accepts_newer(held, server)


def test_a_verifier_says_that_it_cannot_tell(store, face, settled, mint, wall_clock):
    """
    Through a verifier a token of before the epoch is `replay_unavailable`, and the operator reads why.
    """
    if face.__name__.startswith("Async"):
        pytest.skip("the blocking verifier takes the blocking store")
    held = store(settled.url, now=wall_clock)
    verifier = CustomerContextVerifier(
        issuer=mint.issuer, audience=mint.audience, jwks=mint.jwks, now=wall_clock, replay_store=held.store
    )
    token = mint.signed()
    assert verifier.verify(token)
    with settled.client() as client:
        client.flushall()

    with pytest.raises(CustomerContextError) as refusal:
        verifier.verify(token)

    assert (refusal.value.reason, refusal.value.status) == ("replay_unavailable", 503)
    assert "ReplayQuarantine" in refusal.value.hint
