"""
The format of a ring: written one way, read strictly.
"""

import json

import pytest

from keys import CacheTimes, KeyTimes, PrivateJWK, RingCorrupt, change_cache_times, generate_key, revoke, rotate
from keys.ring_json import FORMAT_VERSION, dump_ring, parse_ring


@pytest.fixture(scope="module")
def written(ring, times):
    """
    A ring with a record of nearly every state, as JSON.
    """
    start = ring.latest_instant
    changed = rotate(ring, now=start + 350, times=times, expected_active=None).ring
    changed = revoke(changed, changed.standbys[0].kid, now=start + 400, times=times, reason="verlorengegangen, é").ring
    return dump_ring(changed)


def refused(data):
    with pytest.raises(RingCorrupt) as refusal:
        parse_ring(data, where="ring.jwe")
    assert refusal.value.problem == "content"
    return str(refusal.value)


def test_a_ring_comes_back_as_it_was(ring):
    """
    Private parts and all.
    """
    assert parse_ring(dump_ring(ring), where="ring.jwe") == ring


def test_a_ring_is_written_one_way(written):
    """
    Reading and writing again gives the same octets; the version stands in front.
    """
    assert dump_ring(parse_ring(written, where="ring.jwe")) == written
    assert json.loads(written)["version"] == FORMAT_VERSION == 3


def test_changed_cache_times_come_back(ring, now):
    """
    With the instant until when earlier ones count.
    """
    changed = change_cache_times(ring, now=now, times=KeyTimes(max_age_s=60))

    assert parse_ring(dump_ring(changed), where="ring.jwe") == changed
    assert changed.cache_times == CacheTimes(max_age_s=60, stale_if_error_s=120, earlier_until=now + 350)


@pytest.mark.parametrize("version", [1, 2])
def test_a_ring_that_does_not_say_how_long_it_was_cached_counts_with_the_most(ring, version):
    """
    It opens, and the next save writes the present version.
    """
    document = json.loads(dump_ring(ring))
    del document["cache_times"]
    if version == 1:
        del document["companion"]

    opened = parse_ring(json.dumps({**document, "version": version}).encode(), where="ring.jwe")

    assert opened.records == ring.records
    assert opened.cache_times == CacheTimes(max_age_s=3600, stale_if_error_s=3600, earlier_until=0)
    assert json.loads(dump_ring(opened))["version"] == FORMAT_VERSION


def test_private_parts_are_written_for_keys_that_sign_or_will(written):
    """
    The store has no private octets of a key that stopped signing.
    """
    records = json.loads(written)["records"]

    assert {record["state"] for record in records if record["private_jwk"]} == {"active", "standby"}
    assert {record["state"] for record in records if record["private_jwk"] is None} == {"retiring", "revoked"}


def of(ring, state):
    """
    The first record in that state; which place it has in the ring is no matter of the format.
    """
    return next(record for record in ring["records"] if record["state"] == state)


