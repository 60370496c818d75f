"""
The token endpoint without HTTP: the order of its checks, what it remembers, and what it does when something is not there.
"""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest
from authlib.oauth2.rfc6749.errors import InvalidClientError

from issuer.errors import TokenRefused
from issuer.idempotency import Claimed
from issuer.subject import JWT_TOKEN_TYPE
from issuer.token_endpoint import TokenRequest
from keys import KeyTimes, rotate
from verifier.compact import parse_compact

from .world import NOW, SHOP

FORM = "application/x-www-form-urlencoded"


def minted(site, **parameters):
    return asyncio.run(site.endpoint().answer(site.token_request(**parameters)))


def refusal(site, request: TokenRequest | None = None, **parameters):
    """
    Ask for what is refused; return status, error, reason and the seconds to wait, with what was reported of it.
    """
    site.events.clear()
    with pytest.raises(TokenRefused) as caught:
        asyncio.run(site.endpoint().answer(request or site.token_request(**parameters)))
    refused = caught.value
    facts = [facts for event, facts in site.events if event == "token_refused"]
    assert [(each["workspace"], each["error"], each["reason"]) for each in facts] == [
        ("root", refused.error, refused.reason)
    ]
    return (refused.status, refused.error, refused.reason, refused.retry_after_s), facts[0]


def test_a_token_is_minted_counted_and_reported(site):
    """
    The answer has the members of RFC 8693 section 2.2.1; the report names what an operator needs and no customer.
    """
    details = site.details()
    before = site.service.metrics.render([]).decode()

    answer = minted(site, scope="orders:write", authorization_details=details)

    claims = parse_compact(answer["access_token"]).claims
    assert set(answer) == {
        *("access_token", "issued_token_type", "token_type", "expires_in", "scope", "authorization_details")
    }
    assert [event for event in site.events if event[0] == "token_minted"] == [
        (
            "token_minted",
            {
                "workspace": "root",
                "client_id": "orc_main",
                "source": "unknown",
                "agent": "agt_support",
                "audience": SHOP,
                "scope": "orders:write",
                "acr": "standard",
                "action": "cancel_order",
                "action_digest": claims["caplo"]["actionDigest"],
                "jti": claims["jti"],
                "kid": site.service.rings["root"].current(NOW).kid,
            },
        )
    ]
    series = f'customer_context_mints_total{{audience="{SHOP}",kind="write",workspace="root"}}'
    assert _value(site.service.metrics.render([]).decode(), series) == _value(before, series) + 1


def test_a_refusal_is_counted_and_reported_once(site):
    """
    The reason goes to the log, the error to the metrics; the client is named from when it has proved who it is.
    """
    series = 'customer_context_refusals_total{error="invalid_scope",workspace="root"}'
    before = _value(site.service.metrics.render([]).decode(), series)

    _, early = refusal(site, client_assertion="x")
    _, late = refusal(site, scope="unknown")

    assert "client_id" not in early
    assert late["client_id"] == "orc_main"
    assert _value(site.service.metrics.render([]).decode(), series) == before + 1


def _value(metrics: str, series: str) -> float:
    return float(next((line.rpartition(" ")[2] for line in metrics.splitlines() if line.startswith(series)), 0))


FAULTS = (
    ("form:media_type", {"content_type": "text/plain"}),
    ("form:size", {"padding": "x" * 65_536}),
    ("form:repeated", {"again": "subject_token"}),
    ("client:two_methods", {"authorization": ["Basic x"]}),
    ("client_assertion:malformed", {"client_assertion": "x"}),
    ("client_assertion:replayed", {"used": True}),
    ("missing:grant_type", {"grant_type": None}),
    ("requested_token_type", {"requested_token_type": "x"}),
    ("target:not_allowed", {"resource": "x"}),
    ("subject_token:malformed", {"subject_token": "x"}),
    ("actor_token:pair", {"actor_token": "x"}),
    ("action:json", {"authorization_details": "x"}),
    ("scope:not_allowed", {"scope": "x"}),
    ("authentication:unmet", {"max_age": "1"}),
    ("ring:unavailable", {"lost": True}),
)
"""One fault for each step, in the order of the steps."""


@pytest.mark.parametrize("first", range(len(FAULTS)), ids=[reason for reason, _ in FAULTS])
def test_checks_are_made_in_their_order(first, site):
    """
    Of several faults the first in the order of the design decides: media type, size, form, client, assertion, grant type, grant.
    """
    faults = {"client_assertion": site.client_assertion(jti="jti-x")}
    faults |= {name: value for _, fault in FAULTS[first:] for name, value in fault.items()}
    outside = {name: faults.pop(name, None) for name in ("content_type", "again", "authorization", "used", "lost")}
    request = site.token_request(**faults)
    if outside["used"]:
        asyncio.run(site.state.use("https://issuer.test", "orc_main", "jti-x", NOW + 60, NOW))
    if outside["lost"]:
        site.lose_rings()
    again = f"&{outside['again']}=x" if outside["again"] else ""
    request = replace(
        request,
        content_type=outside["content_type"] or FORM,
        body=request.body + again.encode(),
        authorization=outside["authorization"] or (),
    )

    (_, _, reason, _), _ = refusal(site, request)

    assert reason == FAULTS[first][0]


