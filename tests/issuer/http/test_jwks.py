"""
The published key set: its bytes, its caching, and its absence when the keys cannot be trusted.
"""

import json
from pathlib import Path

import pytest

from issuer.rings import LEASE_S
from keys import RingMissing, generate_key, import_private_jwk, revoke, rotate
from verifier.cache_control import parse_cache_control
from verifier.jwk import parse_key_set

DATA = Path(__file__).parents[2] / "data"
CASES = {case["id"]: case for case in json.loads((DATA / "cases.json").read_text())}
PATHS = ["/.well-known/jwks.json", "/w/acme/.well-known/jwks.json"]


def names(value):
    """
    Yield every member name, at every depth.
    """
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from names(member)
    elif isinstance(value, list):
        for member in value:
            yield from names(member)


def imported_key():
    """
    Import a private JWK, as another system would hand it over.
    """
    return import_private_jwk(generate_key().private_jwk.reveal())


@pytest.mark.parametrize("path", PATHS)
def test_a_partner_reads_the_keys(client, harness, path):
    """
    RFC 7517: media type, an object with `keys`, the active key and two standbys, each with exactly the public members.
    """
    response = client.get(path)

    name = "acme" if path.startswith("/w/acme") else "root"
    ring = harness.stores[name].ring
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/jwk-set+json"
    assert set(parse_key_set(response.content)) == {ring.active.kid, *(record.kid for record in ring.standbys)}
    assert all(
        set(jwk) == {"kty", "crv", "x", "y", "use", "alg", "kid"} and (jwk["use"], jwk["alg"]) == ("sig", "ES256")
        for jwk in response.json()["keys"]
    )


def test_workspaces_do_not_share_keys(client):
    """
    A leak in one workspace must not forge the others (D3).
    """
    first, second = (set(parse_key_set(client.get(path).content)) for path in PATHS)

    assert first.isdisjoint(second)


def test_the_answer_may_be_cached_as_the_waiting_times_expect(client, harness):
    """
    `max-age` and `stale-if-error` are those of the key times; the tag is strong and changes with the keys.
    """
    before = client.get(PATHS[0])
    ring = harness.stores["root"].ring
    harness.stores["root"].put(
        rotate(ring, now=int(harness.clock.at), times=harness.service.times, expected_active=None).ring
    )
    harness.poll()
    after = client.get(PATHS[0])

    assert before.headers["cache-control"] == "public, max-age=120, stale-if-error=120"
    assert not before.headers["etag"].startswith("W/")
    assert before.headers["etag"] != after.headers["etag"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_current_copy_is_renewed_without_a_body(client, method):
    """
    304 with the headers that renew it (RFC 9110 section 15.4.5), for a list, a weak tag and the asterisk too.
    """
    full = client.get(PATHS[0])
    tag = full.headers["etag"]

    for condition in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        response = client.request(method, PATHS[0], headers={"If-None-Match": condition})

        assert response.status_code == 304
        assert response.content == b""
        assert response.headers["etag"] == tag
        assert response.headers["cache-control"] == full.headers["cache-control"]
        assert "content-type" not in response.headers


def test_a_copy_of_other_keys_is_replaced(client):
    """
    A tag that does not match gets the whole document.
    """
    response = client.get(PATHS[0], headers={"If-None-Match": '"other"'})

    assert response.status_code == 200
    assert parse_key_set(response.content)


def test_every_line_of_the_condition_counts(client):
    """
    A field may be split over several lines (RFC 9110 section 5.3).
    """
    tag = client.get(PATHS[0]).headers["etag"]

    response = client.get(PATHS[0], headers=[("If-None-Match", '"other"'), ("If-None-Match", tag)])

    assert response.status_code == 304


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", PATHS)
def test_b11_untrusted_keys_are_an_error_that_no_cache_keeps(client, harness, method, path):
    """
    B11, issuer side: 5xx with no-store while the key store is unavailable, never a cacheable error or an empty key list.
    """
    for store in harness.stores.values():
        store.failure = RingMissing(where="there", workspace="acme")
    harness.poll()
    harness.monotonic.at += LEASE_S + 1

    response = client.request(method, path, headers={"If-None-Match": "*"})

    assert response.status_code == 503
    assert response.headers["cache-control"] == "no-store"
    assert int(response.headers["retry-after"]) > 0
    assert response.headers["content-type"] == "application/problem+json"
    assert "keys" not in response.text or method == "HEAD" or "keys" not in response.json()


def test_b04_no_private_member_is_ever_published(client, harness):
    """
    B04, issuer side: after every step of the keys' lives, and with imported private JWKs, no private member at any depth.
    """
    forbidden = set(CASES["B04"]["input"]["forbidden_members"])
    store, times = harness.stores["root"], harness.service.times
    now = int(harness.clock.at)

    def steps():
        yield rotate(store.ring, now=now, times=times, expected_active=None, force=True, reason="test").ring
        yield revoke(store.ring, store.ring.active.kid, now=now, times=times, reason="test").ring
        yield rotate(
            store.ring, now=now, times=times, expected_active=None, force=True, reason="test", generate=imported_key
        ).ring
        yield revoke(store.ring, store.ring.retiring[0].kid, now=now, times=times, reason="test").ring

    published = []
    for ring in steps():
        store.put(ring)
        harness.poll()
        body = client.get(PATHS[0]).content
        published.append(set(parse_key_set(body)))

        assert forbidden.isdisjoint(names(json.loads(body)))

    assert len({frozenset(kids) for kids in published}) == 4


def test_the_key_set_is_counted(client, harness):
    """
    In full, not modified, unavailable; by workspace.
    """
    client.get(PATHS[1])
    client.get(PATHS[1], headers={"If-None-Match": "*"})
    harness.monotonic.at += LEASE_S + 1
    client.get(PATHS[1])

    text = harness.service.metrics.render(()).decode()
    for result in ("full", "not_modified", "unavailable"):
        assert f'customer_context_jwks_requests_total{{result="{result}",workspace="acme"}} 1.0' in text


def test_a_verifier_reads_what_the_issuer_means(client):
    """
    Our own reader of `Cache-Control` finds 120 seconds of freshness and 120 of grace.
    """
    policy = parse_cache_control([client.get(PATHS[0]).headers["cache-control"]])

    assert (policy.lifetime_s, policy.stale_if_error_s) == (120, 120)