DAMAGES = {
    "version 4": lambda ring: ring.update(version=4),
    "version 0": lambda ring: ring.update(version=0),
    "version 1 with a companion": lambda ring: ring.update(version=1),
    "version 2 with cache times": lambda ring: ring.update(version=2),
    "version is text": lambda ring: ring.update(version="3"),
    "companion missing": lambda ring: ring.pop("companion"),
    "cache times missing": lambda ring: ring.pop("cache_times"),
    "cache times are null": lambda ring: ring.update(cache_times=None),
    "a cache time missing": lambda ring: ring["cache_times"].pop("max_age_s"),
    "a cache time too many": lambda ring: ring["cache_times"].update(since=0),
    "a cache time is true": lambda ring: ring["cache_times"].update(max_age_s=True),
    "a cache time is text": lambda ring: ring["cache_times"].update(stale_if_error_s="60"),
    "a cache time is too large": lambda ring: ring["cache_times"].update(stale_if_error_s=3601),
    "the end of earlier ones is null": lambda ring: ring["cache_times"].update(earlier_until=None),
    "the end of earlier ones is negative": lambda ring: ring["cache_times"].update(earlier_until=-1),
    "version true": lambda ring: ring.update(version=True),
    "version missing": lambda ring: ring.pop("version"),
    "unknown member": lambda ring: ring.update(extra=1),
    "workspace is a number": lambda ring: ring.update(workspace=5),
    "workspace is no name": lambda ring: ring.update(workspace="A/B"),
    "records is an object": lambda ring: ring.update(records={}),
    "no records": lambda ring: ring.update(records=[]),
    "a record is null": lambda ring: ring["records"].append(None),
    "a record twice": lambda ring: ring["records"].append(ring["records"][-1]),
    "unknown member of a record": lambda ring: ring["records"][0].update(extra=1),
    "missing member of a record": lambda ring: ring["records"][0].pop("reason"),
    "unknown state": lambda ring: ring["records"][0].update(state="gone"),
    "state is a list": lambda ring: ring["records"][0].update(state=["active"]),
    "kid is a number": lambda ring: ring["records"][0].update(kid=1),
    "kid of another key": lambda ring: ring["records"][0].update(kid="A" * 43),
    "unknown algorithm": lambda ring: ring["records"][0].update(alg="none"),
    "instant is true": lambda ring: ring["records"][0].update(created_at=True),
    "instant is text": lambda ring: ring["records"][0].update(created_at="1796040000"),
    "instant is null": lambda ring: ring["records"][0].update(created_at=None),
    "instant is negative": lambda ring: ring["records"][0].update(created_at=-1),
    "reason is a number": lambda ring: ring["records"][0].update(reason=1),
    "public JWK is null": lambda ring: ring["records"][0].update(public_jwk=None),
    "public JWK of numbers": lambda ring: ring["records"][0]["public_jwk"].update(x=1),
    "public JWK with d": lambda ring: ring["records"][0]["public_jwk"].update(d="AA"),
    "private JWK is text": lambda ring: of(ring, "standby").update(private_jwk="AA"),
    "private JWK without d": lambda ring: of(ring, "standby")["private_jwk"].pop("d"),
    "private JWK with more": lambda ring: of(ring, "standby")["private_jwk"].update(k="AA"),
    "private JWK of another key": lambda ring: of(ring, "standby").update(
        private_jwk=of(ring, "active")["private_jwk"]
    ),
    "private part kept": lambda ring: of(ring, "retiring").update(private_jwk=generate_key().private_jwk.reveal()),
    "private part lost": lambda ring: of(ring, "standby").update(private_jwk=None),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_ring_with_one_thing_wrong_is_refused(damage, written):
    """
    Every member is looked at; the refusal holds none of the private parts.
    """
    document = json.loads(written)
    secrets = [record["private_jwk"]["d"] for record in document["records"] if record["private_jwk"]]
    DAMAGES[damage](document)

    message = refused(json.dumps(document).encode())

    assert not any(secret in message for secret in secrets)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"ring"',
        b"\xff\xfe{\x00}\x00",
        b"{} {}",
        b"[" * 100_000,
        b'{"version":NaN}',
        b'{"version":1.0}',
        b'{"version":1e400}',
        b'{"version":' + b"1" * 5000 + b"}",
        b'{"version":2,"version":2,"workspace":"acme","records":[],"companion":{}}',
        b'{"version":3,"workspace":"acme","records":[],"companion":{},"cache_times":{"max_age_s":1,"max_age_s":1}}',
    ],
)
def test_what_is_not_the_json_of_a_ring_is_refused(data):
    """
    Other values, other encodings, deep nesting, fractions, NaN and repeated members are refused with our own error.
    """
    refused(data)


def test_a_wrapped_private_part_is_written_open(ring):
    """
    The wrapper hides from people, not from the sealed ring.
    """
    secret = ring.active.private_jwk

    assert isinstance(secret, PrivateJWK)
    assert secret.reveal()["d"].encode() in dump_ring(ring)