@pytest.mark.parametrize("grant", ["client_credentials", "refresh_token", "authorization_code", "password", "x"])
def test_only_token_exchange_is_granted(grant, site):
    """
    tx-no-refresh, te-unauthorized-client: every other grant is `unsupported_grant_type`, for a client that is known.
    """
    assert refusal(site, grant_type=grant)[0] == (400, "unsupported_grant_type", "grant_type", None)
    assert refusal(site, grant_type=grant, client_assertion="x")[0][1] == "invalid_client"


def test_an_assertion_is_used_up_even_when_the_grant_is_refused(site):
    """
    What authenticated once authenticates never again, whatever became of the request.
    """
    assertion = site.client_assertion()

    first, _ = refusal(site, client_assertion=assertion, subject_token="x")
    second, _ = refusal(site, client_assertion=assertion)

    assert first == (400, "invalid_request", "subject_token:malformed", None)
    assert second == (401, "invalid_client", "client_assertion:replayed", None)


def test_an_assertion_that_does_not_hold_is_not_used_up(site):
    """
    Only what was verified is remembered, so that nobody can use up another's identifier.
    """
    refusal(site, client_assertion=site.client_assertion(jti="jti-x", key="subject-1"))

    assert minted(site, client_assertion=site.client_assertion(jti="jti-x"))["token_type"] == "Bearer"


async def _fails(*_asked):
    raise ConnectionError("redis://user:secret@10.0.0.1 cus_48213")


async def _says_nothing(*_asked):
    return None


def test_a_store_that_fails_mints_nothing(site):
    """
    Whether an assertion was used or a key claimed cannot be told: 503 with Retry-After, and the log has the class of the error.
    """
    site.state.assertion_ids = SimpleNamespace(use=_fails)
    by_assertion = refusal(site)
    site.renew()
    site.state.idempotency = SimpleNamespace(claim=_fails)
    by_key = refusal(site, authorization_details=site.details())

    assert by_assertion[0] == (503, "temporarily_unavailable", "client_assertion:cannot_tell", 1)
    assert by_key[0] == (503, "temporarily_unavailable", "idempotency:cannot_tell", 1)
    assert by_assertion[1]["problem"] == by_key[1]["problem"] == "ConnectionError"
    assert "secret" not in repr((by_assertion, by_key, site.events))


def test_a_store_that_answers_something_else_mints_nothing(site):
    """
    Only True is a first use and only False a used assertion, only a claim lets a mint go ahead; anything else is 503.
    """
    site.state.assertion_ids = SimpleNamespace(use=_says_nothing)
    by_assertion = refusal(site)
    site.renew()
    site.state.idempotency = SimpleNamespace(claim=_says_nothing)
    by_key = refusal(site, authorization_details=site.details())

    assert by_assertion[0] == (503, "temporarily_unavailable", "client_assertion:cannot_tell", 1)
    assert by_key[0] == (503, "temporarily_unavailable", "idempotency:cannot_tell", 1)
    assert by_assertion[1]["problem"] == by_key[1]["problem"] == "NoneType"


def test_a_store_that_is_cancelled_is_not_a_store_that_failed(site):
    """
    A request that is given up ends; it does not turn into an answer.
    """

    async def given_up(*_asked):
        raise asyncio.CancelledError

    site.state.assertion_ids = SimpleNamespace(use=given_up)

    with pytest.raises(asyncio.CancelledError):
        minted(site)


def test_a_secret_needs_no_store_of_assertions(site):
    """
    A client that authenticates with a secret leaves no identifier behind.
    """
    site.state.assertion_ids = SimpleNamespace(use=_fails)

    request = site.token_request(["Basic b3JjX2Jhc2ljOnNlY3JldC0x"], client="orc_basic")

    assert asyncio.run(site.endpoint().answer(request))["expires_in"] == 60


@pytest.mark.parametrize(
    ("outcome", "refused"),
    [
        ("conflict", (400, "invalid_request", "idempotency:conflict", None)),
        ("exhausted", (400, "invalid_authorization_details", "idempotency:exhausted", None)),
        ("full", (429, "temporarily_unavailable", "idempotency:full", 60)),
    ],
)
def test_a_claim_that_fails_is_answered_for_what_it_is(outcome, refused, site):
    """
    Something else under the key, one mint too many, too many records alive: each has its code, status and reason.
    """

    async def claim(*_asked):
        return outcome

    site.state.idempotency = SimpleNamespace(claim=claim)

    assert refusal(site, authorization_details=site.details())[0] == refused


def test_the_record_pins_the_instant_of_the_confirmation(site):
    """
    The token says the instant that the record pins, and is refused when that is over, whatever the request says.
    """
    asked = []

    async def claim(*arguments):
        asked.append(arguments)
        return Claimed(NOW - 1000 * len(asked))

    site.state.idempotency = SimpleNamespace(claim=claim)
    details = site.details(action="note_order", confirmation={"by": "none"}, idempotencyKey="idk-of-one-action")

    answer = minted(site, authorization_details=details)
    refused, _ = refusal(site, authorization_details=details)

    assert parse_compact(answer["access_token"]).claims["caplo"]["confirmation"]["at"] == NOW - 1000
    assert refused == (400, "invalid_authorization_details", "confirmation:expired", None)
    assert asked[0][0] == ("root", "orc_main", "note_order", "idk-of-one-action")
    assert asked[0][2:] == ("none", NOW, NOW)


def test_without_a_confirmed_ring_nothing_is_counted_or_minted(site):
    """
    A ring that was not confirmed within its lease signs nothing: 503, and the key has all of its mints left.
    """
    details = site.details(idempotencyKey="idk-of-one-action")
    site.lose_rings()

    refused, _ = refusal(site, authorization_details=details)

    assert refused == (503, "temporarily_unavailable", "ring:unavailable", 1)
    assert site.state.claims == []


def _signs_meanwhile(site, meanwhile):
    """
    Let *meanwhile* happen while the next token is being signed.
    """
    ring = site.service.rings["root"]
    view = ring.current(NOW)

    async def sign(signing_input):
        meanwhile()
        return await view.signer.sign(signing_input)

    signer = SimpleNamespace(kid=view.kid, alg=view.signer.alg, public_jwk=view.signer.public_jwk, sign=sign)
    ring._view = replace(view, signer=signer)
    return ring


def test_a_ring_that_is_lost_while_signing_hands_nothing_out(build_site):
    """
    A process that was paused between looking at the ring and signing answers 503, and no token leaves or is reported.
    """
    site = build_site()
    ring = _signs_meanwhile(site, site.lose_rings)

    refused, _ = refusal(site)

    assert refused == (503, "temporarily_unavailable", "ring:unavailable", 1)
    assert [event for event, _ in site.events] == ["token_refused"]
    site.renew()
    ring._view = ring._adopted.view(NOW)
    assert minted(site)["expires_in"] == 60


def test_a_key_that_is_replaced_while_signing_hands_nothing_out(build_site):
    """
    When another key became the active one in the meantime, what the old one signed does not leave; the next request is served.
    """
    site = build_site()
    store = site.ring_stores["root"]

    def replaced():
        ring = rotate(store.ring, now=NOW, times=KeyTimes(), expected_active=None, force=True, reason="stolen").ring
        store.ring, store.revision = ring, store.revision + 1
        _step(site.service.rings["root"].poll())

    _signs_meanwhile(site, replaced)

    refused, _ = refusal(site)

    assert refused == (503, "temporarily_unavailable", "ring:unavailable", 1)
    assert [event for event, _ in site.events] == ["ring_adopted", "token_refused"]
    assert minted(site)["expires_in"] == 60


def _step(coroutine) -> None:
    with pytest.raises(StopIteration):
        coroutine.send(None)


def test_workspaces_share_nothing_but_the_process(site):
    """
    The same client, assertion identifier and idempotency key in another workspace is another request under another key.
    """
    key = "idk-of-one-action"
    form = {"authorization_details": site.details(idempotencyKey=key)}
    root = asyncio.run(
        site.endpoint().answer(site.token_request(client_assertion=site.client_assertion(jti="j"), **form))
    )
    there = {"client_assertion": site.client_assertion(workspace="acme", jti="j"), "workspace": "acme", **form}
    acme = asyncio.run(site.endpoint("acme").answer(site.token_request(**there)))

    tokens = [parse_compact(answer["access_token"]) for answer in (root, acme)]

    assert [token.claims["iss"] for token in tokens] == ["https://issuer.test", "https://issuer.test/w/acme"]
    assert tokens[0].kid != tokens[1].kid


def test_an_assertion_or_subject_of_another_workspace_is_refused(site):
    """
    ca-aud-sole: what a client signed for one workspace is useless at another, where it has the very same keys (D3).
    """
    assertion, _ = refusal(site, client_assertion=site.client_assertion(workspace="acme"))
    subject, _ = refusal(site, subject_token=site.subject_token(workspace="acme"))

    assert assertion == (401, "invalid_client", "client_assertion:audience", None)
    assert subject == (400, "invalid_request", "subject_token:audience", None)


def test_a_request_does_not_show_itself(site):
    """
    The representation of a token request holds neither credentials nor body.
    """
    request = site.token_request(["Basic secret"])

    assert "secret" not in repr(request)
    assert JWT_TOKEN_TYPE not in repr(request)


def test_authlib_never_finds_a_client_by_itself(site):
    """
    Its stock methods look clients up through a door that finds nobody, so none of them authenticates anyone.
    """
    server = site.endpoint()._server
    form = {"client_id": "c1", "client_secret": "s"}
    request = SimpleNamespace(form=form, payload=SimpleNamespace(client_id="c1", data={}), headers={}, client_id="c1")

    assert server.query_client("c1") is None
    for method in ("client_secret_post", "none"):
        with pytest.raises(InvalidClientError):
            server.authenticate_client(request, [method])
